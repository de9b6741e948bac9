"""Tables that Python workers write as Parquet: the same rows as Spark's, all of a table or none of it."""

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


def test_frames_that_workers_write_are_those_of_the_dataframe(
    spark: Any, tmp_path: Path, controller_capture: str
) -> None:
    from mockraft.spark_replay.spark import tables
    from mockraft.spark_replay.spark.data_source import to_spark_schema

    table = tables.frames_table(spark, controller_capture, ports=[PORT], splitBytes="100k", partitions=3)
    assert table.write_parquet(tmp_path / "frames") == 1726
    read = spark.read.parquet(str(tmp_path / "frames"))
    assert read.schema == to_spark_schema(FRAMES)
    assert in_order(read.toArrow()) == in_order(table.dataframe().toArrow())
    assert {each.name for each in tmp_path.iterdir()} == {"frames"}
    assert (tmp_path / "frames").stat().st_mode & 0o777 == 0o700
    assert {each.stat().st_mode & 0o777 for each in (tmp_path / "frames").glob("*.parquet")} == {0o600}


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


def test_a_stored_table_has_a_task_for_each_file(worker_table: Any, spark: Any, tmp_path: Path) -> None:
    for name, start in (("part-00000", 0), ("part-00001", 8)):
        file = Location.parse(tmp_path / f"{name}.parquet")
        worker_table.write_parts(iter([numbered(4, start), numbered(4, start + 4)]), NUMBERS, file)
    stored = worker_table.stored_table(spark, tmp_path, pa.schema([NUMBERS.field("number")]))
    assert stored.source.rdd.getNumPartitions() == 2
    assert stored.dataframe().toArrow()["number"].to_pylist() == [*range(16)]


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
