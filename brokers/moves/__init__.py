"""Moves of replicas between the log directories of one broker (KIP-113, KIP-858).

Mirrors Kafka's ReplicaAlterLogDirsManager. `move` is the state table: a future replica copies the current one
(COPYING), its directory is reported to the controller once it has caught up, and only after the controller's
confirmation does it replace the current replica. Invariant: at any time exactly one of both logs is the current one, so
a kill at any step loses no committed record; `starting` continues or cleans up after a restart.

`requests` starts moves (AlterReplicaLogDirs), `movers` copies under a quota.
"""
