"""The raft quorum: one node's view of it, without sockets and without a clock (KIP-595, KIP-853, KIP-996)."""
