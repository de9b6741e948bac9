"""The test double: a controller, quorum or simulated broker in a test's process, with stubs, faults and verification.

There is one implementation, asynchronous: `Controller`, `Quorum` and `SimulatedBroker`, used with `async with` in the
test's event loop. `Controller.sync(…)` and the like return facades: the same members for use from other threads, while
the asynchronous object runs in a thread with an event loop of its own (facades.py).

- controller.py, quorum.py, broker.py: the classes of the public API; double.py: what the first two share.
- started_brokers.py: simulated brokers of a controller or quorum; memory_network.py connects them in virtual time.
- faults.py: faults by name, a method for each kind.
- sync_types.pyi: types of the blocking classes, generated; options.py: the keywords that type checkers accept.
- fixtures.py, plugin_settings.py, tracebacks.py: the pytest plugin.

`mockraft.server.double.Double` is the part that needs no start: stubs, verification, journal, state and time of what
runs. Callers of a facade may use its members in their own thread; `inside`, `running` and `node(…)` are objects of the
event loop's thread, for use through `call` only.
"""
