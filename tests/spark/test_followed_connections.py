"""Streams that follow connections from file to file: the same rows as a batch, and what waits is counted."""

import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from mockraft.spark_replay import read_frames
from mockraft.spark_replay.formats import read_segments
from mockraft.spark_replay.spark.options import SourceOptions
from mockraft.spark_replay.streams.runs import make_runs

from ..spark_replay.ring_files import ring_files

pytestmark = pytest.mark.spark

JOB = Path(__file__).with_name("stream_job.py")
KEY = [(name, "ascending") for name in ("conn_id", "incarnation", "is_response", "frame_no")]
OPTIONS = SourceOptions.read({"level": "frames", "ports": "19093"}, levels=("frames",))


def driver(folder: Path, out: Path, end: str) -> int:
    command = [sys.executable, str(JOB), str(folder), str(out), end]
    return subprocess.run(command, start_new_session=True, check=False, capture_output=True).returncode


@pytest.mark.needs_pyspark("4.2")
def test_driver_killed_in_a_batch_loses_and_repeats_nothing(tmp_path: Path, controller_capture: str) -> None:
    files = ring_files(Path(controller_capture), tmp_path / "ring", 2)
    assert driver(tmp_path / "ring", tmp_path, "dies") == -signal.SIGKILL
    assert driver(tmp_path / "ring", tmp_path, "ends") == 0
    found = [pq.ParquetDataset(tmp_path / name).read(columns=None) for name in ("frames", "waiting")]
    table = pa.concat_tables([each.select(found[1].column_names) for each in found])
    whole = pa.Table.from_batches(read_frames(files, (19093,))).sort_by(KEY)
    assert table.sort_by(KEY).combine_chunks().cast(whole.schema).equals(whole.combine_chunks())
    assert found[1].num_rows == 4


class State:
    """Spark's GroupState, in memory."""

    def __init__(self) -> None:
        self.saved: Any = None

    @property
    def exists(self) -> bool:
        return self.saved is not None

    @property
    def get(self) -> Any:
        return self.saved

    def update(self, saved: Any) -> None:
        self.saved = saved


def stepped(
    files: list[Path], state: State, table: Any = "frames", options: SourceOptions = OPTIONS, buckets: int = 1
) -> list[dict[str, Any]]:
    """The rows that one bucket makes of files, one file a micro-batch."""
    from mockraft.spark_replay.spark import followed_connections as followed

    rows: list[dict[str, Any]] = []
    for file in files:
        runs = (make_runs(segments, (19093,)) for segments in read_segments(str(file), ports=(19093,)))
        # The order of rows within a micro-batch is not Spark's to keep.
        packed = pa.Table.from_batches([*followed._pack(1, runs)]).to_pandas()[::-1]
        for made in followed._step(table, options, buckets, (0,), iter([packed]), state):
            rows += [row for data in made["packed"] for batch in followed._batches(data) for row in batch.to_pylist()]
    return rows


def test_connections_beyond_the_limit_are_ended_and_counted(
    tmp_path: Path, controller_capture: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mockraft.spark_replay.spark import followed_connections as followed

    files = ring_files(Path(controller_capture), tmp_path / "ring", 3)
    monkeypatch.setattr(followed, "STATE_BYTES_MAX", 12_000)
    state = State()
    events = stepped(files, state, "conn_events")
    evicted = [row for row in events if row["kind"] == "evicted"]
    assert evicted
    assert evicted[0]["detail"] == "the open connections take more than 12000 bytes in all buckets"
    assert len(state.saved[0]) < 12_000
    # Nothing is silent: each frame is a row, also those whose other half came later.
    assert len(stepped(files, State())) >= 1700


@pytest.mark.parametrize("change", ["buckets", "policies", "version"])
def test_checkpoint_of_other_settings_is_refused_by_name(
    tmp_path: Path, controller_capture: str, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    from mockraft.spark_replay.spark import followed_connections as followed

    files = ring_files(Path(controller_capture), tmp_path / "ring", 2)
    state = State()
    stepped(files[:1], state)
    options = replace(OPTIONS, max_frame_bytes=1 << 20) if change == "policies" else OPTIONS
    if change == "version":
        monkeypatch.setattr("importlib.metadata.version", lambda _: "9.9")
    with pytest.raises(followed.OtherStateError, match=f"were saved with {change} .* a new checkpointLocation"):
        stepped(files[1:], state, options=options, buckets=2 if change == "buckets" else 1)


def test_number_of_files_a_batch_may_change(tmp_path: Path, controller_capture: str) -> None:
    files = ring_files(Path(controller_capture), tmp_path / "ring", 2)
    state = State()
    rows = stepped(files[:1], state)
    rows += stepped(files[1:], state, options=replace(OPTIONS, max_files_per_trigger=3))
    assert len(rows) == 1722
