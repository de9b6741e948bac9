"""Options and columns of the Spark sources, which need neither PySpark nor a JVM."""

import re
from dataclasses import fields
from pathlib import Path

import pyarrow as pa
import pytest
from mockraft.spark_replay import schemas
from mockraft.spark_replay.capture_paths import NoCaptureError, capture_paths, loaded_paths
from mockraft.spark_replay.spark.options import LEVELS, OPTIONS, OptionError, SourceOptions
from mockraft.spark_replay.spark.partition_reading import UnsortedRunsError, checked_order

from ..rows import each_row


def test_every_option_is_a_field() -> None:
    plain = {name.replace("_", "").removesuffix("ns") for name in (field.name for field in fields(SourceOptions))}
    assert plain == {name.lower() for name in OPTIONS}


def test_options_are_read_in_any_case_with_units() -> None:
    options = SourceOptions.read(
        {
            "PORTS": "9092, 9093",
            "splitbytes": "16M",
            "timeFrom": "2026-11-20T10:00:00Z",
            "timeTo": "1795168800000000001",
            "level": "frames",
            "apiKeys": "63,Fetch,brokerregistration",
            "includeBytes": "FALSE",
            "path": "x.pcap",
        }
    )
    assert (options.ports, options.split_bytes) == ((9092, 9093), 16 << 20)
    assert (options.time_from_ns, options.api_keys) == (1_795_168_800_000_000_000, (63, 1, 62))
    assert not options.include_bytes


@each_row(
    ("given", "said"),
    [
        ({"port": "9092"}, r"unknown option port=9092 \(did you mean ports\?\); there are: level, ports"),
        ({"ports": "9092,x"}, r"option ports: '9092,x' is not comma-separated ports"),
        ({"ports": "70000"}, r"option ports: '70000' is not"),
        ({"splitBytes": "0"}, r"option splitBytes: '0' is not a size \(64m\)"),
        ({"chunkBytes": "8x"}, r"option chunkBytes: '8x' is not a size"),
        ({"level": "bytes"}, r"option level: 'bytes' is not "),
        ({"onError": "ignore"}, r"option onError: 'ignore' is not fail, quarantine or skip"),
        ({"timeFrom": "yesterday"}, r"option timeFrom: 'yesterday' is not a time"),
        ({"timeFrom": "20", "timeTo": "10"}, r"option timeTo: must be after timeFrom"),
        ({"level": "frames", "apiKeys": "Fetched"}, r"option apiKeys: 'Fetched' is not .*: Kafka has no API"),
        ({"quietSeconds": "-1"}, r"option quietSeconds: '-1' is not"),
    ],
)
def test_invalid_option_is_refused_with_its_value_and_choices(given: dict[str, str], said: str) -> None:
    with pytest.raises(OptionError, match=said):
        SourceOptions.read(given)


def test_paths_are_files_globs_and_folders_each_file_once(tmp_path: Path) -> None:
    for name in ("a.pcap", "b.pcapng.gz", "deep/c.pcap3", "notes.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    here = str(tmp_path)
    assert capture_paths([here]) == [f"{here}/a.pcap", f"{here}/b.pcapng.gz", f"{here}/deep/c.pcap3"]
    assert capture_paths([f"{here}/*.txt"]) == [f"{here}/notes.txt"]
    assert capture_paths([f"{here}/a.pcap", f"file://{here}/*.pcap"]) == [f"{here}/a.pcap"]


@each_row(
    ("path", "said"),
    [("nowhere.pcap", "no capture file at nowhere.pcap"), ("s4://bucket/x.pcap", "unknown scheme s4://")],
)
def test_reports_path_without_captures(path: str, said: str) -> None:
    with pytest.raises(NoCaptureError, match=said):
        capture_paths([path])


def test_a_load_has_one_path_or_several() -> None:
    assert loaded_paths({"path": "a"}) == ["a"]
    assert loaded_paths({"paths": '["a", "b"]'}) == ["a", "b"]
    with pytest.raises(NoCaptureError, match="no path"):
        loaded_paths({})


PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "captured-tables.md").read_text()
_TYPES = {
    "int8": "tinyint",
    "int16": "smallint",
    "int32": "int",
    "int64": "bigint",
    "string": "string",
    "binary": "binary",
    "bool": "boolean",
}


def spark_type(kind: pa.DataType) -> str:
    if pa.types.is_list(kind):
        return f"array<{spark_type(kind.value_type)}>"
    if pa.types.is_struct(kind):
        return f"struct<{','.join(f'{field.name}:{spark_type(field.type)}' for field in kind)}>"
    return _TYPES[str(kind)]


def rows_below(heading: str) -> list[list[str]]:
    section = re.split(r"\n##", PAGE.split(f"# {heading}\n")[1])[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line[:1] == "|"]
    return rows[2:]


def columns_below(heading: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for names, kinds, *_ in rows_below(heading):
        listed = re.findall(r"`(\w+)`", names)
        parts = kinds.split(", ") if len(listed) == kinds.count(", ") + 1 else [kinds] * len(listed)
        found |= dict(zip(listed, parts, strict=True))
    return found


@each_row(
    ("heading", "schema"),
    [
        ("packets", schemas.PACKETS),
        ("runs", schemas.RUNS),
        ("frames", schemas.FRAMES),
        ("messages", schemas.MESSAGES),
        ("exchanges", schemas.EXCHANGES),
        ("conn_events", schemas.CONN_EVENTS),
        ("file_events", schemas.FILE_EVENTS),
    ],
)
def test_every_column_is_there_with_its_type(heading: str, schema: pa.Schema) -> None:
    columns = columns_below(heading)
    if heading == "messages":
        columns |= {name: kind for name, kind in columns_below("frames").items() if name != "frame"}
    assert columns == {field.name: spark_type(field.type) for field in schema}


def test_every_option_is_there_with_its_default_and_every_level() -> None:
    rows = {name: row[1] for row in rows_below("Options") for name in re.findall(r"`(\w+)`", row[0])}
    assert list(rows) == list(OPTIONS)
    for field, (name, result) in zip(fields(SourceOptions), rows.items(), strict=True):
        if result.startswith("`"):
            assert SourceOptions.read({name: result.strip("`")}) == SourceOptions(), field.name
        else:
            assert not field.default
    assert [row[0].split("`")[1] for row in rows_below("Sources and levels")] == list(LEVELS)


@each_row(
    ("connections", "is_sorted"),
    [([[1, 1], [], [2]], True), ([[1, 2, 1]], False), ([[2], [1]], False), ([[-5, -5], [-5, 3]], True)],
)
def test_runs_in_another_order_are_an_error_and_no_loss(connections: list[list[int]], is_sorted: bool) -> None:
    batches = [pa.record_batch({"conn_id": pa.array(each, pa.int64())}) for each in connections]
    batches = [each.append_column("first_ts_ns", pa.array([7] * each.num_rows, pa.int64())) for each in batches]
    if is_sorted:
        assert [*checked_order(batches)] == batches
    else:
        with pytest.raises(UnsortedRunsError, match="ignores sortWithinPartitions"):
            [*checked_order(batches)]
