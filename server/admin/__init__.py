"""The admin API: HTTP access to a running controller or quorum, and the live page.

It is a FastAPI application over a `Double`, served in the event loop of the double, so an operation reads and changes
the controller without locks. One module has one subject: stubs, faults, requests, verification, state, recordings,
system. JSON bodies have the names of stub files and of Python's `to_json`: Kafka's own, in camelCase. Models and
schemas are derived from the tables that read stubs, faults and views, so each field is described once.

Every request passes `Guard` first: without a token only this machine may send requests, and no other site's page may
(DNS rebinding, cross-site requests); bodies are bounded in size and time. A refusal is an RFC 9457 problem that names
the field by a JSON pointer.

Handlers are coroutines that never wait while they change the controller; long answers are produced in chunks, between
which the controller runs. `page/` is the live page: plain JavaScript modules over the same API.
"""
