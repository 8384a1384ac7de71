"""replay.py SECONDS PORT ADDRESS... - listens to all that is said over eth0 for SECONDS, then says the same again to PORT of each ADDRESS.

What one end said is thus heard again by the other, and comes back to the one that said it. Prints when it has begun to listen, and at last how many
directions of connections were heard, how often something of them was said again, and how often that was hung up on.
"""
import socket
import struct
import sys
import time

ALL, FIRST, MOST = 3, 2, 100000         # ETH_P_ALL; the flag of a first packet; bytes that are kept of each


def listen(seconds, port):
    """{(from, to): (first number, {number: bytes})} of each direction of each connection with @port."""
    said = {}
    with socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.ntohs(ALL)) as ear:
        ear.bind(("eth0", ALL))
        ear.settimeout(0.1)
        print("listening", flush=True)
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            try:
                packet = ear.recv(70000)
            except TimeoutError:
                continue
            if len(packet) < 40 or packet[0] >> 4 != 4 or packet[9] != socket.IPPROTO_TCP:
                continue
            tcp = packet[(packet[0] & 15) * 4:struct.unpack("!H", packet[2:4])[0]]
            source, target, number = struct.unpack("!HHI", tcp[:8])
            if port not in (source, target):
                continue
            name = (packet[12:16], source, packet[16:20], target)
            if tcp[13] & FIRST:
                said[name] = (number + 1, {})
            elif name in said and (data := tcp[(tcp[12] >> 4) * 4:]) and (number - said[name][0]) % (1 << 32) < MOST:
                said[name][1].setdefault(number, data)
    return said


def joined(first, parts):
    text = b""
    while (first + len(text)) % (1 << 32) in parts:
        text += parts[(first + len(text)) % (1 << 32)]
    return text


def hung_up(address, port, text):
    with socket.create_connection((address, port), 5) as s:
        s.settimeout(10)
        try:
            s.sendall(text)
            while s.recv(1000):
                pass
        except TimeoutError:
            return False
        except OSError:
            pass
    return True


def main():
    seconds, port, addresses = float(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    texts = [text for text in (joined(*of) for of in listen(seconds, port).values()) if text]
    again = [hung_up(address, port, text) for text in texts for address in addresses]
    print(f"heard {len(texts)} said {len(again)} closed {sum(again)}")


main()
