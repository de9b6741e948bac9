"""Start Spark's JVM without its start-up messages, and with errors logged in one line each."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from subprocess import PIPE
from typing import IO

from pyspark import SparkConf, SparkContext
from pyspark.find_spark_home import _find_spark_home
from pyspark.java_gateway import launch_gateway

JAVA_OPTIONS = "spark.driver.extraJavaOptions"
LOG_LEVEL = "spark.log.level"
_LOG4J = Path(__file__).with_name("log4j2.properties")
_OF_THE_JVM = b"WARNING: Using incubator modules: "
"""A message of the JVM about a module that Spark requests; no option suppresses it."""


def quiet_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings, with our log4j2.properties unless the user configured Spark's log.

    That is: `spark.log.level`, or a properties file in the Java options or in Spark's conf folder.
    """
    options = settings.get(JAVA_OPTIONS, "")
    folder = os.environ.get("SPARK_CONF_DIR") or f"{_find_spark_home()}/conf"
    has_log4j_option = "configurationFile" in options + os.environ.get("SPARK_SUBMIT_OPTS", "")
    if LOG_LEVEL in settings or has_log4j_option or any(Path(folder).glob("log4j2.*")) or not _LOG4J.exists():
        return dict(settings)
    # as a URI, since the JVM's options are split at spaces
    return {**settings, JAVA_OPTIONS: f"{options} -Dlog4j2.configurationFile={_LOG4J.absolute().as_uri()}".strip()}


def start_quietly(settings: Mapping[str, str]) -> None:
    """Start a SparkContext with `settings` if this process has no JVM yet.

    The JVM's output goes to stderr, except its start-up warning.
    """
    if SparkContext._gateway is not None or "PYSPARK_GATEWAY_PORT" in os.environ:
        return
    conf = SparkConf(loadDefaults=False)
    conf.setAll(list(quiet_settings(settings).items()))
    gateway = launch_gateway(conf, {"stderr": PIPE})
    threading.Thread(target=_pass_on, args=(gateway.proc.stderr,), name="stderr of Spark", daemon=True).start()
    SparkContext(conf=conf, gateway=gateway)


def _pass_on(lines: IO[bytes]) -> None:
    for line in lines:
        if not line.startswith(_OF_THE_JVM):
            sys.stderr.write(line.decode(errors="replace"))
            sys.stderr.flush()
