"""The raft quorum: one node's view of it, without sockets and without a clock (KIP-595, KIP-853, KIP-996).

Mirrors Kafka's KafkaRaftClient, QuorumState and LeaderState. A node is in one role of an epoch:

    UNATTACHED → PROSPECTIVE → CANDIDATE → LEADER → RESIGNED
         ↑            ↓            ↓
         └──────── FOLLOWER ←──────┘

`states` has these transitions as a table. PROSPECTIVE asks for pre-votes without a new epoch; a node without a vote is
only ever UNATTACHED or FOLLOWER.

- `raft`: `poll(now_ms)` returns requests to send, `received` takes their responses; handlers of other nodes' requests
  call the rest. `transitions` changes the role, `leading` is a leader's view of its replicas.
- `messages` builds requests, `answers` handles responses, `request_manager` keeps one request in flight per node.
- `voter_changes`: adding, removing and updating voters, one change at a time.

Invariants: epoch and vote are persisted before anybody is sent them; the epoch never decreases; a node has at most one
leader per epoch (else InconsistentLeaderError); the high watermark is an offset that a majority has, and it moves only
once a record of the leader's own epoch is committed.
"""
