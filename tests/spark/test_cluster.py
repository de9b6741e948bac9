"""A real cluster: spark-submit to a standalone master and its workers, some killed, with mockraft in an archive."""

import signal
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from mockraft.spark_replay import read_frames
from mockraft.spark_replay.decoding import decode_batches

from ..budgets import soak
from ..spark_replay.ring_files import ring_files
from ..spark_replay.streams.reassembled import in_order
from .standalone_cluster import QUICK_JAVA, StandaloneCluster, standalone_cluster, wait_for, write_archive

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark_processes"), pytest.mark.timeout(900)]

JOB = Path(__file__).with_name("cluster_job.py")
STREAM_JOB = Path(__file__).with_name("stream_job.py")
PORT = 19093
KEY = [(name, "ascending") for name in ("conn_id", "incarnation", "is_response", "frame_no")]
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.driver.memory": "512m",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.extraJavaOptions": QUICK_JAVA,
    "spark.executor.memory": "480m",
    "spark.executor.extraJavaOptions": QUICK_JAVA,
    "spark.sql.execution.arrow.maxBytesPerBatch": "16m",
    # all executors have tasks; what one that is gone had is lost, as on another machine, and not asked for again
    "spark.shuffle.readHostLocalDisk": "false",
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "600s",
    "spark.locality.wait": "0",
    "spark.shuffle.io.maxRetries": "0",
}


class Run:
    """A job of a capture on a cluster, held in the middle of its tasks."""

    def __init__(self, cluster: StandaloneCluster, folder: Path, out: str, capture: str) -> None:
        self.cluster, self.gate, self.origins = cluster, folder / "gate", folder / "origins"
        self.gate.mkdir()
        self.origins.mkdir()
        archive = write_archive(folder / "mockraft.zip")
        cores = {"spark.cores.max": str(len(cluster.workers))}
        words = [out, str(folder), str(PORT), capture]
        self.settings: Mapping[str, str] = SETTINGS | cores
        self.job = cluster.submit(JOB, words, py_files=archive, settings=self.settings)
        self.expected = in_order(pa.Table.from_batches(decode_batches(read_frames(capture, [PORT]))))
        assert len(self.expected) == 1726

    def held(self) -> dict[int, int]:
        """The partitions of the waiting processes, by the number of their worker."""
        waiting = {int(file.name): int(file.read_text() or -1) for file in self.gate.iterdir()}
        found = {}
        for number, worker in enumerate(self.cluster.workers):
            for process in self.cluster.processes_of(worker):
                if process.pid in waiting:
                    found[number] = waiting[process.pid]
        return found

    def wait_until_held(self) -> dict[int, int]:
        count = len(self.cluster.workers)
        wait_for("a task of each worker is in its middle", lambda: len(self.held()) == count, self.job)
        return self.held()

    def go_on(self) -> str:
        """Let all tasks go on, wait for the job, and return what it logged."""
        (self.gate / "go").touch()
        wait_for("the job ends", lambda: self.job.poll() is not None)
        log = self.cluster.log("job")
        assert self.job.returncode == 0, log
        return log


def test_killed_worker_changes_no_result(tmp_path: Path, controller_capture: str) -> None:
    out = str(tmp_path / "messages")
    with standalone_cluster(tmp_path) as cluster:
        run = Run(cluster, tmp_path, out, controller_capture)
        run.wait_until_held()
        cluster.kill(cluster.workers[1])
        assert "Lost executor" in run.go_on()
        assert cluster.workers[0].poll() is None
    assert in_order(pq.read_table(out)) == run.expected

    modules = {line for file in run.origins.iterdir() for line in file.read_text().splitlines()}
    assert len(modules) > 10
    assert {module for module in modules if "/mockraft.zip/mockraft/" not in module} == set()


@pytest.mark.needs_pyspark("4.2")
@soak
def test_driver_restarted_on_its_checkpoint_loses_and_repeats_nothing(tmp_path: Path, controller_capture: str) -> None:
    files = ring_files(Path(controller_capture), tmp_path / "ring", 3)
    words = [str(tmp_path / "ring"), str(tmp_path)]
    with standalone_cluster(tmp_path, workers=3) as cluster:
        assert cluster.run_driver(STREAM_JOB, [*words, "dies", cluster.master]) == -signal.SIGKILL
        cluster.kill(cluster.workers[2])
        assert cluster.run_driver(STREAM_JOB, [*words, "ends", cluster.master]) == 0
    found = [pq.ParquetDataset(tmp_path / name).read() for name in ("frames", "waiting")]
    table = pa.concat_tables([each.select(found[1].column_names) for each in found])
    whole = pa.Table.from_batches(read_frames(files, (PORT,))).sort_by(KEY)
    assert table.sort_by(KEY).combine_chunks().cast(whole.schema).equals(whole.combine_chunks())
    assert found[1].num_rows == 4
