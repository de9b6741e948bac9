"""The tables of a report: Parquet folders, read in batches, or captures, decoded here."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from os import PathLike
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.dataset as ds
from mockraft.files.trees import json_tree
from mockraft.spark_replay import schemas
from mockraft.spark_replay.decoding import decode_record_batches
from mockraft.spark_replay.formats.file_events import OnError
from mockraft.spark_replay.regression.verdict import ReportRow
from mockraft.spark_replay.report.log_events import RECORD_COLUMNS
from mockraft.spark_replay.report.replayed import RESULT_COLUMNS, Replayed
from mockraft.spark_replay.report.traffic import FORWARDED_COLUMNS, MESSAGE_COLUMNS, Traffic
from mockraft.spark_replay.storage import Location, LocationError
from mockraft.spark_replay.storage.listing import exists
from mockraft.spark_replay.storage.whole_files import read_file
from mockraft.wire import api_keys

_BATCH_ROWS = 8_192
RULES = "rules.json"
SUMMARY = "summary.json"

Folder = str | PathLike[str]
"""A folder of tables: a path or a URL."""
OnRows = Callable[[str, int, int | None], None]
"""Progress callback: the table or file, the number of its rows done, and their total (None: unknown)."""


class Captures(NamedTuple):
    """Capture files and the servers' ports in them (none: all).

    TLS connections are read with the secrets in the file `key_log`.
    Damage raises SourceError (`fail`), or is counted and reading continues behind it.
    """

    paths: Sequence[str | PathLike[str]]
    ports: Collection[int] = ()
    on_error: OnError = "fail"
    key_log: str | None = None


class SourceError(ValueError):
    """Raised if a table or capture is missing or cannot be read; the message names it and the reason."""


class Tables:
    """The Parquet tables in a folder: `messages` is the folder `messages`, or the file `messages.parquet`."""

    def __init__(self, folder: Folder) -> None:
        self.folder = Location.parse(folder)

    def path(self, name: str) -> Location | None:
        """Return the location of a table, or None if it is missing. Raises SourceError."""
        try:
            for path in (self.folder / name, self.folder / f"{name}.parquet"):
                if exists(path):
                    return path
        except LocationError as error:
            raise SourceError(str(error)) from None
        return None

    def open(self, name: str, columns: Sequence[str] = ()) -> ds.Dataset:
        """Open a required table with these columns. Raises SourceError."""
        path = self.path(name)
        if path is None:
            raise SourceError(f"{self.folder} has no table {name}: neither {name}/ nor {name}.parquet")
        try:
            found = ds.dataset(path.arrow_path, format="parquet", filesystem=path.file_system())
        except (pa.ArrowInvalid, OSError) as error:
            raise SourceError(f"{path} is not a Parquet table: {str(error).splitlines()[0]}") from None
        missing = [column for column in columns if column not in found.schema.names]
        if missing:
            raise SourceError(f"{path} lacks the columns {', '.join(missing)}")
        return found

    def batches(
        self, name: str, schema: pa.Schema, columns: Sequence[str], where: ds.Expression | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Yield record batches of a table with these columns in the types of `schema`. Raises SourceError."""
        wanted = pa.schema([schema.field(column) for column in columns])
        source = self.open(name, columns)
        options = ds.ParquetFragmentScanOptions(use_buffered_stream=True, pre_buffer=False)
        scanner = source.scanner(
            columns=list(columns),
            filter=where,
            batch_size=_BATCH_ROWS,
            batch_readahead=1,
            fragment_readahead=1,
            fragment_scan_options=options,
        )
        try:
            for batch in scanner.to_batches():
                if batch.num_rows:
                    yield pa.RecordBatch.from_arrays(
                        [_as(batch.column(field.name), field, name) for field in wanted], schema=wanted
                    )
        except (pa.ArrowInvalid, OSError) as error:
            raise SourceError(f"{self.folder} table {name} cannot be read: {str(error).splitlines()[0]}") from None


def traffic_of_tables(folder: Folder, on_rows: OnRows) -> Traffic:
    """Sum up messages and what else is there: forwarded, events, and records or else frames. Raises SourceError.

    Of records and of frames only the events of the metadata log count.
    """
    tables, traffic = Tables(folder), Traffic()
    _add(tables, "messages", schemas.MESSAGES, MESSAGE_COLUMNS, traffic.add_messages, on_rows)
    for name, schema, columns, add in (
        ("forwarded", schemas.FORWARDED, FORWARDED_COLUMNS, traffic.add_forwarded),
        ("conn_events", schemas.CONN_EVENTS, schemas.CONN_EVENTS.names, traffic.events.add_conn_events),
        ("file_events", schemas.FILE_EVENTS, schemas.FILE_EVENTS.names, traffic.add_file_events),
        ("records", schemas.RECORDS, RECORD_COLUMNS, traffic.events.log.add),
    ):
        if tables.path(name) is not None:
            _add(tables, name, schema, columns, add, on_rows)
    if tables.path("records") is None and tables.path("frames") is not None:
        fetched = (ds.field("api_key") == api_keys.FETCH) & ds.field("is_response")
        frames = tables.batches("frames", schemas.FRAMES, schemas.FRAMES.names, fetched)
        for records in decode_record_batches(frames, of_log_only=True):
            traffic.events.log.add(records)
    return traffic


def replay_of_tables(folder: Folder, on_rows: OnRows) -> Replayed:
    """Sum up the tables replay_results and diffs. Raises SourceError."""
    tables, replayed = Tables(folder), Replayed()
    _add(tables, "replay_results", schemas.REPLAY_RESULTS, RESULT_COLUMNS, replayed.add_results, on_rows)
    if tables.path("diffs") is not None:
        _add(tables, "diffs", schemas.DIFFS, schemas.DIFFS.names, replayed.add_diffs, on_rows)
    return replayed


def rules_of(folder: Folder) -> list[dict[str, Any]] | None:
    """Return the rules of a replay, each with how often it fired, if the replay recorded them."""
    rules = _tree_of(folder, RULES)
    if rules is None:
        return None
    if not isinstance(rules, list) or not all(isinstance(rule, dict) and "rule" in rule for rule in rules):
        raise SourceError(f"{RULES} in {folder} is not a list of rules")
    return rules


def verdict_of(folder: Folder) -> ReportRow | None:
    """Return the verdict of a replay, if it has one: the report of `mockraft spark replay --json`."""
    found = _tree_of(folder, SUMMARY)
    if found is None:
        return None
    lists = ("differences", "intended", "masked", "notes", "releases")
    if not isinstance(found, dict) or not all(isinstance(found.get(name), list) for name in lists):
        raise SourceError(f"{SUMMARY} in {folder} is not the report of a replay")
    return found


def _tree_of(folder: Folder, name: str) -> object:
    path = Location.parse(folder) / name
    try:
        return json_tree(read_file(path))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise SourceError(f"{path} cannot be read: {error}") from None


def rows_where(
    folder: Folder, name: str, filters: ds.Expression, columns: Sequence[str], rows_max: int
) -> list[dict[str, Any]]:
    """Return a few rows of a table. Raises SourceError."""
    rows: list[dict[str, Any]] = []
    source = Tables(folder).open(name, columns)
    for batch in source.scanner(columns=list(columns), filter=filters, batch_size=256, batch_readahead=1).to_batches():
        rows += batch.to_pylist()
        if len(rows) >= rows_max:
            break
    return rows[:rows_max]


def _add(
    tables: Tables,
    name: str,
    schema: pa.Schema,
    columns: Sequence[str],
    add: Callable[[pa.RecordBatch], None],
    on_rows: OnRows,
) -> None:
    rows = tables.open(name, columns).count_rows()
    done = 0
    for batch in tables.batches(name, schema, columns):
        add(batch)
        done += batch.num_rows
        on_rows(name, done, rows)


def _as(column: pa.Array, field: pa.Field, table: str) -> pa.Array:
    try:
        return column.cast(field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        reason = str(error).splitlines()[0]
        raise SourceError(f"column {field.name} of {table} is {column.type}, not {field.type}: {reason}") from None
