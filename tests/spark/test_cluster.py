"""A real cluster: spark-submit to a standalone master with two workers, mockraft in an archive, one worker killed."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from mockraft.spark_replay import read_frames
from mockraft.spark_replay.decoding import decode_batches

from ..spark_replay.streams.reassembled import in_order
from .standalone_cluster import QUICK_JAVA, StandaloneCluster, standalone_cluster, wait_for, write_archive

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark_processes"), pytest.mark.timeout(900)]

JOB = Path(__file__).with_name("cluster_job.py")
PORT = 19093
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.driver.memory": "512m",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.extraJavaOptions": QUICK_JAVA,
    "spark.executor.memory": "480m",
    "spark.executor.extraJavaOptions": QUICK_JAVA,
    "spark.sql.execution.arrow.maxBytesPerBatch": "16m",
    # both executors have tasks; what one that is gone had is lost, as on another machine, and not asked for again
    "spark.shuffle.readHostLocalDisk": "false",
    "spark.cores.max": "2",
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "600s",
    "spark.locality.wait": "0",
    "spark.shuffle.io.maxRetries": "0",
}


def all_held(cluster: StandaloneCluster, gate: Path) -> bool:
    """Return True if a process of each worker waits in the middle of a task."""
    waiting = {int(file.name) for file in gate.iterdir()}
    if len(waiting) < len(cluster.workers):
        return False
    return all(waiting & {each.pid for each in cluster.processes_of(worker)} for worker in cluster.workers)


def test_killed_worker_changes_no_result(tmp_path: Path, controller_capture: str) -> None:
    gate, origins = tmp_path / "gate", tmp_path / "origins"
    gate.mkdir()
    origins.mkdir()
    with standalone_cluster(tmp_path) as cluster:
        archive = write_archive(tmp_path / "mockraft.zip")
        arguments = [str(tmp_path), str(gate), str(PORT), controller_capture]
        job = cluster.submit(JOB, arguments, py_files=archive, settings=SETTINGS)
        expected = in_order(pa.Table.from_batches(decode_batches(read_frames(controller_capture, [PORT]))))
        wait_for("a task of each worker is in its middle", lambda: all_held(cluster, gate), job)
        cluster.kill(cluster.workers[1])
        (gate / "go").touch()
        wait_for("the job ends", lambda: job.poll() is not None)
        assert job.returncode == 0, cluster.log("job")
        assert "Lost executor" in cluster.log("job")
        assert cluster.workers[0].poll() is None
    assert len(expected) == 1726
    assert in_order(pq.read_table(tmp_path / "messages")) == expected
    assert not list(tmp_path.glob(".messages*")), "what the killed ones had written"

    modules = {line for file in origins.iterdir() for line in file.read_text().splitlines()}
    assert len(modules) > 10
    assert {module for module in modules if "/mockraft.zip/mockraft/" not in module} == set()
