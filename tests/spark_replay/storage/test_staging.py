"""Publishing tables on a disk and in a bucket: all of the new one or all of the earlier one, whatever fails."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from mockraft.spark_replay.report.sources import SourceError, Tables
from mockraft.spark_replay.storage import Location
from mockraft.spark_replay.storage.staging import OutputError, Staging, table_files
from mockraft.spark_replay.storage.whole_files import create_folder, open_for_writing, write_file

from ...s3_server import S3Server


def stage(out: Location, *numbers: int) -> tuple[Staging, list[str]]:
    """Begin a table, with a part for each number."""
    staging = Staging.begin(out)
    names = [f"{number:05}-attempt.parquet" for number in numbers]
    for number, name in zip(numbers, names, strict=True):
        with open_for_writing(staging.parts / name) as file:
            pq.write_table(pa.table({"number": [number]}), file)
    return staging, names


def write(out: Location, *numbers: int) -> None:
    staging, names = stage(out, *numbers)
    staging.publish(names)
    staging.end()


def read(out: Location) -> list[int]:
    """The numbers of the table, as readers here find them."""
    tables = [pq.read_table(file.arrow_path, filesystem=file.file_system()) for file in table_files(out)]
    return [number for table in tables for number in table["number"].to_pylist()]


@pytest.fixture(params=["disk", "bucket"])
def out(request: pytest.FixtureRequest, tmp_path: Path, s3: S3Server) -> Location:
    return Location.parse(tmp_path / "tables" / "numbers" if request.param == "disk" else "s3://caps/tables/numbers")


def test_a_table_replaces_the_earlier_one_and_no_other_file_remains(out: Location) -> None:
    write(out, 1, 2, 3)
    assert read(out) == [1, 2, 3]
    write(out, 4)
    assert read(out) == [4]
    listed = out.file_system().get_file_info(pa.fs.FileSelector(out.parent.arrow_path, recursive=True))
    assert len([info for info in listed if info.is_file]) == 2


def test_parts_of_a_killed_driver_are_in_no_table_and_are_deleted_by_the_next_job(out: Location) -> None:
    write(out, 1)
    staging, names = stage(out, 2, 3)
    assert read(out) == [1]
    assert not {file.name for file in table_files(out)} & {*names}
    staging, names = stage(out, 4, 5)
    write_file(staging.parts / "00005-other-attempt.parquet", b"of an attempt that was not counted")
    staging.publish(names)
    staging.end()
    assert read(out) == [4, 5]


def test_a_refused_copy_leaves_the_earlier_table(s3: S3Server) -> None:
    out = Location.parse("s3://caps/tables/numbers")
    write(out, 1)
    before = s3.keys("caps")
    staging, names = stage(out, 2, 3, 4)
    s3.refuses = lambda method, path: method == "PUT" and "/numbers/part-00001" in path
    with pytest.raises(OutputError, match=r"s3://caps/tables/numbers cannot be written: .*ACCESS_DENIED"):
        staging.publish(names)
    staging.end()
    assert s3.keys("caps") == before
    assert read(out) == [1]


def test_a_table_whose_driver_was_killed_while_it_was_published_is_refused(s3: S3Server) -> None:
    for name in ("part-00000-a.parquet", "part-00001-a.parquet"):
        s3.put(f"s3://caps/tables/numbers/{name}", b"whatever")
    out = Location.parse("s3://caps/tables/numbers")
    with pytest.raises(
        OutputError, match=r"numbers has no _SUCCESS: the job that wrote it did not end; write it again"
    ):
        table_files(out)
    with pytest.raises(SourceError, match="has no _SUCCESS"):
        Tables("s3://caps/tables").open("numbers")


def test_files_beside_those_that_were_published_are_not_read(s3: S3Server) -> None:
    out = Location.parse("s3://caps/tables/numbers")
    write(out, 1, 2)
    s3.put("s3://caps/tables/numbers/part-00000-killed.parquet", b"half")
    assert read(out) == [1, 2]
    assert len(json.loads(s3.content("caps", "tables/numbers/_SUCCESS"))["files"]) == 2


def test_missing_bucket_is_an_error_before_the_work(s3: S3Server) -> None:
    with pytest.raises(FileNotFoundError, match="no such bucket"):
        create_folder(Location.parse("s3://nobody/tables"))


def test_a_refused_rename_leaves_the_earlier_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = Location.parse(tmp_path / "numbers")
    write(out, 1)
    staging, names = stage(out, 2)
    rename = Path.rename

    def refuses(source: Path, target: str) -> Path:
        if source.name == "table":
            raise PermissionError(13, "Permission denied", str(source))
        return rename(source, target)

    monkeypatch.setattr(Path, "rename", refuses)
    with pytest.raises(PermissionError):
        staging.publish(names)
    staging.end()
    assert read(out) == [1]


def test_a_table_that_a_killed_driver_had_moved_away_comes_back(tmp_path: Path) -> None:
    out = Location.parse(tmp_path / "numbers")
    write(out, 1)
    staging, _ = stage(out, 2)
    Path(out.path).rename((staging.parts / "before").path)
    Staging.begin(out).end()
    assert read(out) == [1]
