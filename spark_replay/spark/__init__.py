"""Captured traffic on Spark: data sources, tables as functions of DataFrames, jobs.

    data_source   `spark.read.format("kafka_pcap")` and `kafka_frames`, also as streams (`stream_reader`)
    tables        frames, messages, exchanges and events as DataFrames, to be written by Spark in any of its formats
    decode_job    the job of `mockraft spark decode`
    replaying     replays cluster sessions in parallel; each request is sent once

All work on bytes is done by the packages `formats`, `streams`, `decoding` and `regression`, called in Python workers
with Arrow batches; `partition_reading` is what one task runs and does not need Spark. Files are cut into splits, each
split becomes runs of bytes, and one shuffle brings the runs of a connection together in order. Nothing is collected in
the driver, and the rows are the same as on one machine, whatever the splits and partitions.

Callables passed to `mapInArrow` are functions of modules, since Spark's workers import them by name. Captures are on
disks, in object stores or on HDFS (`storage`).
"""
