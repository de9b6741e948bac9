"""Captures where users keep them: local disks, object stores (S3, Google Cloud, Azure) and HDFS.

A location is a plain path or a URL; `locations` checks it and gives its file system, `listing` finds captures,
`whole_files` reads and writes files. `pyarrow.fs` does the work in the process that needs the bytes (the driver, or a
Python worker), so Spark's own connectors, with which it writes tables, are not involved
(docs/explanation/decisions/captures-in-object-stores.md).

Credentials come from the process's environment, its role or its web identity, never from a location or an option: both
are in Spark's plans, logs and event logs. Locations with credentials are refused without repeating them.
"""

from mockraft.spark_replay.storage.locations import Location, LocationError

__all__ = ["Location", "LocationError"]
