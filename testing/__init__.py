"""The test double: a controller, quorum or simulated broker in a test's process, with stubs, faults and verification.

There is one implementation, asynchronous: `Controller`, `Quorum` and `SimulatedBroker`, used with `async with` in the
test's event loop. `Controller.sync(…)` and the like return blocking classes, which hold the asynchronous object in a
thread with an event loop of its own (blocking.py) and list its members; signatures and docstrings are the same.

- double.py: members shared by controllers and quorums (stubs, verification, journal, time).
- controller.py, quorum.py, broker.py: the classes of the public API; in_loop.py: what the first two share.
- faults.py, fault_kinds.py: faults by name, a method for each kind.
- in_thread.py: state and live stubs for use from the test's thread.
- options.py: the keywords that type checkers accept.

Callers may assume: methods may be called from the test's own thread; objects named `double`, `running` and `broker`
belong to the event loop and are used through `call` only.
"""
