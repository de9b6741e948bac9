"""The state of share groups at the leaders of their partitions (KIP-932): records that members have, and sessions.

Kafka's leaders keep it in `__share_group_state`. Here it is in memory: a leader that restarts, or another one, begins
where `share.auto.offset.reset` says.

* `share_partition` is a group's state of one partition: a record is available, acquired by a member until its lock
  ends, or done (acknowledged or archived). Records below the start offset are done.
* `shares` has those of one broker, and the sessions of the members that fetch from it.
* `leaders` asks leaders for the state on behalf of the group's coordinator.
"""
