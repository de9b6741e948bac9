"""The coordinators of a broker that serves clients: consumer groups, and transactions.

A broker coordinates the groups and the transactional ids whose partition of `__consumer_offsets` or
`__transaction_state` it leads. Their state is in memory, and as records of Kafka's formats in that partition: what is
answered to a client is replicated, and the next leader reads it from there.

* `transaction` is a transactional id's state as a value, with its transitions as pure functions; `transactions` is the
  coordinator (TransactionCoordinator), `markers` ends them in their partitions (TransactionMarkerChannelManager).
* `consumer_groups` are the groups of the classic protocol; `group_coordinator` keeps their offsets.
* `state_log` writes and loads the records of both, `state_records` has their bytes.
* `verification` is the leader's side of a transaction: it asks the coordinator whether the partition is in it
  (AddPartitionsToTxnManager, KIP-890).
"""
