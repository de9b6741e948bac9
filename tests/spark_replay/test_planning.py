"""Planning of many files: what the driver opens, how many tasks there are, and its memory."""

import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from mockraft.spark_replay.capture_paths import captures
from mockraft.spark_replay.formats import Split, plan_splits
from mockraft.spark_replay.spark import partition_reading
from mockraft.spark_replay.spark.options import SourceOptions
from mockraft.spark_replay.spark.partition_reading import TASKS_MIN, SplitTask, plan_tasks
from mockraft.spark_replay.storage.listing import StoredFile

from ..budgets import budget
from ..rows import each_row
from ..s3_server import s3_server

CAPTURE = Path(__file__).parents[1] / "captures" / "controller-4.3.1.pcap"
MEBIBYTE = 1 << 20
DEFAULTS = SourceOptions()


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that planning opens."""
    paths: list[str] = []

    def plan(path: str, *how: Any) -> list[Split]:
        paths.append(path)
        return plan_splits(path, *how)

    monkeypatch.setattr(partition_reading, "plan_splits", plan)
    return paths


def starts(tasks: list[SplitTask]) -> list[tuple[str, int]]:
    return [(split.path, split.start) for task in tasks for split in task.splits]


def test_few_files_have_a_task_each() -> None:
    files = [StoredFile(f"{number}.pcap", 1, 0) for number in range(TASKS_MIN)]
    assert [len(task.splits) for task in plan_tasks(files, DEFAULTS)] == [1] * TASKS_MIN
    assert plan_tasks([], DEFAULTS) == []


def test_many_small_files_share_tasks_in_their_order_and_are_not_opened(opened: list[str]) -> None:
    files = [StoredFile(f"{number:05}.pcap", number % 7 * MEBIBYTE, 0) for number in range(10_000)]
    tasks = plan_tasks(files, DEFAULTS)
    assert TASKS_MIN < len(tasks) < 2_000
    assert max(task.size for task in tasks) <= DEFAULTS.split_bytes
    assert sum(task.size for task in tasks) == sum(file.size for file in files)
    assert starts(tasks) == [(file.path, 0) for file in files]
    assert opened == []


@pytest.mark.parametrize("split_bytes", [100_000, 400_000])
def test_a_large_file_among_small_ones_has_tasks_of_its_own(opened: list[str], split_bytes: int) -> None:
    content = CAPTURE.stat().st_size
    files = [StoredFile("a.pcap", 24, 0), StoredFile(str(CAPTURE), content, 0), StoredFile("z.pcap", 24, 0)]
    options = SourceOptions(split_bytes=split_bytes)
    tasks = plan_tasks(files, options)
    alone = [(split.path, split.start) for split in plan_splits(CAPTURE, split_bytes)]
    assert starts(tasks) == [("a.pcap", 0), *alone, ("z.pcap", 0)]
    assert sum(task.size for task in tasks) == content + 48
    assert opened == [str(CAPTURE)]


@each_row(("index", "first"), [("auto", 0), ("exact", 1)])
def test_a_small_file_has_the_split_that_opening_it_gives(index: str, first: int) -> None:
    options = SourceOptions.read({"splitIndex": index})
    (task,) = plan_tasks(captures([str(CAPTURE)]), options)
    assert task.splits == plan_splits(CAPTURE, options.split_bytes, options.split_index)
    assert task.splits[0].first_packet_no == first


def test_planning_a_bucket_of_small_files_sends_only_listings() -> None:
    with s3_server("caps") as s3:
        for number in range(30):
            s3.put(f"s3://caps/edge/{number:02}.pcap", CAPTURE.read_bytes()[:24])
        assert len(plan_tasks(captures(["s3://caps/edge"]), DEFAULTS)) == 30
        assert [each for each in s3.requests if each.method == "GET" and each.path.endswith(".pcap")] == []
        assert len(s3.requests) <= 3
        s3.put("s3://caps/edge/large.pcap", CAPTURE.read_bytes())
        options = SourceOptions(split_bytes=200_000)
        large = plan_tasks(captures(["s3://caps/edge/large.pcap"]), options)
        assert len(large) == len(plan_splits(CAPTURE, 200_000)) > 2


def test_a_catalogue_is_planned_in_little_memory(tmp_path: Path, opened: list[str]) -> None:
    """The full budget is that of docs/explanation/captures-at-volume.md."""
    count, header = budget(2_000, 100_000), CAPTURE.read_bytes()[:24]
    # Kept: pathlib interns names, and Python's table of them, which all tests fill, may grow by 8 MB for new ones.
    files = [tmp_path / f"day={number // 1_000:03}" / f"edge-{number:06}.pcap" for number in range(count)]
    for file in files:
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(header)
    tracemalloc.start()
    try:
        tasks = plan_tasks(captures([str(tmp_path)]), DEFAULTS)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert sum(len(task.splits) for task in tasks) == count
    assert TASKS_MIN < len(tasks) < TASKS_MIN + count / 12
    assert peak_bytes < 2_000 * count
    assert opened == []
