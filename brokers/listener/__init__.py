"""A broker's client listeners: connections, request frames in, response frames out.

Mirrors Kafka's SocketServer with PLAINTEXT only. `requests` turns the bytes of a request into the bytes of its response
and has no sockets; `tcp` is one connection; `client_listener` binds the ports and enforces the limits (`limits`).
Requests of a connection are processed one at a time and in order, and reading pauses while the client is behind.
"""
