"""Spark's JVM started without the lines about itself that it prints, and with errors logged in a line each."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from subprocess import PIPE
from typing import IO, Any

from pyspark import SparkConf, SparkContext
from pyspark.find_spark_home import _find_spark_home
from pyspark.java_gateway import launch_gateway

JAVA_OPTIONS = "spark.driver.extraJavaOptions"
LOG_LEVEL = "spark.log.level"
_LOG4J = Path(__file__).with_name("log4j2.properties")
_OF_THE_JVM = b"WARNING: Using incubator modules: "
"""The JVM prints this for a module that Spark asks for, and has no option that it heeds not to."""


def quiet_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """The settings, with our log4j2.properties where nobody has said anything of Spark's log: no `spark.log.level`, no
    properties file in the Java options or in Spark's conf folder.
    """
    options = settings.get(JAVA_OPTIONS, "")
    folder = os.environ.get("SPARK_CONF_DIR") or f"{_find_spark_home()}/conf"
    said = "configurationFile" in options + os.environ.get("SPARK_SUBMIT_OPTS", "")
    if LOG_LEVEL in settings or said or any(Path(folder).glob("log4j2.*")) or not _LOG4J.exists():
        return dict(settings)
    # as a URI, since the JVM's options are split at spaces
    return {**settings, JAVA_OPTIONS: f"{options} -Dlog4j2.configurationFile={_LOG4J.absolute().as_uri()}".strip()}


def start_quietly(settings: Mapping[str, str]) -> None:
    """Start a SparkContext with `settings` where this process has no JVM yet; what that prints goes to stderr, but for
    its start-up warning.
    """
    if SparkContext._gateway is not None or "PYSPARK_GATEWAY_PORT" in os.environ:
        return
    conf = SparkConf(loadDefaults=False)
    conf.setAll(list(quiet_settings(settings).items()))
    gateway = launch_gateway(conf, {"stderr": PIPE})
    threading.Thread(target=_pass_on, args=(gateway.proc.stderr,), name="stderr of Spark", daemon=True).start()
    SparkContext(conf=conf, gateway=gateway)


def _pass_on(lines: IO[Any]) -> None:
    for line in lines:
        if not line.startswith(_OF_THE_JVM):
            sys.stderr.write(line.decode(errors="replace"))
            sys.stderr.flush()
