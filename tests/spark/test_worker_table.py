"""Tables that Python workers write as Parquet: the same rows as Spark's, all of a table or none of it."""

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from mockraft.spark_replay.schemas import FRAMES
from mockraft.spark_replay.storage import Location
from mockraft.spark_replay.storage.staging import OutputError

from ..spark_replay.streams.reassembled import in_order

pytestmark = [pytest.mark.spark]

PORT = 19093
NUMBERS = pa.schema([("number", pa.int64()), ("payload", pa.binary())])


@pytest.fixture
def worker_table() -> Any:
    """The module; imported late, since environments without PySpark collect this file too."""
    from mockraft.spark_replay.spark import worker_table

    return worker_table


def numbered(count: int, start: int = 0) -> pa.RecordBatch:
    numbers = range(start, start + count)
    return pa.RecordBatch.from_pydict({"number": numbers, "payload": [b"%d" % each for each in numbers]}, NUMBERS)


def doubled(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield numbered(2 * batch.num_rows)


def failing(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield numbered(batch.num_rows)
        raise ValueError("the third row is no row")


@pytest.mark.parametrize(
    "shuffled_by", ["files", "Spark: too many bytes", "Spark: too many runs", "Spark: too much in a gzip"]
)
def test_frames_that_workers_write_are_those_of_the_dataframe(
    spark: Any, tmp_path: Path, controller_capture: str, monkeypatch: pytest.MonkeyPatch, shuffled_by: str
) -> None:
    from mockraft.spark_replay.spark import run_exchange, split_tasks, tables
    from mockraft.spark_replay.spark.data_source import to_spark_schema

    if "gzip" in shuffled_by:
        packed = tmp_path / "packed" / "run.pcap.gz"
        packed.parent.mkdir()
        packed.write_bytes(gzip.compress(Path(controller_capture).read_bytes()))
        controller_capture = str(packed)
        monkeypatch.setattr(run_exchange, "BYTES_MAX", packed.stat().st_size)
    elif shuffled_by != "files":
        monkeypatch.setattr(run_exchange, "BYTES_MAX" if "bytes" in shuffled_by else "ROWS_MAX", 1)
    shuffles: list[Any] = []
    by_spark = split_tasks.in_order

    def in_order_by_spark(runs: Any, partitions: int | None) -> Any:
        shuffles.append(runs)
        return by_spark(runs, partitions)

    monkeypatch.setattr(run_exchange, "in_order", in_order_by_spark)
    table = tables.frames_table(spark, controller_capture, ports=[PORT], splitBytes="100k", partitions=3)
    assert table.write_parquet(tmp_path / "frames") == 1726
    assert len(shuffles) == (shuffled_by != "files")
    read = spark.read.parquet(str(tmp_path / "frames"))
    assert read.schema == to_spark_schema(FRAMES)
    assert in_order(read.toArrow()) == in_order(table.dataframe().toArrow())
    assert {each.name for each in tmp_path.iterdir()} - {"packed"} == {"frames"}
    assert (tmp_path / "frames").stat().st_mode & 0o777 == 0o700
    assert {each.stat().st_mode & 0o777 for each in (tmp_path / "frames").glob("*.parquet")} == {0o600}


@pytest.mark.parametrize("batch_bytes", [1, 10_000, 16 << 20])
def test_runs_in_files_give_each_task_its_connections_in_order(
    tmp_path: Path, controller_capture: str, brokers_capture: str, monkeypatch: pytest.MonkeyPatch, batch_bytes: int
) -> None:
    from mockraft.spark_replay import read_frames
    from mockraft.spark_replay.capture_paths import captures
    from mockraft.spark_replay.spark import run_exchange
    from mockraft.spark_replay.spark.options import SourceOptions
    from mockraft.spark_replay.spark.partition_reading import plan_tasks
    from mockraft.spark_replay.spark.split_tasks import packed_splits
    from mockraft.spark_replay.streams.reassembly import Reassembler

    monkeypatch.setattr(run_exchange, "BATCH_BYTES", batch_bytes)
    paths, ports = [brokers_capture, controller_capture], (PORT, 19192, 19292)
    options = SourceOptions.read({"splitBytes": "100k", "chunkBytes": "30k", "ports": ",".join(map(str, ports))})
    tasks = packed_splits(plan_tasks(captures(paths), options))
    both = [range(len(tasks) // 2), range(len(tasks) // 2, len(tasks))]
    rows = [row for some in both for row in written_by_a_task(tasks, options, tmp_path, some)]
    assert {each.stat().st_mode & 0o777 for each in tmp_path.iterdir()} == {0o600}
    sizes, files = run_exchange.sizes_and_files(rows)
    shares = run_exchange.shares(sizes, 3)
    loads = [int(sizes[shares == task].sum()) for task in range(3)]
    assert max(loads) - min(loads) < sizes.max()
    frames: list[pa.RecordBatch] = []
    connections: list[set[int]] = []
    for task in range(3):
        reassembler, seen = Reassembler(sorted_by_connection=True), set()
        for runs in run_exchange.runs_of_task(files, shares, task):
            assert runs.num_rows == 1 or len(runs["data"].buffers()[2]) <= batch_bytes
            seen |= set(runs["conn_id"].to_pylist())
            frames += reassembler.receive(runs)
        frames += reassembler.finish()
        connections.append(seen)
    assert sum(map(len, connections)) == len(set.union(*connections)) > 100
    expected = [batch for path in paths for batch in read_frames(path, ports)]
    assert in_order(pa.Table.from_batches(frames)) == in_order(pa.Table.from_batches(expected))


def written_by_a_task(tasks: Any, options: Any, folder: Path, numbers: range) -> Any:
    from mockraft.spark_replay.spark import run_exchange

    batch = pa.RecordBatch.from_pydict({"id": list(numbers)})
    (written,) = run_exchange.write_runs(tasks, options, str(folder), 1 << 30, iter([batch]))
    return written.to_pylist()


def test_a_table_replaces_the_one_before_only_when_all_of_it_is_there(
    worker_table: Any, spark: Any, tmp_path: Path
) -> None:
    out = tmp_path / "numbers"
    ids = spark.range(8, numPartitions=2)
    assert worker_table.WorkerTable(ids, doubled, NUMBERS).write_parquet(out) == 16
    with pytest.raises(Exception, match="the third row is no row"):
        worker_table.WorkerTable(ids, failing, NUMBERS).write_parquet(out)
    assert pq.read_table(out).num_rows == 16
    assert worker_table.WorkerTable(ids.limit(3), doubled, NUMBERS).write_parquet(out) == 6
    assert pq.read_table(out)["number"].to_pylist() == list(range(6))
    assert {each.name for each in tmp_path.iterdir()} == {"numbers"}


def test_a_table_without_rows_has_its_columns(worker_table: Any, spark: Any, tmp_path: Path) -> None:
    assert worker_table.WorkerTable(spark.range(0), doubled, NUMBERS).write_parquet(tmp_path / "numbers") == 0
    read = pq.read_table(tmp_path / "numbers")
    assert (read.schema, read.num_rows) == (NUMBERS, 0)


def test_a_folder_whose_name_is_a_glob_is_read_back(worker_table: Any, spark: Any, tmp_path: Path) -> None:
    out = tmp_path / "local[2] {a,b}"
    assert worker_table.WorkerTable(spark.range(3), doubled, NUMBERS).write_parquet(out) == 6
    assert worker_table.read_dataframe(spark, out, NUMBERS).count() == 6


def test_a_folder_that_the_driver_does_not_share_with_workers_is_named(
    worker_table: Any, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "another machine"
    elsewhere.mkdir()
    write = worker_table._write_part
    monkeypatch.setattr(
        worker_table, "_write_part", lambda make, schema, _, batches: write(make, schema, str(elsewhere), batches)
    )
    with pytest.raises(OutputError, match=r"numbers: the driver cannot see a part written by a worker; use"):
        worker_table.WorkerTable(spark.range(1), doubled, NUMBERS).write_parquet(tmp_path / "numbers")
    assert not (tmp_path / "numbers").exists()


def test_row_groups_of_a_stored_table_are_shared_out_to_two_tasks_a_core(
    worker_table: Any, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_table, "ROW_GROUP_ROWS", 4)
    for name, start in (("part-00000", 0), ("part-00001", 12), ("part-00002", 24)):
        worker_table.write_parts(
            iter([numbered(4, start), numbered(4, start + 4)]), NUMBERS, Location.parse(tmp_path / f"{name}.parquet")
        )
    stored = worker_table.stored_table(spark, tmp_path, pa.schema([NUMBERS.field("number")]))
    assert stored.source.rdd.getNumPartitions() == 4
    assert stored.dataframe().toArrow()["number"].to_pylist() == [*range(8), *range(12, 20), *range(24, 32)]
    monkeypatch.setattr(worker_table, "GROUPS_MAX", 1)
    assert worker_table.stored_table(spark, tmp_path, stored.schema).source.rdd.getNumPartitions() == 6


def test_a_stored_table_without_rows_has_none_and_without_files_is_an_error(
    worker_table: Any, spark: Any, tmp_path: Path
) -> None:
    with pytest.raises(FileNotFoundError, match="no Parquet files"):
        worker_table.stored_table(spark, tmp_path, NUMBERS)
    worker_table.write_parts(iter(()), NUMBERS, Location.parse(tmp_path / "part-00000.parquet"))
    assert worker_table.stored_table(spark, tmp_path, NUMBERS).dataframe().count() == 0


@pytest.mark.parametrize(("limit", "value"), [("ROW_GROUP_ROWS", 100), ("ROW_GROUP_BYTES", 1_000)])
def test_no_more_than_a_row_group_is_kept(
    worker_table: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, value: int
) -> None:
    monkeypatch.setattr(worker_table, limit, value)
    batches = [numbered(30, start) for start in range(0, 330, 30)]
    assert worker_table.write_parts(iter(batches), NUMBERS, Location.parse(tmp_path / "part.parquet")) == 330
    file = pq.ParquetFile(tmp_path / "part.parquet")
    assert max(file.metadata.row_group(each).num_rows for each in range(file.num_row_groups)) <= 120
    assert file.read()["number"].to_pylist() == list(range(330))


def test_full_disk_error_names_the_file(worker_table: Any) -> None:
    with pytest.raises(OSError, match=r"No space left on device: '/dev/full'"):
        worker_table.write_parts(iter([numbered(1_000)]), NUMBERS, Location.parse("/dev/full"))
