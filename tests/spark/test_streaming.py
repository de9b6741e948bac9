"""A growing folder as a stream: each file once, across restarts, and errors for deleted files."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from shutil import copyfile
from typing import Any

import pytest
from mockraft.spark_replay.capture_paths import NoCaptureError
from mockraft.spark_replay.schemas import MESSAGES
from mockraft.spark_replay.spark.options import SourceOptions

pytestmark = [pytest.mark.spark, pytest.mark.needs_pyspark("4.2")]

FRAMES = {"controller": 1726, "brokers": 931}


class Ring:
    """A folder for arriving captures; each is a second younger than the one before."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._seconds = 1_000_000_000

    def add(self, name: str, content: str | None = None) -> str:
        """Copy a capture (or write some bytes) to `name`."""
        path = self.folder / name
        if content is None:
            path.write_bytes(b"not read here")
        else:
            copyfile(content, path)
        self._seconds += 1
        os.utime(path, (self._seconds, self._seconds))
        return str(path)


@pytest.fixture
def ring(tmp_path: Path) -> Ring:
    (tmp_path / "ring").mkdir()
    return Ring(tmp_path / "ring")


@pytest.fixture
def run(spark: Any, ring: Ring, tmp_path: Path) -> Callable[..., Any]:
    """Run the stream on the current files and return its progress; checkpoint and table stay for the next run."""
    from mockraft.spark_replay.spark import tables
    from mockraft.spark_replay.spark.data_source import register

    def once(**options: object) -> Any:
        register(spark)
        frames = spark.readStream.format("kafka_frames").options(quietSeconds=0, **options).load(str(ring.folder))
        query = (
            tables.messages(frames, body="json")
            .writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start(str(tmp_path / "messages"))
        )
        query.awaitTermination()
        return [each["numInputRows"] for each in query.recentProgress if each["numInputRows"]]

    return once


def test_each_file_is_read_once_over_restarts_and_a_missing_one_is_named(
    spark: Any, run: Callable[..., Any], ring: Ring, controller_capture: str, brokers_capture: str, tmp_path: Path
) -> None:
    from pyspark.errors import StreamingQueryException

    ring.add("b.pcap", controller_capture)
    assert run() == [FRAMES["controller"]]
    ring.add("c.pcap", brokers_capture)
    last = Path(ring.add("a.pcap1", controller_capture))
    ring.add("notes.txt")
    assert run(maxFilesPerTrigger=1) == [FRAMES["brokers"], FRAMES["controller"]]
    counted = spark.read.parquet(str(tmp_path / "messages")).groupBy("server_port", "roundtrip").count().collect()
    assert sorted(tuple(row) for row in counted) == [(19093, True, 3452), (19192, True, 530), (19292, True, 401)]
    # As if it had ended before the last batch was written: that one is read again, and its file is not there.
    for log in (tmp_path / "checkpoint" / "commits", tmp_path / "messages" / "_spark_metadata"):
        for name in ("2", ".2.crc"):
            (log / name).unlink()
    last.unlink()
    with pytest.raises(
        StreamingQueryException, match=r"a\.pcap1 was planned for this batch and no longer exists: restore it"
    ):
        run()


def test_stream_without_a_frame_writes_a_table_with_its_columns(
    spark: Any, run: Callable[..., Any], ring: Ring, controller_capture: str, tmp_path: Path
) -> None:
    ring.add("a.pcap", controller_capture)
    assert run(ports=9) == []
    written = spark.read.parquet(str(tmp_path / "messages"))
    assert (written.count(), written.columns) == (0, MESSAGES.names)


def reader(ring: Ring, **options: str) -> Any:
    from mockraft.spark_replay.spark.stream_reader import CaptureStreamReader

    given = SourceOptions.read(options, levels=("frames",))
    return CaptureStreamReader([str(ring.folder)], given)


def latest(stream: Any, start: dict[str, int], files_max: int | None = None) -> Any:
    """The next offset, with all files that are whole or no more than `files_max`."""
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxFiles

    return stream.latestOffset(start, ReadAllAvailable() if files_max is None else ReadMaxFiles(files_max))


def names(offset: dict[str, int]) -> list[str]:
    assert json.loads(json.dumps(offset)) == offset
    return [Path(path).name for path in offset]


def test_file_is_read_after_a_quiet_period(ring: Ring) -> None:
    stream = reader(ring, quietSeconds="60")
    ring.add("old.pcap")
    young = ring.add("young.pcap")
    os.utime(young)
    first = latest(stream, stream.initialOffset())
    assert names(first) == ["old.pcap"]
    assert latest(stream, first) == first
    os.utime(young, (1_500_000_000, 1_500_000_000))
    assert names(latest(stream, first)) == ["old.pcap", "young.pcap"]


def test_oldest_files_come_first_up_to_the_limit(ring: Ring) -> None:
    stream = reader(ring, maxFilesPerTrigger="2")
    for name in ("z.pcap", "y.pcapng", "x.pcap.gz"):
        ring.add(name)
    assert stream.getDefaultReadLimit().max_files == 2
    first = latest(stream, {}, 2)
    assert names(first) == ["y.pcapng", "z.pcap"]
    assert [Path(each.value[0].path).name for each in stream.partitions({}, first)] == ["y.pcapng", "z.pcap"]
    second = latest(stream, first, 2)
    assert [Path(each.value[0].path).name for each in stream.partitions(first, second)] == ["x.pcap.gz"]
    assert stream.partitions(second, second) == []


def test_available_now_ignores_files_added_after_start(ring: Ring) -> None:
    stream = reader(ring)
    ring.add("a.pcap")
    stream.prepareForTriggerAvailableNow()
    ring.add("b.pcap")
    assert names(latest(stream, {})) == ["a.pcap"]
    assert names(latest(reader(ring), {})) == ["a.pcap", "b.pcap"]


def test_offset_drops_removed_files_when_others_arrive(ring: Ring) -> None:
    stream = reader(ring)
    path = Path(ring.add("a.pcap"))
    first = latest(stream, {})
    path.unlink()
    assert latest(stream, first) == first
    ring.add("b.pcap")
    second = latest(stream, first)
    assert names(second) == ["b.pcap"]
    assert [Path(each.value[0].path).name for each in stream.partitions(first, second)] == ["b.pcap"]


def test_skip_continues_without_a_deleted_file(ring: Ring) -> None:
    end = {ring.add("a.pcap"): 13, str(ring.folder / "gone.pcap"): 13}
    with pytest.raises(NoCaptureError, match=r"gone\.pcap was planned for this batch and no longer exists"):
        reader(ring).partitions({}, end)
    (left,) = reader(ring, onError="skip").partitions({}, end)
    assert Path(left.value[0].path).name == "a.pcap"


def test_bytes_appended_after_reading_are_an_error(ring: Ring) -> None:
    from mockraft.spark_replay.spark.stream_reader import ChangedCaptureError

    path = Path(ring.add("a.pcap"))
    first = latest(reader(ring), {})
    path.write_bytes(b"twice as many bytes as before")
    with pytest.raises(
        ChangedCaptureError, match=r"a\.pcap had 13 bytes when it was read and has 29 now: quietSeconds"
    ):
        latest(reader(ring), first)
    assert latest(reader(ring, onError="skip"), first) == first


def test_missing_folder_is_an_error(ring: Ring) -> None:
    ring.folder.rmdir()
    with pytest.raises(NoCaptureError, match="ring does not exist: a stream needs a folder, a file or a glob"):
        latest(reader(ring), {})
