"""knock.py ADDRESS PORT WORDS... - says each of WORDS, in hexadecimal digits, to PORT, and waits until it is hung up on; meanwhile looks at
many ports, and goes at once or takes back its connections.
"""
import socket
import struct
import sys


def connect(port, reset=False):
    s = socket.socket()
    s.settimeout(8)
    if reset:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    return s, s.connect_ex((sys.argv[1], port))


def says(port, words):
    s, error = connect(port)
    if error:
        sys.exit(f"nobody at {port}: {error}")
    s.sendall(words)
    return s


def hears_the_end(s):
    try:
        while s.recv(100):
            pass
    except ConnectionError:
        pass


def main():
    port = int(sys.argv[2])
    said = [says(port, bytes.fromhex(words)) for words in sys.argv[3:]]
    for other in range(port - 50, port + 50):
        connect(other)[0].close()
        connect(other, reset=True)[0].close()
    for s in said:
        hears_the_end(s)


main()
