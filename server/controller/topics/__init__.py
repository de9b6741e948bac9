"""Topics and partitions: creation, placement, elections, ISR changes and reassignments.

Mirrors ReplicationControlManager. All changes of an existing partition go through `partitions.PartitionChange`
(PartitionChangeBuilder), which elects a leader, completes reassignments and decides epochs; `partition_rules` collects
the constraints of one partition from configs, brokers and directories.

- `topics`, `partition_creation`, `placement`: new topics and partitions (StripedReplicaPlacer).
- `elections`, `leader_elections`: who leads (KIP-183, KIP-460, KIP-966).
- `isr_proposals`: AlterPartition of leaders (KIP-497, KIP-841, KIP-903).
- `reassignments`: AlterPartitionReassignments (KIP-455, KIP-860).

Invariants: the leader is in the ISR or there is none; the partition epoch grows with each change, the leader epoch with
each new leader; an ISR has only registered, unfenced replicas unless it is the last member without ELR.

Operations return records and per-item errors in one ControllerResult; one bad item does not fail the others.
"""
