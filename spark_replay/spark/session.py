"""Create a Spark session with the settings that captures need."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from mockraft.spark_replay.spark.data_source import register
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention

LOOPBACK = "127.0.0.1"
CONNECT = "sc://"
"""The scheme of a Spark Connect server."""

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.python.filterPushdown.enabled": "true",
    # a row of runs is 10 kB to some megabytes: batches are limited by bytes, which also limits workers' memory
    "spark.sql.execution.arrow.maxBytesPerBatch": "16m",
    # rows depend on nothing but the files: a task that runs again cannot write others
    "spark.sql.shuffle.orderIndependentChecksum.enabled": "false",
    "spark.sql.execution.pyspark.udf.faulthandler.enabled": "true",
    # tables can hold secrets: files are private, as all that mockraft writes
    "spark.hadoop.fs.permissions.umask-mode": "077",
    "spark.executorEnv.OMP_NUM_THREADS": "1",
    "spark.executorEnv.ARROW_NUM_THREADS": "1",
    # columns of bodies are some megabytes: to get pages anew for each takes as long as filling them
    "spark.executorEnv.MALLOC_MMAP_THRESHOLD_": str(32 << 20),
    "spark.executorEnv.MALLOC_TRIM_THRESHOLD_": str(256 << 20),
    # so do Arrow's, if they are used again within a second
    "spark.executorEnv.MIMALLOC_PURGE_DELAY": "1000",
}
"""Settings of our sessions; a user's own session should have the pushdown and the batch size too."""

JAVA_OPTIONS = "-XX:+UseParallelGC -Darrow.enable_unsafe_memory_access=true -Darrow.enable_null_check_for_get=false"
"""Of JVMs that write tables: each row passes through one, and Arrow would check each access to a cell."""

PARTITIONS = "spark.sql.shuffle.partitions"
"""Spark's default of 200 costs a small capture more than the work itself: two per core."""

_LOG4J = Path(__file__).with_name("log4j2.properties").as_uri()


class JavaMissingError(RuntimeError):
    """Raised if there is no Java for Spark."""


def start_session(
    master: str = "local[*]", settings: Mapping[str, str] | None = None, *, name: str = "mockraft"
) -> SparkSession:
    """Start a session on `master` with our sources; `settings` override `SETTINGS`. Raises JavaMissingError.

    `sc://host:15002` is a session of a Spark Connect server, which needs mockraft in its own Python.
    """
    if master.startswith(CONNECT):
        return _connect(master, SETTINGS | dict(settings or {}))
    if shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
        raise JavaMissingError("Spark needs Java 17 or later: there is no java on the PATH and JAVA_HOME is not set")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    conf = SETTINGS | {"spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={_LOG4J}"}
    if master.startswith("local"):
        conf |= {"spark.driver.host": LOOPBACK, "spark.driver.bindAddress": LOOPBACK}
        conf["spark.driver.extraJavaOptions"] += f" {JAVA_OPTIONS}"
        conf[PARTITIONS] = str(2 * local_cores(master))
    conf |= {**(settings or {}), "spark.app.name": name, "spark.master": master}
    builder = SparkSession.builder
    for key, value in conf.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    register(session)
    return session


def _connect(url: str, settings: Mapping[str, str]) -> SparkSession:
    """Return a session of a server, whose other settings are its own."""
    session = SparkSession.builder.remote(url).getOrCreate()
    for key, value in settings.items():
        if key.startswith("spark.sql."):
            session.conf.set(key, value)
    if session.conf.get(PARTITIONS, None) is None:
        # the client does not see the cores, but this is how many partitions Spark makes of numbers
        (last,) = session.range(1 << 20).select(F.spark_partition_id().alias("part")).agg(F.max("part")).first() or (0,)
        session.conf.set(PARTITIONS, str(2 * (last + 1)))
    register(session)
    return session


def local_cores(master: str) -> int:
    """Return the number of cores of `local`, `local[4]`, `local[4,2]` and `local[*]`."""
    found = re.match(r"local\[(\*|\d+)", master)
    if found is None:
        return 1
    return os.cpu_count() or 1 if found[1] == "*" else int(found[1])
