"""A Spark session with the settings that captures need."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Mapping

from mockraft.spark_replay.spark.data_source import register
from mockraft.spark_replay.spark.quiet_start import start_quietly
from pyspark.sql import SparkSession

LOOPBACK = "127.0.0.1"

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.python.filterPushdown.enabled": "true",
    # a row of runs is 10 kB to some megabytes: batches are limited by their bytes, and what workers hold by that
    "spark.sql.execution.arrow.maxBytesPerBatch": "16m",
    "spark.sql.execution.pyspark.udf.faulthandler.enabled": "true",
    "spark.executorEnv.OMP_NUM_THREADS": "1",
    "spark.executorEnv.ARROW_NUM_THREADS": "1",
}
"""What every session of ours has; a user's own session should have the push-down and the size of batches too."""


class JavaMissingError(RuntimeError):
    """There is no Java for Spark to run on."""


def start_session(
    master: str = "local[*]", settings: Mapping[str, str] | None = None, *, name: str = "mockraft"
) -> SparkSession:
    """A session on `master` with our sources registered; `settings` go over `SETTINGS`. JavaMissingError."""
    if shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
        raise JavaMissingError("Spark runs on Java 17 or later, and no java is on the PATH (nor is JAVA_HOME set)")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    conf = dict(SETTINGS)
    if master.startswith("local"):
        conf |= {"spark.driver.host": LOOPBACK, "spark.driver.bindAddress": LOOPBACK}
        # Spark's own are 200, each of which costs a small capture more than the work in it
        conf["spark.sql.shuffle.partitions"] = str(2 * local_cores(master))
    conf |= {**(settings or {}), "spark.app.name": name, "spark.master": master}
    start_quietly(conf)
    builder = SparkSession.builder
    for key, value in conf.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    register(session)
    return session


def local_cores(master: str) -> int:
    """How many cores `local`, `local[4]`, `local[4,2]` and `local[*]` have."""
    found = re.match(r"local\[(\*|\d+)", master)
    if found is None:
        return 1
    return os.cpu_count() or 1 if found[1] == "*" else int(found[1])
