"""A broker's client listeners: connections, request frames in, response frames out.

Mirrors Kafka's SocketServer with PLAINTEXT only. Without sockets and clock: `requests` turns the bytes of a request
into the bytes of its response, `connection` is one connection, and `clients` are all of them, with the parked requests
and the `limits`. With asyncio: `tcp` is one socket, and `client_listener` binds the ports. Requests of a connection are
processed one at a time and in order, and reading pauses while one is parked or the client is behind.
"""
