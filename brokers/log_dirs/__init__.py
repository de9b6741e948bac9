"""A broker's log directories in Kafka's own file formats: formatting, start-up rules, disks and replica logs.

A start goes through three steps: `ensemble` reads every meta.properties (Kafka's MetaPropertiesEnsemble),
`startup_rules` decides if the broker may start and which directories are offline (KIP-858), `logs` locks the live
directories and loads their logs (Kafka's LogManager).

* `disk` is the interface of a file system: `real_disk`, `memory_disk`, or `failing_disk` with injected faults.
* `replica_log` is one log (UnifiedLog) over `segment_files` and `checkpoints`.
* `placement` chooses the directory of a new replica in Kafka's order.

Invariants: small files are always replaced as a whole; a failed append changes nothing; an I/O error takes the whole
directory offline, as in Kafka, unless KIP-18's behaviour is configured (`io_errors`). A directory that went offline
stays offline until the broker is restarted.
"""
