"""docs/captured-tables.md names every column, option and level there is."""

import re
from dataclasses import fields
from pathlib import Path

import pyarrow as pa
import pytest
from mockraft.spark_replay import schemas
from mockraft.spark_replay.spark.options import LEVELS, OPTIONS, SourceOptions

PAGE = (Path(__file__).parents[2] / "docs" / "captured-tables.md").read_text()
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


@pytest.mark.parametrize(
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
    for field, (name, told) in zip(fields(SourceOptions), rows.items(), strict=True):
        if told.startswith("`"):
            assert SourceOptions.read({name: told.strip("`")}) == SourceOptions(), field.name
        else:
            assert not field.default
    assert [row[0].split("`")[1] for row in rows_below("Sources and levels")] == list(LEVELS)
