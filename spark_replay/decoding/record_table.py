"""Records in captured Produce requests, Fetch responses and FetchSnapshot responses: a row for each, in each frame.

What cannot be read is a row with the reason: a broken batch, and the rest of its batch for a broken record; reading
continues with the next batch. Rows are yielded as they are read, so that memory depends neither on the number of
records nor on how far they are compressed.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable, Iterator
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from mockraft.codegen.every_release import in_use
from mockraft.spark_replay.arrow_columns import at_least_one
from mockraft.spark_replay.decoding import old_messages
from mockraft.spark_replay.decoding.client_batches import Record, read_records
from mockraft.spark_replay.decoding.json_text import json_text
from mockraft.spark_replay.decoding.message_table import cut
from mockraft.spark_replay.decoding.snapshot_chunks import Chunk, Incomplete, SnapshotChunks
from mockraft.spark_replay.decoding.typed_table import decode_typed
from mockraft.spark_replay.schemas import RECORDS
from mockraft.wire import api_keys, messages, metadata_log_frame, record_batch, records, uuids
from mockraft.wire.errors import WireError
from mockraft.wire.message import Message
from mockraft.wire.record_batch import BatchHeader
from mockraft.wire.redaction.messages import masked
from mockraft.wire.topic_names import CLUSTER_METADATA, CLUSTER_METADATA_ID

RECORD_BYTES_MAX: Final = 64 << 20
"""Upper bound for the bytes of one decompressed batch; Kafka's default for a compressed one is 1 MiB."""

METADATA_TOPIC_ID: Final = uuids.text_of(CLUSTER_METADATA_ID)
_MARKERS: Final = {0: "ABORT", 1: "COMMIT"}
_OF_FRAME: Final = RECORDS.names[: RECORDS.names.index("position")]
_ROWS_MAX, _BYTES_MAX = 8192, 8 << 20


class _Row(NamedTuple):
    """The columns of one record; `error` instead of others if it cannot be read."""

    position: int
    topic: str | None
    topic_id: str | None
    partition: int | None
    snapshot: str | None
    offset: int | None = None
    leader_epoch: int | None = None
    timestamp_ms: int | None = None
    compression: str | None = None
    producer_id: int | None = None
    producer_epoch: int | None = None
    key: bytes | None = None
    value: bytes | None = None
    headers: list[tuple[str, bytes | None]] | None = None
    record: str | None = None
    record_api_key: int | None = None
    record_version: int | None = None
    error: str | None = None
    body: str | None = None

    @property
    def nbytes(self) -> int:
        """Number of bytes of its contents."""
        return len(self.key or b"") + len(self.value or b"") + len(self.body or "") + 20 * len(self.headers or ())


class _Carrier(NamedTuple):
    """An API whose messages have records, and the names of the fields on the way to them."""

    api: str
    api_key: int
    side: str
    topics: str
    topic: str
    topic_id: str | None
    partitions: str
    partition: str
    records: str


_CARRIERS = (
    _Carrier(
        "Produce", api_keys.PRODUCE, "request", "topicData", "name", "topicId", "partitionData", "index", "records"
    ),
    _Carrier(
        "Fetch", api_keys.FETCH, "response", "responses", "topic", "topicId", "partitions", "partitionIndex", "records"
    ),
    _Carrier(
        *("FetchSnapshot", api_keys.FETCH_SNAPSHOT, "response", "topics", "name", None, "partitions", "index"),
        "unalignedRecords",
    ),
)


def decode_record_batches(
    batches: Iterable[pa.RecordBatch],
    *,
    topics: Collection[str] = (),
    show_secrets: bool = False,
    record_bytes_max: int = RECORD_BYTES_MAX,
    of_log_only: bool = False,
) -> Iterator[pa.RecordBatch]:
    """Yield the records in frames, with the columns of `schemas.RECORDS`.

    Frames of one connection come in any order. A batch that was cut at the end of a Fetch response is omitted: the
    replica fetches it again. A batch that decompresses to more than `record_bytes_max` is a row with the `error`.
    Secrets of metadata records are `[hidden]`, and the key and value of such records null, unless `show_secrets`.
    `topics` are names or ids (as in `topic_id`) of those to read (none: all); the records of others are not looked at.
    A message that has only ids is found by id, except for the metadata log. With `of_log_only` only the metadata log in
    Fetch responses is read.
    """
    wanted = [CLUSTER_METADATA] if of_log_only else topics
    reader = _RecordReader(wanted, show_secrets, record_bytes_max, of_log_only)
    yield from at_least_one(reader.read(batches), RECORDS)


class _RecordReader:
    def __init__(self, topics: Collection[str], show_secrets: bool, record_bytes_max: int, of_log_only: bool) -> None:
        self._carriers = [each for each in _CARRIERS if each.api_key == api_keys.FETCH or not of_log_only]
        ids = [METADATA_TOPIC_ID] if CLUSTER_METADATA in topics else []
        self._topics = pa.array([*topics, *ids], pa.string())
        self._show_secrets = show_secrets
        self._record_bytes_max = record_bytes_max
        self._snapshots = SnapshotChunks()

    def read(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for part in cut(batch):
                for carrier in self._carriers:
                    yield from self._read_part(part, carrier)
        for rest in self._snapshots.finish():
            yield _incomplete(rest)

    def _read_part(self, frames: pa.RecordBatch, carrier: _Carrier) -> Iterator[pa.RecordBatch]:
        has_records = pc.and_(
            pc.equal(frames.column("api_key"), carrier.api_key),
            pc.equal(frames.column("is_response"), carrier.side == "response"),
        )
        frames = frames.filter(pc.fill_null(has_records, False))
        if not frames.num_rows:
            return
        decoded = decode_typed(frames, carrier.api, show_secrets=True)
        of_frame = decoded.select(_OF_FRAME)
        rows, partitions = _partitions(decoded.column(carrier.side), carrier, self._topics)
        if carrier.api_key == api_keys.FETCH_SNAPSHOT:
            yield from self._snapshot_pieces(of_frame, rows, partitions)
            return
        output = _Output(of_frame)
        allows_tail = carrier.api_key == api_keys.FETCH
        for row, found in zip(rows, partitions.to_pylist(), strict=True):
            place = _Row(0, *_topic(found["topic"], found["topic_id"]), found["partition"], None)
            for record in self._records(found["records"], place, allows_tail):
                yield from output.add(row, record)
        yield from output.rest()

    def _snapshot_pieces(
        self, of_frame: pa.RecordBatch, rows: list[int], partitions: pa.RecordBatch
    ) -> Iterator[pa.RecordBatch]:
        for row, found in zip(rows, partitions.to_pylist(), strict=True):
            snapshot = f"{found['end_offset']:020}-{found['epoch']:010}"
            connection = of_frame.column("conn_id")[row].as_py(), of_frame.column("incarnation")[row].as_py()
            key = (*connection, found["topic"], found["partition"], snapshot)
            piece = Chunk(of_frame.take(pa.array([row])), found["position"], found["records"])
            for whole in self._snapshots.add(key, piece, found["size"]):
                if isinstance(whole, Incomplete):
                    yield _incomplete(whole)
                    continue
                output = _Output(whole.frame)
                place = _Row(whole.position, *_topic(found["topic"], None), found["partition"], snapshot)
                for record in self._records(whole.data, place, allows_tail=False):
                    yield from output.add(0, record)
                yield from output.rest()

    def _records(self, data: bytes, place: _Row, allows_tail: bool) -> Iterator[_Row]:
        """Yield the records of a partition's bytes, which begin at the position of `place`."""
        position = 0
        while position < len(data):
            is_message = old_messages.is_message(data, position)
            if allows_tail and (old_messages if is_message else record_batch).is_partial(data, position):
                return
            at = place._replace(position=place.position + position)
            if is_message:
                position = yield from self._of_message(data, position, at)
                continue
            try:
                header = record_batch.read_sparse_header(data, position)
            except WireError as error:
                yield at._replace(error=str(error))
                position = _after_broken(data, position)
                continue
            yield from self._of_batch(data, header, at)
            position = header.end

    def _of_message(self, data: bytes, position: int, at: _Row) -> Generator[_Row, None, int]:
        """Yield the records of a message of format 0 or 1; return the position behind it."""
        try:
            message = old_messages.read_message(data, position)
        except WireError as error:
            yield at._replace(error=str(error))
            return _after_broken(data, position)
        at = at._replace(compression=message.compression)
        try:
            for record in old_messages.records_of(message, self._record_bytes_max):
                yield at._replace(**record._asdict())
        except WireError as error:
            yield at._replace(offset=message.record.offset, error=str(error))
        return message.end

    def _of_batch(self, data: bytes, header: BatchHeader, at: _Row) -> Iterator[_Row]:
        at = at._replace(
            leader_epoch=header.leader_epoch,
            compression=header.compression,
            producer_id=header.producer_id,
            producer_epoch=header.producer_epoch,
        )
        try:
            for record in read_records(data, header, self._record_bytes_max):
                yield self._record(at, header, record)
        except WireError as error:
            yield at._replace(offset=header.base_offset, error=str(error))

    def _record(self, at: _Row, header: BatchHeader, record: Record) -> _Row:
        is_metadata = at.topic == CLUSTER_METADATA
        if not (is_metadata or header.is_control):
            return at._replace(**record._asdict())
        shown = record if self._show_secrets else record._replace(key=None, value=None)
        at = at._replace(**shown._asdict())
        try:
            if header.is_control:
                return _control(at, record, is_metadata)
            message, version = metadata_log_frame.decode(record.value or b"", in_use().by_type)
        except WireError as error:
            return at._replace(error=str(error))
        body = json_text(message if self._show_secrets else masked(message), version)
        return _typed(at, message, version, body)


class _Output:
    """Rows of one batch of frames, joined with the columns of their frames."""

    def __init__(self, of_frame: pa.RecordBatch) -> None:
        self._of_frame = of_frame
        self._of_row: list[int] = []
        self._rows: list[_Row] = []
        self._bytes = 0

    def add(self, of_row: int, row: _Row) -> Iterator[pa.RecordBatch]:
        self._of_row.append(of_row)
        self._rows.append(row)
        self._bytes += row.nbytes
        if len(self._rows) >= _ROWS_MAX or self._bytes >= _BYTES_MAX:
            yield from self.rest()

    def rest(self) -> Iterator[pa.RecordBatch]:
        if not self._rows:
            return
        frame = self._of_frame.take(pa.array(self._of_row, pa.int64()))
        columns = {name: frame.column(name) for name in _OF_FRAME}
        for name, values in zip(_Row._fields, zip(*self._rows, strict=True), strict=True):
            columns[name] = pa.array(values, RECORDS.field(name).type)
        self._of_row, self._rows, self._bytes = [], [], 0
        yield pa.record_batch(columns, schema=RECORDS)


def _incomplete(rest: Incomplete) -> pa.RecordBatch:
    *_, topic, partition, snapshot = rest.key
    held = f"; {rest.held_bytes} bytes further on cannot be read without them" if rest.held_bytes else ""
    problem = f"snapshot {snapshot}: bytes {rest.position} to {rest.size} are not all in the capture{held}"
    output = _Output(rest.frame)
    row = _Row(rest.position, str(topic), None, int(str(partition)), str(snapshot), error=problem)
    return next(iter([*output.add(0, row), *output.rest()]))


def _partitions(bodies: pa.StructArray, carrier: _Carrier, wanted: pa.StringArray) -> tuple[list[int], pa.RecordBatch]:
    """Return the partitions with records of the wanted topics (none: all), and the row of the message of each."""
    topics = pc.struct_field(bodies, carrier.topics)
    rows, topics = pc.list_parent_indices(topics), pc.list_flatten(topics)
    partitions = pc.struct_field(topics, carrier.partitions)
    parents, partitions = pc.list_parent_indices(partitions), pc.list_flatten(partitions)
    rows, topics = rows.take(parents), topics.take(parents)
    ids = pc.struct_field(topics, carrier.topic_id) if carrier.topic_id else pa.nulls(len(topics), pa.string())
    columns = {
        "topic": pc.struct_field(topics, carrier.topic),
        "topic_id": ids,
        "partition": pc.struct_field(partitions, carrier.partition),
        "records": pc.struct_field(partitions, carrier.records),
    }
    if carrier.api_key == api_keys.FETCH_SNAPSHOT:
        columns |= {name: pc.struct_field(partitions, name) for name in ("size", "position")}
        snapshot = pc.struct_field(partitions, "snapshotId")
        columns |= {"end_offset": pc.struct_field(snapshot, "endOffset"), "epoch": pc.struct_field(snapshot, "epoch")}
    has_records = pc.fill_null(pc.greater(pc.binary_length(columns["records"]), 0), False)
    if len(wanted):
        of_topics = [pc.is_in(columns[name], value_set=wanted) for name in ("topic", "topic_id")]
        has_records = pc.and_(has_records, pc.or_(*of_topics))
    return rows.filter(has_records).to_pylist(), pa.record_batch(columns).filter(has_records)


def _topic(name: str | None, topic_id: str | None) -> tuple[str | None, str | None]:
    """Return name and id, each null if the message's version lacks it; the metadata topic has its name always."""
    return CLUSTER_METADATA if topic_id == METADATA_TOPIC_ID else name or None, topic_id


def _after_broken(data: bytes, position: int) -> int:
    """Return the position behind a broken batch, as far as its length can be believed."""
    length = int.from_bytes(data[position + 8 : position + 12], signed=True)
    end = position + 12 + length
    return end if length >= old_messages.BYTES_MIN - 12 and end <= len(data) else len(data)


def _control(at: _Row, record: Record, is_metadata: bool) -> _Row:
    kind, value = record_batch.control_type(record.key), record.value or b""
    if kind in _MARKERS and not is_metadata:
        marker = messages.EndTxnMarker.read(value[2:], version := int.from_bytes(value[:2]))
        body = f'{{"type":"{_MARKERS[kind]}",{json_text(marker, version)[1:]}'
        return at._replace(record="EndTxnMarker", record_version=version, body=body)
    if kind not in record_batch.CONTROL_RECORDS:
        raise WireError(f"control record of the unknown type {kind}")
    version = int.from_bytes(value[:2])
    message = records.by_name(record_batch.CONTROL_RECORDS[kind]).read(value, version)
    return _typed(at, message, version, json_text(message, version))


def _typed(at: _Row, message: Message, version: int, body: str) -> _Row:
    name = type(message).__name__.removeprefix("_")
    api_key = message.api_key if message.api_key >= 0 else None
    return at._replace(record=name, record_api_key=api_key, record_version=version, body=body)
