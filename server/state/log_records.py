"""The metadata log as typed records, and the records that a test appends to it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from typing import TYPE_CHECKING, Final

from mockraft.server.controller.controller import Controller
from mockraft.server.stubs.fields import message_from_tree
from mockraft.server.views import LogRecord, RecordLike
from mockraft.wire import metadata_log_frame, record_batch, records
from mockraft.wire.errors import WireError
from mockraft.wire.message import Message
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.names import did_you_mean
from mockraft.wire.record_batch import Batch

if TYPE_CHECKING:
    from mockraft.wire.json_form import Json

_READ_BYTES: Final = 1 << 20


def read_log(controller: Controller, from_offset: int, limit: int | None) -> Iterator[LogRecord]:
    """Yield the records from an offset on, at most `limit`; a negative offset counts from the end of the log.

    Records before the log's start are skipped. Raise WireError for a record of a newer Kafka.
    """
    log = controller.log
    offset = from_offset + log.end_offset if from_offset < 0 else from_offset
    offset = max(offset, log.start_offset)
    end = log.end_offset if limit is None else min(offset + limit, log.end_offset)
    while offset < end:
        for batch in record_batch.read_batches(log.read(offset, _READ_BYTES)):
            yield from (line for line in _lines(controller, batch) if offset <= line.offset < end)
            offset_after = batch.last_offset + 1
            if offset_after >= end:
                return
        offset = offset_after


def record_at(controller: Controller, given: RecordLike) -> RecordAt:
    """Return a record that a test gives: an object, one with its version, or JSON (`{"type", "version", "record"}`).

    Without a version it gets the one that Kafka would write (`version_of`). `type` is the name in Kafka's spec, or that
    of Kafka's tools (REGISTER_BROKER_RECORD); "data" is accepted for "record", as in their output. Omitted fields have
    their defaults. Raise ValueError if it cannot be read.
    """
    if isinstance(given, RecordAt):
        return given
    if isinstance(given, LogRecord):
        return RecordAt(given.record, given.version)
    if isinstance(given, Mapping):
        return _from_json(controller, given)
    name = type(given).__name__
    if name not in records.TYPES.values():
        raise ValueError(f"{name} is no metadata record: give one of mockraft.wire.records, or its JSON")
    return RecordAt(given, version_of(controller, given))


def records_at(controller: Controller, given: Iterable[RecordLike]) -> list[RecordAt]:
    """Return the records that a test gives. ValueError begins with the one that is wrong (`records[0].type=…`)."""
    found = []
    for index, each in enumerate(given):
        try:
            found.append(record_at(controller, each))
        except ValueError as error:
            names_a_field = str(error).startswith(("type=", "version=", "record"))
            raise ValueError(f"records[{index}]{'.' if names_a_field else ': '}{error}") from error
    return found


def version_of(controller: Controller, record: Message) -> int:
    """Return the version in which Kafka writes a record: by the finalized metadata.version, else the lowest.

    Raise ValueError if no version can express it.
    """
    kind = type(record)
    fixed = controller.image.version.record_versions.get(kind.__name__)
    if fixed is not None:
        return fixed
    refusal = None
    for version in range(kind.min_version, kind.max_version + 1):
        try:
            record.write(version)
        except WireError as error:
            refusal = error
        else:
            return version
    raise ValueError(f"no version of {kind.__name__} can express it: {refusal}")


def _from_json(controller: Controller, tree: Mapping[str, Json]) -> RecordAt:
    name = str(tree.get("type", ""))
    known = {_folded(known): known for known in records.TYPES.values()}
    found = known.get(_folded(name))
    if found is None:
        raise ValueError(f"type={name!r}: unknown metadata record; {did_you_mean(name, sorted(known.values()))}")
    kind = records.by_name(found)
    version = tree.get("version")
    if version is not None and not (isinstance(version, int) and kind.min_version <= version <= kind.max_version):
        raise ValueError(f"version={version!r}: {found} has the versions {kind.min_version} to {kind.max_version}")
    body = tree.get("record", tree.get("data"))
    if not isinstance(body, dict):
        raise ValueError(f"record={body!r}: give the fields of {found} as an object")
    record = message_from_tree(kind, body, "record")
    return RecordAt(record, version_of(controller, record) if version is None else version)


def check_applies(controller: Controller, given: Iterable[RecordAt]) -> None:
    """Raise ValueError for a record that does not fit the state: brokers that read it would fail over it too."""
    image = controller.image
    # Registrations and partitions are values: the trial shares them.
    values: list[object] = [*image.cluster.brokers.values(), *image.cluster.controllers.values()]
    for topic in image.topics.by_id.values():
        values += topic.partitions.values()
    trial = deepcopy(image, {id(value): value for value in values})
    for index, (record, version) in enumerate(given):
        try:
            metadata_log_frame.encode(record, version)
            trial.apply(record, controller.log.end_offset + index)
        except WireError as error:
            raise ValueError(f"records[{index}]: {type(record).__name__} cannot be written: {error}") from error
        except (LookupError, ValueError) as error:
            raise ValueError(f"records[{index}]: {record!r} does not follow from the state: {error!r}") from error


def _folded(name: str) -> str:
    return name.replace("_", "").lower()


def _lines(controller: Controller, batch: Batch) -> Iterator[LogRecord]:
    for index, (key, value) in enumerate(batch.records):
        if batch.is_control:
            kind = records.by_name(record_batch.CONTROL_RECORDS[record_batch.control_type(key)])
            at = RecordAt(kind.read(value or b"", 0), 0)
        else:
            at = controller.log.frames.decode(value or b"")
        yield LogRecord(
            batch.base_offset + index,
            batch.leader_epoch,
            batch.timestamps_ms[index],
            type(at.record).__name__,
            at.version,
            at.record,
        )
