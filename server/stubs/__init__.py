"""Stubs: declarative overrides of how a controller answers.

A stub is data: a match (which requests), a trigger (which of the matching requests) and a chain of actions (what is
done in place of, before or after the controller's own answer). Nothing in `mockraft.server.apis` or
`mockraft.server.controller` knows that stubs exist: the node evaluates them when a request arrives, before the handler
is called.

For each request of a node with stubs:

1. A blackholed client or connection gets no answer until it is released.
2. `StubList.match` finds the stub that serves: by priority, among equals the newest. Its match, its scenario's state
and its trigger all have to agree. Without one, the controller answers as Kafka's does.
3. The stub's `Plan`, compiled once from its actions, is carried out: delays, changes of the request, an answer
(given, an error, or the controller's), changes of the response, edits of its bytes, the end of the connection.

Invariants: time and randomness are arguments (a seed gives the same draws on every Python), so a run can be repeated;
a stub value is never changed by use, only the live copy in a `StubList` counts; everything a test may write is checked
when the stub is made, and refused by a `StubError` that names the field and similar names.

`faults` holds named faults that are switched on and off: toxics of connections' bytes (as toxiproxy's) and presets,
which are made of stubs and commands. `Script` is all of this for one controller or quorum.
"""
