"""The state of a controller as typed views, and commands that change it by records in the metadata log.

`State` reads a controller or the active one of a quorum. Reading returns views (`mockraft.server.views`):
frozen values of one moment with Kafka's names, each with its JSON. A command (fence a broker, elect a leader, append
records) makes the records that Kafka's QuorumController would make for the same change, appends them to the log and
answers the requests that wait for them.

Invariants: nothing here changes the image directly, so that replaying the log gives the same state; records of a test
are applied to a copy of the image first, and none is written if one of them makes no sense. Use it in the thread of the
event loop, like the node.
"""
