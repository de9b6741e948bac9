"""Building blocks of any server of Kafka APIs, for the controller as well as for simulated brokers.

* `api` describes one API: request and response class, versions, handler and error form; the context of a request; and
  the result of a handler that must wait, `Parked`.
* `listener` is a listener without sockets: frames, logins (`logins`), dispatch, bursts and turns, limits,
  parked requests, stubs, the `journal`. A server derives its own with its APIs; `connections` has their state.
* `effects` are what the shell of a sans-IO server does to connections: send, close, pause, resume.
* `shell` is the asyncio side of any listener: sockets (`listening`), `tls`, timer, idle connections; `turns` are
  those of the connections of all listeners.
* `clock` is the machine's time, or virtual time.
* `error_responses` are those of APIs that both controllers and brokers have.
* `options` are declared once, with type, bounds, default and help; command lines and checks are made from that.
* `linear_patterns` match regular expressions of clients and of stubs, in linear time.

But for `clock`, `listening`, `shell` and `turns`, this package has no time, sockets, threads or randomness of its own.
It imports only `wire`.
"""
