"""Broker and controller registrations, heartbeats, sessions, fencing and log directories.

Mirrors ClusterControlManager and BrokerHeartbeatManager; KIP-631, KIP-858, KIP-919, KIP-1066. A broker is

    FENCED ⇄ UNFENCED → CONTROLLED_SHUTDOWN → SHUTDOWN_NOW (response only; the broker is then FENCED)

`heartbeat_states` decides the next state from one heartbeat as a pure function; `heartbeat` applies it; `fencing` makes
the partition and registration records in Kafka's order; `heartbeat_states` has sessions too, soft state beside the
log. `registration`, `log_dirs` and `producer_ids` are the other operations of brokers.

Invariants: a broker is unfenced only after it has read its own registration; a fenced broker is in no ISR with more
than one member and leads nothing; a broker epoch is the offset of its registration record, so it only grows.

A heartbeat is the hot path: it must not scan brokers or partitions.
"""
