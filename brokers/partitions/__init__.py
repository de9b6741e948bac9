"""Replicas of partitions on a broker that serves clients: leaders, followers and the in-sync replicas.

* `partition` is the state machine of one replica (Kafka's Partition), without log, clock or sockets. The high watermark
  waits for the *maximal* ISR: the committed one together with a proposed one (KIP-497).
* `hosted` joins that state with the replica's log and the requests that wait for a change (Kafka's purgatories).
* `replicas` follows the metadata (ReplicaManager); `fetcher` copies from one leader (ReplicaFetcherThread).
* `isr_changes` sends proposals to the controller (AlterPartitionManager).

Invariants: an ISR change takes effect only after the controller's response or its record; a follower truncates to its
leader's epochs before it appends; log and state of a replica change together, without an await in between.
"""
