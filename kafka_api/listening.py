"""Bound sockets of listeners, without what serves them: `mockraft serve` listens before that is imported."""

from __future__ import annotations

import socket

BACKLOG = 1024
"""Connections that wait until they are accepted."""


def bind(host: str, port: int) -> socket.socket:
    """Return a socket bound to the first address of `host`; OSError if the port is in use. Port 0: any free one."""
    name = host.encode() if host.isascii() else host  # for text Python imports its IDNA codec, which takes 3 ms
    family, kind, protocol, _, address = socket.getaddrinfo(
        name, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    bound = socket.socket(family, kind, protocol)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
    except OSError as error:
        bound.close()
        error.filename = f"{host}:{port}"
        raise
    return bound


def listen(host: str, port: int) -> socket.socket:
    """Return a socket as `bind`, at which clients may connect before what serves them is imported. OSError."""
    bound = bind(host, port)
    bound.listen(BACKLOG)
    return bound
