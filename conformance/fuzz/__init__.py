"""Differential fuzzing: the same seeded requests to two controllers, with responses and records compared.

Both controllers are reached over the network only. Ids, epochs and offsets differ between two controllers, so steps
contain symbols for them (`steps`), and each side translates symbols and its own values (`names`, `side`). `model` is
the world that the metadata log describes; `generator` draws requests that make sense in it, and `mutations` makes some
of them slightly invalid. `run` looks for a difference and shrinks its steps to a small sequence that still shows it;
`known` leaves out requests with a known difference. `differential` is the entry point, `mockraft conformance fuzz` its
command.
"""
