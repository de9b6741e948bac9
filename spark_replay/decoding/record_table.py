"""The metadata log in captured Fetch responses: a row for each record, in each frame that carried it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from mockraft.codegen.every_release import in_use
from mockraft.spark_replay.arrow_columns import at_least_one
from mockraft.spark_replay.decoding.json_text import json_text
from mockraft.spark_replay.decoding.message_table import cut
from mockraft.spark_replay.decoding.typed_table import decode_typed
from mockraft.spark_replay.schemas import RECORDS
from mockraft.wire import api_keys, metadata_log_frame, record_batch, records, uuids
from mockraft.wire.errors import WireError
from mockraft.wire.message import Message
from mockraft.wire.record_batch import Batch
from mockraft.wire.redaction.messages import masked

_TOPIC: Final = "__cluster_metadata"
_TOPIC_ID: Final = uuids.text_of(bytes(15) + b"\1")
_CONTROL: Final = {
    record_batch.LEADER_CHANGE: "LeaderChangeMessage",
    record_batch.SNAPSHOT_HEADER: "SnapshotHeaderRecord",
    record_batch.SNAPSHOT_FOOTER: "SnapshotFooterRecord",
    record_batch.KRAFT_VERSION: "KRaftVersionRecord",
    record_batch.KRAFT_VOTERS: "VotersRecord",
}
_OF_FRAME: Final = RECORDS.names[: RECORDS.names.index("offset")]


class _Record(NamedTuple):
    """The columns of one record; `error` instead of record, version and body if it cannot be read."""

    offset: int | None
    leader_epoch: int | None
    timestamp_ms: int | None
    record: str | None
    record_version: int | None
    error: str | None
    body: str | None


def decode_records(frames: pa.RecordBatch, *, show_secrets: bool = False) -> pa.RecordBatch:
    """Return the records of the metadata log in a batch of frames, with the columns of `schemas.RECORDS`.

    Records of a batch that was cut at the end of a response are omitted: the replica fetches it again. A batch that
    cannot be read is one row with the `error`. Secrets are `[hidden]` unless `show_secrets`.
    """
    is_fetched = pc.and_(pc.equal(frames.column("api_key"), api_keys.FETCH), frames.column("is_response"))
    fetched = decode_typed(frames.filter(pc.fill_null(is_fetched, False)), "Fetch", show_secrets=True)
    rows: list[int] = []
    found: list[_Record] = []
    for row, data in zip(*_batches(fetched.column("response")), strict=True):
        of_row = list(_records(data, show_secrets))
        rows += [row] * len(of_row)
        found += of_row
    frame = fetched.select(_OF_FRAME).take(pa.array(rows, pa.int64()))
    columns = {name: frame.column(name) for name in frame.schema.names}
    for index, name in enumerate(_Record._fields):
        columns[name] = pa.array([each[index] for each in found], RECORDS.field(name).type)
    return pa.record_batch(columns, schema=RECORDS)


def decode_record_batches(batches: Iterable[pa.RecordBatch], *, show_secrets: bool = False) -> Iterator[pa.RecordBatch]:
    """Call `decode_records` for many batches, cut as for `decode_batches`."""
    parts = (part for batch in batches for part in cut(batch))
    decoded = (decode_records(part, show_secrets=show_secrets) for part in parts)
    yield from at_least_one((batch for batch in decoded if batch.num_rows), RECORDS)


def _batches(responses: pa.StructArray) -> tuple[list[int], list[bytes]]:
    """Return the bytes of record batches of the metadata log, and the row of the response of each."""
    topics = pc.struct_field(responses, "responses")
    rows, topics = pc.list_parent_indices(topics), pc.list_flatten(topics)
    is_log = pc.or_kleene(
        pc.equal(pc.struct_field(topics, "topicId"), _TOPIC_ID), pc.equal(pc.struct_field(topics, "topic"), _TOPIC)
    )
    is_log = pc.fill_null(is_log, False)
    rows, partitions = rows.filter(is_log), pc.struct_field(topics.filter(is_log), "partitions")
    rows, partitions = rows.take(pc.list_parent_indices(partitions)), pc.list_flatten(partitions)
    data = pc.struct_field(partitions, "records")
    has_records = pc.fill_null(pc.greater(pc.binary_length(data), 0), False)
    return rows.filter(has_records).to_pylist(), data.filter(has_records).to_pylist()


def _records(data: bytes, show_secrets: bool) -> Iterator[_Record]:
    try:
        for batch in record_batch.read_batches(data, allow_partial_tail=True):
            yield from (_record(batch, index, show_secrets) for index in range(len(batch.records)))
    except WireError as error:
        yield _Record(None, None, None, None, None, str(error), None)


def _record(batch: Batch, index: int, show_secrets: bool) -> _Record:
    place = batch.base_offset + index, batch.leader_epoch, batch.timestamps_ms[index]
    key, value = batch.records[index]
    try:
        message, version = _control(key, value or b"") if batch.is_control else _metadata(value or b"")
        shown = message if show_secrets else masked(message)
        return _Record(*place, type(message).__name__.removeprefix("_"), version, None, json_text(shown, version))
    except WireError as error:
        return _Record(*place, None, None, str(error), None)


def _metadata(value: bytes) -> tuple[Message, int]:
    at = metadata_log_frame.decode(value, in_use().by_type)
    return at.record, at.version


def _control(key: bytes | None, value: bytes) -> tuple[Message, int]:
    name = _CONTROL.get(kind := record_batch.control_type(key))
    if name is None:
        raise WireError(f"no control record of type {kind} is in the metadata log")
    version = int.from_bytes(value[:2])
    return records.by_name(name).read(value, version), version
