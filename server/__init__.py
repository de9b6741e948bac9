"""The controller: Kafka's own decisions behind a controller listener, deterministic and without sockets.

A request passes through these layers, and its effects come back the same way:

- `tcp`: the shell of `mockraft.kafka_api` (sockets, timers, the event loop), and connections to other nodes.
- `node`: the sans-IO node (`step`, `tick` → effects), a listener of `mockraft.kafka_api`: it frames requests,
  authenticates, applies stubs, parks requests that cannot be answered yet and writes the journal.
- `apis`: one file per API: versions, authorization, handler, error form (Kafka's ControllerApis).
- `controller`: decisions make records, records make the image (Kafka's QuorumController).
- `raft`: elections, replication and voter changes of `__cluster_metadata` (Kafka's KafkaRaftClient).

Invariants: the image is changed by records only; time, ids and randomness are arguments, so the same inputs give the
same bytes; nothing below `node` knows that stubs or connections exist.

`running` and `running_quorum` start one controller, or several in one process. `double` is what a test may do with
them; `stubs`, `state` and `admin` serve the tests' side.
"""
