"""The whole state of a controller as one file: a snapshot of the metadata log as Kafka writes it.

The snapshot's id (in Kafka: its file name) and the cluster id are in a NoOpRecord's tagged field, so that the file may
have any name and Kafka's tools still read it. A snapshot from a Kafka data directory is also accepted.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, TypedDict

from mockraft.files.private_files import write_private
from mockraft.files.trees import json_tree
from mockraft.releases import METADATA_VERSION
from mockraft.server.controller.image import Image
from mockraft.server.controller.log import limits, snapshot
from mockraft.server.controller.log.metadata_log import MetadataLog
from mockraft.server.controller.log.snapshot import Snapshot, SnapshotId
from mockraft.server.controller.quorum.voter_set import control_records
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.records.no_op_record import NoOpRecord
from mockraft.wire.records.register_controller_record import RegisterControllerRecord
from mockraft.wire.redaction.messages import masked

if TYPE_CHECKING:
    from mockraft.server.controller.context import ControllerContext

_ABOUT_TAG: Final = 7_777
_NO_CLUSTER_ID: Final = ""


class AboutState(TypedDict, total=False):
    """Note in a state file; with `controllers` the registrations of other controllers are part of the state."""

    clusterId: str
    endOffset: int
    controllers: bool


class SavedState(NamedTuple):
    """Content of a state file. `cluster_id` is "" if the file does not have it (a snapshot of Kafka's)."""

    id: SnapshotId
    cluster_id: str
    records: list[RecordAt]


def state_writer(controller: ControllerContext, now_ms: int, *, show_secrets: bool) -> Callable[[Path], Path]:
    """Return a function that saves the controller's state as it is now, in any thread.

    It returns the path: in a directory the file gets Kafka's name. It raises OSError when it cannot write it.
    """
    log, image = controller.log, controller.image.copy()
    snapshot_id = SnapshotId(log.end_offset, log.last_epoch)
    about: AboutState = {"clusterId": controller.config.cluster_id, "endOffset": snapshot_id.end_offset}

    def write(path: Path) -> Path:
        records = [*image.to_records(image.metadata_version), _note(about)]
        if not show_secrets:
            records = [at._replace(record=masked(at.record)) for at in records]
        path = path / snapshot_id.file_name if path.is_dir() else path
        write_private(path, encode(snapshot_id, records, log, now_ms))
        return path

    return write


def write_saved(path: Path, state: SavedState, now_ms: int) -> None:
    """Write a state that is of no controller of this process, with secrets and all registrations. OSError."""
    about: AboutState = {"clusterId": state.cluster_id, "endOffset": state.id.end_offset, "controllers": True}
    records = [*state.records, _note(about)]
    batches = snapshot.encode(state.id, records, voters=(), last_contained_log_timestamp_ms=now_ms, now_ms=now_ms)
    write_private(path, b"".join(batches))


def read_state(path: Path) -> SavedState:
    """Load a state file. OSError when it cannot be read, ValueError when it is no snapshot of the metadata log."""
    named = snapshot.parse_file_name(path.name)
    found = Snapshot(named or SnapshotId(0, 0), path)
    try:
        batches = list(found.batches())
        records = list(snapshot.records_of(batches))
        about = about_state(records)
    except ValueError as error:
        raise ValueError(f"{path}: no saved state and no snapshot of the metadata log: {error}") from error
    image = Image()
    for record, _ in records:
        try:
            image.apply(record, 0)
        except (LookupError, ValueError) as error:
            raise ValueError(f"{path}: no state to begin with: {type(record).__name__}: {error}") from error
    if METADATA_VERSION not in image.features:
        raise ValueError(f"{path}: no state to begin with: it has no metadata.version")
    # Broker epochs are offsets: the log goes on above them.
    above = max((broker.broker_epoch for broker in image.cluster.brokers.values()), default=0) + 1
    end_offset = about.get("endOffset") or (named.end_offset if named else 0)
    left_out = NoOpRecord if about.get("controllers") else (RegisterControllerRecord, NoOpRecord)
    kept = [at for at in records if not isinstance(at.record, left_out)]
    snapshot_id = SnapshotId(max(end_offset, above, len(records)), max(1, *(batch.leader_epoch for batch in batches)))
    if reason := limits.refusal(epoch=snapshot_id.epoch, offset=snapshot_id.end_offset):
        raise ValueError(f"{path}: {reason}")
    return SavedState(snapshot_id, about.get("clusterId", _NO_CLUSTER_ID), kept)


def _note(about: AboutState) -> RecordAt:
    return RecordAt(NoOpRecord(unknown_tagged_fields=[(_ABOUT_TAG, json.dumps(about).encode())]), 0)


def encode(snapshot_id: SnapshotId, records: Iterable[RecordAt], log: MetadataLog, now_ms: int) -> bytes:
    """Return a snapshot of these records; its voters are those of the log's own configuration."""
    voters = control_records(log.kraft_version, log.voters)
    batches = snapshot.encode(
        snapshot_id, records, voters=voters, last_contained_log_timestamp_ms=now_ms, now_ms=now_ms
    )
    return b"".join(batches)


def about_state(records: Iterable[RecordAt]) -> AboutState:
    """Return the note in the records of a state file; empty for a snapshot of Kafka's. ValueError for another note."""
    for record, _ in records:
        if isinstance(record, NoOpRecord):
            for tag, value in record.unknown_tagged_fields:
                if tag == _ABOUT_TAG:
                    return _about(json_tree(value))
    return {}


def _about(tree: object) -> AboutState:
    kinds: Mapping[str, type] = {"clusterId": str, "endOffset": int, "controllers": bool}
    if not isinstance(tree, dict) or not all(type(value) is kinds.get(name) for name, value in tree.items()):
        raise ValueError(f"the note of a saved state has {', '.join(kinds)}, and is not {tree!r:.80}")
    return AboutState(**tree)  # type: ignore[typeddict-item]  # checked here
