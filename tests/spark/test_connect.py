"""Commands over Spark Connect: a server on the loopback, and clients without a JVM of their own."""

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from ..budgets import soak
from .standalone_cluster import QUICK_JAVA, wait_for

pytestmark = [pytest.mark.spark, soak]

SETTINGS = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": QUICK_JAVA,
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.connect.grpc.binding.address": "127.0.0.1",
    "spark.ui.enabled": "false",
}
SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
Command = Callable[..., subprocess.CompletedProcess[str]]


def listens(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a server that `spark-submit` of this PySpark starts."""
    import pyspark

    home, folder = Path(pyspark.__file__).parent, tmp_path_factory.mktemp("server")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = SETTINGS | {"spark.connect.grpc.binding.port": str(port)}
    conf = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    command = [str(home / "bin" / "spark-submit"), "--master", "local[2]", *conf, "--class", SERVER, "spark-internal"]
    environment = os.environ | {"SPARK_HOME": str(home), "PYSPARK_PYTHON": sys.executable}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log)
    try:
        wait_for("the server listens", lambda: listens(port), process)
        yield f"sc://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


@pytest.fixture
def run(server: str, tmp_path: Path, controller_capture: str) -> Command:
    """Run `mockraft spark …` on the server, in a process of its own, and return it."""
    (tmp_path / "run.pcap").symlink_to(controller_capture)
    captured = ("--captures", "run.pcap", "--ports", "19093")

    def mockraft(command: str, *words: str) -> subprocess.CompletedProcess[str]:
        whole = [sys.executable, "-m", "mockraft", "spark", command, "--master", server, *captured, *words]
        return subprocess.run(whole, cwd=tmp_path, capture_output=True, text=True, check=False)

    return mockraft


def test_server_needs_its_packages() -> None:
    assert find_spec("grpc") is not None, "pip install 'pyspark[connect]'"


def test_tables_are_written(run: Command, tmp_path: Path) -> None:
    done = run("decode", "--tables", "frames,messages,exchanges,records", "--out", "tables")
    assert done.returncode == 0, done.stderr
    rows = {name: pq.read_table(tmp_path / "tables" / name).num_rows for name in ("frames", "messages", "exchanges")}
    assert rows == {"frames": 1726, "messages": 1726, "exchanges": 860}
    assert pq.read_table(tmp_path / "tables" / "records").num_rows == 1275


def test_replay_starts_controllers_beside_the_tasks(run: Command, tmp_path: Path) -> None:
    done = run("replay", "--filter", "ApiVersions,BrokerRegistration", "--out", "replayed")
    assert done.returncode == 0, done.stderr
    assert "39 of 39 responses as captured, in 1 session" in done.stdout
    assert pq.read_table(tmp_path / "replayed" / "diffs").num_rows > 0


def test_running_controller_is_refused_as_a_target(run: Command) -> None:
    done = run("replay", "--target", "127.0.0.1:9")
    assert done.returncode == 2
    assert "a running controller cannot be the target over Spark Connect" in done.stderr


TASKS = """
import sys
import pyarrow as pa
from mockraft.spark_replay.spark import tables
from mockraft.spark_replay.spark.session import start_session
def row_of_a_task(batches):
    yield pa.RecordBatch.from_pydict({"rows": [sum(batch.num_rows for batch in batches)]})
for settings in ({}, {"spark.sql.shuffle.partitions": "3"}):
    frames = tables.frames(start_session(sys.argv[1], settings), sys.argv[2], ports=[19093])
    rows = [row.rows for row in frames.mapInArrow(row_of_a_task, "rows long").collect()]
    print(len(rows), sum(rows))
"""


def test_frames_take_two_tasks_for_each_core_of_the_server_or_as_many_as_are_set(
    server: str, controller_capture: str
) -> None:
    words = [sys.executable, "-c", TASKS, server, controller_capture]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["4 1726", "3 1726"]


STREAM = """
import sys
from mockraft.spark_replay.spark import tables
from mockraft.spark_replay.spark.session import start_session
spark = start_session(sys.argv[1])
frames = tables.stream_frames(spark, "ring", ports=[19093], quietSeconds=0, buckets=2)
query = frames.writeStream.option("checkpointLocation", "checkpoint").trigger(availableNow=True).start("frames")
query.awaitTermination()
print(spark.read.parquet("frames").count(), tables.waiting_frames(spark, "checkpoint").count())
"""


@pytest.mark.needs_pyspark("4.2")
def test_connections_are_followed_in_a_stream(server: str, tmp_path: Path, controller_capture: str) -> None:
    (tmp_path / "ring").mkdir()
    (tmp_path / "ring" / "run.pcap").write_bytes(Path(controller_capture).read_bytes())
    os.utime(tmp_path / "ring" / "run.pcap", (1_000_000_000, 1_000_000_000))
    script = STREAM
    for name in ("ring", "checkpoint", "frames"):
        script = script.replace(f'"{name}"', f'"{tmp_path / name}"')
    done = subprocess.run([sys.executable, "-c", script, server], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["1722", "4"]
