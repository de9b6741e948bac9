"""The metadata log as typed records, and records as a test words them on their way into it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from mockraft.server.controller.controller import Controller
from mockraft.server.state.views import LogRecord
from mockraft.wire import metadata_log_frame, record_batch, records
from mockraft.wire.errors import WireError
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.record_batch import Batch

_READ_BYTES: Final = 1 << 20
_CONTROL_RECORDS: Final = {
    record_batch.LEADER_CHANGE: "LeaderChangeMessage",
    record_batch.SNAPSHOT_HEADER: "SnapshotHeaderRecord",
    record_batch.SNAPSHOT_FOOTER: "SnapshotFooterRecord",
    record_batch.KRAFT_VERSION: "KRaftVersionRecord",
    record_batch.KRAFT_VOTERS: "VotersRecord",
}


def read_log(controller: Controller, from_offset: int, limit: int | None) -> Iterator[LogRecord]:
    """The records from an offset on, at most `limit`; a negative offset counts from the end of the log.

    What retention dropped is left out. WireError for a record of a newer Kafka.
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


def record_at(controller: Controller, told: Any) -> RecordAt:
    """A record as a test gives it: an object, one with its version, or JSON (`{"type", "version", "record"}`).

    Without a version it is written as Kafka would (`version_of`). `type` is the name of
    Kafka's spec, or in the words of Kafka's tools (REGISTER_BROKER_RECORD); "data" does for "record", as they say it.
    Fields that are left out have their defaults.
    ValueError where it cannot be read.
    """
    if isinstance(told, RecordAt):
        return told
    if isinstance(told, LogRecord):
        return RecordAt(told.record, told.version)
    if isinstance(told, Mapping):
        return _from_json(controller, told)
    name = type(told).__name__
    if name not in records.TYPES.values():
        raise ValueError(f"{name} is no metadata record: give one of mockraft.wire.records, or its JSON")
    return RecordAt(told, version_of(controller, told))


def records_at(controller: Controller, told: Iterable[Any]) -> list[RecordAt]:
    """The records that a test says. ValueError whose text begins with the one that is wrong (`records[0].type=…`)."""
    found = []
    for index, each in enumerate(told):
        try:
            found.append(record_at(controller, each))
        except ValueError as error:
            names_a_field = str(error).startswith(("type=", "version=", "record"))
            raise ValueError(f"records[{index}]{'.' if names_a_field else ': '}{error}") from error
    return found


def version_of(controller: Controller, record: Any) -> int:
    """The version in which Kafka writes a record: what the finalized metadata.version fixes, else the lowest that can.

    ValueError where no version can say it.
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
    raise ValueError(f"no version of {kind.__name__} can say this: {refusal}")


def _from_json(controller: Controller, tree: Mapping[str, Any]) -> RecordAt:
    from mockraft.server.stubs.fields import message_from_tree

    name = str(tree.get("type", ""))
    known = {_folded(known): known for known in records.TYPES.values()}
    found = known.get(_folded(name))
    if found is None:
        names = ", ".join(sorted(known.values()))
        raise ValueError(f"type={name!r}: no metadata record is called so; there are {names}")
    kind = records.by_name(found)
    version = tree.get("version")
    if version is not None and not (isinstance(version, int) and kind.min_version <= version <= kind.max_version):
        raise ValueError(f"version={version!r}: {found} has the versions {kind.min_version} to {kind.max_version}")
    body = tree.get("record", tree.get("data"))
    if not isinstance(body, dict):
        raise ValueError(f"record={body!r}: give the fields of {found} as an object")
    record = message_from_tree(kind, body, "record")
    return RecordAt(record, version_of(controller, record) if version is None else version)


def check_applies(controller: Controller, told: Iterable[RecordAt]) -> None:
    """ValueError for a record that makes no sense as the state is: brokers that read it would break over it too."""
    from copy import deepcopy

    image = controller.image
    # Registrations and partitions are values: the trial shares them.
    values: list[Any] = [*image.cluster.brokers.values(), *image.cluster.controllers.values()]
    for topic in image.topics.by_id.values():
        values += topic.partitions.values()
    trial = deepcopy(image, {id(value): value for value in values})
    for index, (record, version) in enumerate(told):
        try:
            metadata_log_frame.encode(record, version)
            trial.apply(record, controller.log.end_offset + index)
        except WireError as error:
            raise ValueError(f"records[{index}]: {type(record).__name__} cannot be written: {error}") from error
        except (AssertionError, LookupError) as error:
            raise ValueError(f"records[{index}]: {record!r} does not follow from the state: {error!r}") from error


def _folded(name: str) -> str:
    return name.replace("_", "").lower()


def _lines(controller: Controller, batch: Batch) -> Iterator[LogRecord]:
    decode: Callable[[bytes], RecordAt] = metadata_log_frame.decode
    overlay = controller.config.overlay
    if overlay is not None:
        from mockraft.wire.overlaid_records import OverlaidRecords

        decode = OverlaidRecords(overlay).decode
    for index, (key, value) in enumerate(batch.records):
        if batch.is_control:
            kind = records.by_name(_CONTROL_RECORDS[record_batch.control_type(key)])
            at = RecordAt(kind.read(value or b"", 0), 0)
        else:
            at = decode(value or b"")
        yield LogRecord(
            batch.base_offset + index,
            batch.leader_epoch,
            batch.timestamps_ms[index],
            type(at.record).__name__,
            at.version,
            at.record,
        )
