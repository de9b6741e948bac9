"""The asyncio side of simulated brokers: `shell` performs a kernel's effects, over `socket_links`, by a `clock`.

The only modules with sockets and timers, besides the client listener's. Ten thousand shells may share an event loop: a
heartbeat needs no task, and each shell has one timer, for the next deadline of its kernel.
"""
