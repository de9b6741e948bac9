"""A peer as echo.c in Python: the limit of a server in pure Python.

python echo.py ANSWER_BYTES   prints its address, then serves until its stdin ends
"""

import socket
import sys
from select import EPOLLIN, epoll

RECEIVED_BYTES = 450
"""More than any request of the load."""


def serve(answer_bytes: int) -> None:
    """Answer until standard input ends."""
    bound, ready, clients = socket.create_server(("127.0.0.1", 0), backlog=1024), epoll(), dict[int, socket.socket]()
    ready.register(bound.fileno(), EPOLLIN)
    ready.register(sys.stdin.fileno(), EPOLLIN)
    print(f"127.0.0.1:{bound.getsockname()[1]}", flush=True)
    size, rest = (answer_bytes - 4).to_bytes(4), bytes(answer_bytes - 8)
    while True:
        for fd, _ in ready.poll():
            if fd == sys.stdin.fileno():
                return
            if fd == bound.fileno():
                client, _ = bound.accept()
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                ready.register(client.fileno(), EPOLLIN)
                clients[client.fileno()] = client
                continue
            try:
                data = clients[fd].recv(RECEIVED_BYTES)
                clients[fd].send(size + data[8:12] + rest)
            except ConnectionError:
                data = b""
            if not data:
                ready.unregister(fd)
                clients.pop(fd).close()


if __name__ == "__main__":
    serve(int(sys.argv[1]))
