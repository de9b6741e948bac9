"""Spark's classes as the JVM shares them, archived once for a PySpark: its JVMs start in half the processor time.

As `mockraft.kafka.tools` for Kafka. A JVM that finds the archive is not made of its own jars runs without it.
"""

import hashlib
import os
import subprocess
import sys
from functools import lru_cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from mockraft.kafka.jars import KafkaUnavailableError, java_release, made_once

CAPTURE = Path(__file__).parents[1] / "captures" / "controller-4.3.1.pcap"
TRAINING = ("spark", "replay", "--captures", str(CAPTURE), "--ports", "19093", "--filter", "ApiVersions")
OPTIONS = "SPARK_SUBMIT_OPTS"
_SILENT = "-Xlog:disable"


@lru_cache
def use_class_archive() -> None:
    """Let every driver that this process starts use the archive, unless there is no Spark or no Java."""
    if find_spec("pyspark") is None or OPTIONS in os.environ:
        return
    try:
        name = f"pyspark-{version('pyspark')}-{_jars_digest()}-java-{java_release()}-classes"
    except KafkaUnavailableError:
        return
    os.environ[OPTIONS] = f"{_SILENT} -XX:SharedArchiveFile={made_once(name, _make) / 'spark.jsa'}"


def _jars_digest() -> str:
    """Return a digest of where the jars are and when they were changed: with others the JVM ignores the archive."""
    from pyspark.find_spark_home import _find_spark_home

    jars = sorted(Path(_find_spark_home(), "jars").glob("*.jar"))
    return hashlib.sha256(repr([(str(jar), jar.stat().st_mtime_ns) for jar in jars]).encode()).hexdigest()[:12]


def _make(target: Path) -> None:
    """Replay a capture; when its JVM ends, it writes down which classes it had."""
    with TemporaryDirectory(dir=target.parent) as folder:
        made = Path(folder, "classes")
        made.mkdir()
        environment = os.environ | {OPTIONS: f"{_SILENT} -XX:ArchiveClassesAtExit={made / 'spark.jsa'}"}
        words = (sys.executable, "-m", "mockraft", *TRAINING)
        # Ends with the JVM, which has the pipe as well.
        done = subprocess.run(words, env=environment, cwd=folder, capture_output=True, text=True, check=False)
        assert "responses as captured" in done.stdout, done.stdout + done.stderr
        assert (made / "spark.jsa").is_file()
        made.rename(target)
