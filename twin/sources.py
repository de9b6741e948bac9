"""Histories of files: data directories, snapshots, segments and captures, all opened for reading only."""

from __future__ import annotations

import re
from pathlib import Path

from mockraft.files.given_files import SEGMENT_BYTES_MAX, open_file, read_file
from mockraft.server.controller.log import snapshot
from mockraft.server.controller.log.data_dir import PARTITION_DIR, DataDirError, read_meta_properties
from mockraft.server.controller.log.segments import StoredBatch
from mockraft.server.controller.log.snapshot import Snapshot, SnapshotId
from mockraft.server.controller.log.state_file import about_state
from mockraft.twin.history import History, SourceError, is_whole, longest
from mockraft.wire import record_batch
from mockraft.wire.errors import WireError

_SEGMENT = re.compile(r"\d{20}\.log")
_CAPTURE_MAGIC = (
    b"\xa1\xb2\xc3\xd4",
    b"\xd4\xc3\xb2\xa1",
    b"\xa1\xb2\x3c\x4d",
    b"\x4d\x3c\xb2\xa1",
    b"\x0a\x0d\x0d\x0a",
)
_GZIP_MAGIC = b"\x1f\x8b"


def read_history(source: str | Path) -> History:
    """Return the history of a data directory, a snapshot, a segment, or a capture (pcap, pcapng, also gzip).

    A directory may be the data directory or its `__cluster_metadata-0`. SourceError if it has no metadata log or cannot
    be read; ModuleNotFoundError for a capture without the extra `captures`.
    """
    path = Path(source)
    try:
        found = _read_directory(path) if path.is_dir() else _read_file(path)
    except OSError as error:
        raise SourceError(f"{path}: cannot be read: {error.strerror or error}") from error
    if found.end_offset == 0 and found.snapshot is None:
        raise SourceError("; ".join([f"{path}: there is no metadata log to begin with", *found.notes]))
    return found


def _read_directory(path: Path) -> History:
    partition = path / PARTITION_DIR if (path / PARTITION_DIR).is_dir() else path
    notes: list[str] = []
    files = sorted(partition.iterdir())
    snapshots = [found for each in files if (found := _read_snapshot(each, notes)) is not None]
    batches: dict[int, StoredBatch] = {}
    for each in files:
        if _SEGMENT.fullmatch(each.name):
            _read_segment(each, batches, notes)
    properties_path = partition.parent / "meta.properties"
    try:
        properties = read_meta_properties(properties_path) if properties_path.exists() else {}
    except DataDirError as error:
        raise SourceError(str(error)) from error
    base, following = longest(snapshots, batches)
    history = History(path, base, following, properties.get("cluster.id", ""), properties, notes)
    if len(following) < sum(offset >= history.start_offset for offset in batches):
        notes.append(f"the log has a gap: the records after offset {history.end_offset - 1} are left out")
    if not properties:
        notes.append("there is no meta.properties, and so no cluster id: the twin draws one")
    return history


def _read_file(path: Path) -> History:
    with open_file(path) as file:
        magic = file.read(4)
    if magic in _CAPTURE_MAGIC or magic.startswith(_GZIP_MAGIC):
        from mockraft.twin.captured import read_capture

        return read_capture(path)
    notes: list[str] = []
    if path.name.endswith(".log"):
        batches: dict[int, StoredBatch] = {}
        _read_segment(path, batches, notes)
        base, following = longest([], batches)
        if batches and not following:
            raise SourceError(
                f"{path}: this segment begins at offset {min(batches)}, which is no beginning: give its directory,"
                " which also has the snapshot before it"
            )
        return History(path, base, following, notes=notes)
    named = snapshot.parse_file_name(path.name)
    found = Snapshot(named or SnapshotId(0, 0), path)
    try:
        batches_of = list(found.batches())
        about = about_state(records := list(found.records()))
    except ValueError as error:
        raise SourceError(f"{path}: neither a data directory, a snapshot, a segment nor a capture: {error}") from error
    end_offset = named.end_offset if named is not None else about.get("endOffset", len(records))
    found.id = named or SnapshotId(end_offset, max(batch.leader_epoch for batch in batches_of))
    return History(path, found, [], about.get("clusterId", ""), notes=notes)


def _read_snapshot(path: Path, notes: list[str]) -> Snapshot | None:
    """Return the snapshot in a file of that name if it is whole; not the first one, whose records the log has too."""
    snapshot_id = snapshot.parse_file_name(path.name)
    if snapshot_id is None or snapshot_id.end_offset == 0:
        return None
    found = Snapshot(snapshot_id, path)
    return found if is_whole(found, path.name, notes) else None


def _read_segment(path: Path, found: dict[int, StoredBatch], notes: list[str]) -> None:
    data = read_file(path, SEGMENT_BYTES_MAX)
    position = 0
    while position < len(data):
        try:
            header = record_batch.read_header(data, position)
        except WireError as error:
            # A preallocated segment ends in zeros.
            if data.count(0, position) < len(data) - position:
                notes.append(f"{path.name} is damaged at byte {position} of {len(data)}, the rest is left out: {error}")
            return
        batch = data[position : header.end]
        found.setdefault(header.base_offset, StoredBatch(header._replace(position=0, end=len(batch)), batch))
        position = header.end
