"""The metadata log: partition 0 of `__cluster_metadata` as bytes, in Kafka's own file formats.

Mirrors KafkaRaftLog, UnifiedLog and the snapshot classes. `metadata_log` is the log that the other packages use;
`batches` holds the batches in memory, `segments` writes them to disk, `snapshot` writes checkpoints, `data_dir` has the
lock and the small files, `files` opens all of them together, `positions` checks a follower's offset and epoch.

    start_offset ≤ high_watermark ≤ end_offset

Batches are kept as sent: a follower gets the leader's bytes unchanged. Offsets below the high watermark are never
truncated. A snapshot covers committed records only; the log below the oldest kept snapshot may be deleted.

An append is in the page cache before it returns (on disk with `metadata_log_fsync`); StorageError means that nothing
was appended. DataDirError is raised at start only, when a directory cannot be used safely.
"""
