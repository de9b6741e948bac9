"""One Spark session for every test that needs one: two cores, a short start, no batch larger than it must be."""

import os
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from mockraft.wire.spec_files import sort_key

from ..cli.cli import Result, invoke
from ..s3_server import S3Server, s3_server

# Spark starts dozens of Python processes: what one has compiled (pandas above all) the others need not.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

CAPTURES = Path(__file__).parents[1] / "captures"

QUICK = {
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto",
}


def pytest_configure(config: pytest.Config) -> None:
    if find_spec("pyspark") is not None:
        from pyspark import __version__ as installed

        if is_older(installed, "4.2"):  # it leaves its sockets to the garbage collector
            config.addinivalue_line("filterwarnings", "default::pytest.PytestUnraisableExceptionWarning")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what the installed PySpark does not have; that it refuses so is tested in test_old_pyspark.py.

    The first test that needs the session waits for its JVM, which takes minutes on a busy machine.
    """
    for item in items:
        if item.get_closest_marker("spark") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(900))
    if find_spec("pyspark") is None:
        return
    from pyspark import __version__ as installed

    left = [item for item in items if not all(has(installed, mark) for mark in item.iter_markers("needs_pyspark"))]
    items[:] = [item for item in items if item not in left]
    config.hook.pytest_deselected(items=left)


def has(installed: str, needed: pytest.Mark) -> bool:
    wanted: str = needed.args[0]
    return installed.startswith(f"{wanted}.") if needed.kwargs.get("exactly") else not is_older(installed, wanted)


def is_older(installed: str, wanted: str) -> bool:
    return sort_key(installed) < sort_key(wanted)


@pytest.fixture(scope="session")
def s3_environment() -> Iterator[S3Server]:
    """An S3 server that lives longer than Spark, whose processes have its address in their environment."""
    with s3_server() as server:
        yield server


@pytest.fixture
def s3(s3_environment: S3Server) -> S3Server:
    """The S3 server with an empty bucket, `caps`."""
    s3_environment.reset("caps")
    return s3_environment


@pytest.fixture(scope="session")
def event_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the session's event log."""
    return tmp_path_factory.mktemp("events")


@pytest.fixture(scope="session")
def spark(s3_environment: S3Server, event_log: Path) -> Iterator[object]:
    """The session, `pyspark.sql.SparkSession`."""
    from mockraft.spark_replay.spark.session import start_session

    logged = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": str(event_log),
        "spark.eventLog.compress": "false",
    }
    session = start_session("local[2]", QUICK | logged, name="tests")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def controller_capture() -> str:
    """The real controller's capture: 1726 frames on port 19093."""
    return str(CAPTURES / "controller-4.3.1.pcap")


@pytest.fixture(scope="session")
def brokers_capture() -> str:
    """The real brokers' capture: 931 frames on ports 19192 and 19292."""
    return str(CAPTURES / "brokers-4.3.1.pcap")


@pytest.fixture
def run(spark: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Run `mockraft spark …` with the tests' session, which stays, in place of one of its own."""
    monkeypatch.setattr("mockraft.spark_replay.spark.session.start_session", lambda master, settings: spark)
    monkeypatch.setattr(type(spark), "stop", lambda self: None)
    monkeypatch.setattr(type(spark.sparkContext), "setLogLevel", lambda self, level: None)
    return lambda *words: invoke("spark", *words)
