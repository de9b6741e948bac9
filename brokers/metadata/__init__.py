"""Replication of `__cluster_metadata` by a broker, and the parts of the log that it keeps.

`observer` is raft's observer without sockets (KafkaRaftClient as an observer): it produces the next Fetch or
FetchSnapshot and processes the response. `replication` connects it to the network; `shared_replication` does so once
for all brokers of a process. `metadata_view` and `shared_view` keep what concerns one broker. The image of a broker
that serves clients is in `brokers.image`.
"""
