"""A ProxyCommand for the tests: joins standard input and output to a port of this machine."""

from __future__ import annotations

import os
import socket
import sys
import threading


def main() -> None:
    line = socket.create_connection(("127.0.0.1", int(sys.argv[1])))

    def send() -> None:
        while data := os.read(0, 65536):
            line.sendall(data)
        line.shutdown(socket.SHUT_WR)

    threading.Thread(target=send, daemon=True).start()
    while data := line.recv(65536):
        os.write(1, data)


if __name__ == "__main__":
    main()
