"""The job that test_cluster.py submits: a capture to messages, written by workers; tasks wait midway.

Usage: cluster_job.py OUT GATE PORT CAPTURE
"""

import sys
import time
from collections.abc import Iterator
from os import getpid
from pathlib import Path

import pyarrow as pa
from mockraft.spark_replay.schemas import MESSAGES
from mockraft.spark_replay.spark import tables
from pyspark.sql import SparkSession

SPLIT_BYTES = 200 << 10
PARTITIONS = 3
WAIT_S = 600


class Gate:
    """Yield half of a task's first rows, create a file named by process id, and wait for a file `go`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield batch.slice(0, batch.num_rows // 2)
            (self._folder / str(getpid())).touch()
            self._wait()
            yield batch.slice(batch.num_rows // 2)

    def _wait(self) -> None:
        deadline = time.monotonic() + WAIT_S
        while not (self._folder / "go").exists():
            if time.monotonic() > deadline:
                raise TimeoutError(f"no {self._folder / 'go'} after {WAIT_S} s")
            time.sleep(0.02)


class Origins:
    """Pass rows through, and write a file with the origin of our modules in this process, one per line."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import mockraft.spark_replay.decoding
        import mockraft.wire.messages

        mockraft.wire.messages.request(63)
        yield from batches
        ours = {name: module for name, module in sys.modules.items() if name.split(".")[0] == "mockraft"}
        # Classes of dropped versions are made at run time: only their modules have no file.
        files = [module.__file__ or "" for name, module in ours.items() if not name.startswith("mockraft.overlays.")]
        (self._folder / str(getpid())).write_text("\n".join(files))


def main(out: Path, gate: Path, port: str, capture: str) -> None:
    """Write the messages as Parquet, and files of `origins`."""
    spark = SparkSession.builder.getOrCreate()
    frames = tables.frames_table(spark, capture, partitions=PARTITIONS, ports=port, splitBytes=SPLIT_BYTES)
    messages = tables.messages_table(frames).then(Gate(gate), MESSAGES).then(Origins(out / "origins"), MESSAGES)
    messages.write_parquet(out / "messages")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:])
