"""The job that test_cluster.py submits: a capture to messages, written by workers; tasks wait midway.

Usage: cluster_job.py OUT FOLDER PORT CAPTURE; OUT is the table's path or URL, FOLDER has `gate` and `origins`.
"""

import sys
import time
from collections.abc import Iterator
from os import getpid
from pathlib import Path

import pyarrow as pa
from mockraft.spark_replay.spark import tables
from pyspark import TaskContext
from pyspark.sql import SparkSession

SPLIT_BYTES = 200 << 10
PARTITIONS = 3
WAIT_S = 600


class Gate:
    """Yield half of a task's first rows, create a file named by process id, and wait for a file `go`.

    The file has the partition's number. The first attempt of partition 0 waits for ever if a file `straggles` exists.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield batch.slice(0, batch.num_rows // 2)
            context = TaskContext.get()
            assert context is not None
            (self._folder / str(getpid())).write_text(str(context.partitionId()))
            self._wait("never" if context.partitionId() == 0 and self._straggles() else "go")
            yield batch.slice(batch.num_rows // 2)

    def _straggles(self) -> bool:
        try:
            (self._folder.parent / "straggles").rename(self._folder.parent / "straggled")
        except FileNotFoundError:
            return False
        return True

    def _wait(self, name: str) -> None:
        deadline = time.monotonic() + WAIT_S
        while not (self._folder / name).exists():
            if time.monotonic() > deadline:
                raise TimeoutError(f"no {self._folder / name} after {WAIT_S} s")
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


def main(out: str, folder: Path, port: str, capture: str) -> None:
    """Write the messages as Parquet, and files of `origins`."""
    spark = SparkSession.builder.getOrCreate()
    frames = tables.frames(spark, capture, partitions=PARTITIONS, ports=port, splitBytes=SPLIT_BYTES)
    messages = tables.messages(frames, "json")
    for step in (Gate(folder / "gate"), Origins(folder / "origins")):
        messages = messages.mapInArrow(step, messages.schema)
    messages.write.parquet(out)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), *sys.argv[3:])
