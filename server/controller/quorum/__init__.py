"""Identities of the raft quorum: replicas, the voter set and the persisted state of an election.

Mirrors Kafka's ReplicaKey, VoterSet, ElectionState and KRaftControlRecordStateMachine; KIP-595, KIP-853. These are
values without behaviour in time, shared by the metadata log, which persists them, and `mockraft.server.raft`, which
changes them.

At kraft.version 0 the voters come from configuration and have no directory ids. From kraft.version 1 on they are
VotersRecords of the log: effective once appended, committed or not, and undone when the log is truncated below them.
`voter_set.VoterHistory` therefore keeps every voter set with the offset from which it is effective.

Invariants: at most one vote per epoch; voter ids are unique; the last voter cannot be removed.
"""
