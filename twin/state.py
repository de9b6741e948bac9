"""The state that a twin begins with, what a controller needs to know to be it, and a history as a data directory."""

from __future__ import annotations

import random
from pathlib import Path
from typing import NamedTuple

from mockraft.files.private_files import write_private
from mockraft.releases import METADATA_VERSION, SUPPORTED, Release, release
from mockraft.server.controller.image import Image
from mockraft.server.controller.log.data_dir import DataDir
from mockraft.server.controller.log.segments import LogStorage
from mockraft.server.controller.log.state_file import SavedState, write_saved
from mockraft.twin.history import History, Moment, SourceError
from mockraft.wire import uuids
from mockraft.wire.redaction.messages import masked

NODE_ID = 3000
"""Node id of a twin, unless the source has such a node: then the next one that is free."""


class TwinState(NamedTuple):
    """A saved state, the node id for the twin's controller, and the release that it should be of."""

    saved: SavedState
    node_id: int
    release: str


def twin_state(history: History, moment: Moment) -> TwinState:
    """Return the state of a twin at a moment. SourceError if no supported release could have it."""
    image = moment.image
    if METADATA_VERSION not in image.features:
        raise SourceError(f"{history.source}: there is no metadata.version up to offset {moment.id.end_offset - 1}")
    try:
        records = list(image.to_records(image.metadata_version))
    except ValueError as error:
        raise SourceError(f"{history.source}: {error}") from error
    above = max((broker.broker_epoch for broker in image.cluster.brokers.values()), default=0) + 1
    state_id = moment.id._replace(end_offset=max(moment.id.end_offset, above, 1), epoch=max(moment.id.epoch, 1))
    return TwinState(SavedState(state_id, history.cluster_id, records), _free_node_id(image), _release_of(image).name)


def write_twin(path: Path, state: TwinState, timestamp_ms: int, *, show_secrets: bool = True) -> Path:
    """Write the state as a file for `initial_state` and `read_history`; return its path. OSError."""
    saved = state.saved
    if not show_secrets:
        saved = saved._replace(records=[at._replace(record=masked(at.record)) for at in saved.records])
    write_saved(path, saved, timestamp_ms)
    return path


def _free_node_id(image: Image) -> int:
    taken = image.cluster.brokers.keys() | image.cluster.controllers.keys()
    return next(node_id for node_id in range(NODE_ID, NODE_ID + len(taken) + 1) if node_id not in taken)


def _release_of(image: Image) -> Release:
    """Return the release of the controllers: the newest whose metadata.version one of them registered.

    Without registrations (before 3.7) it is that of the brokers; never one below the finalized level.
    """
    nodes = image.cluster.controllers or image.cluster.brokers
    ranges = [node.features[METADATA_VERSION] for node in nodes.values() if METADATA_VERSION in node.features]
    level = max((image.metadata_version, *(each.max_version for each in ranges)))
    releases = [release(version.rpartition(".")[0]) for version in SUPPORTED]
    return next((each for each in releases if each.features[METADATA_VERSION].max_level >= level), releases[-1])


SEGMENT_BYTES_MAX = 1 << 30


def write_directory(history: History, path: Path) -> Path:
    """Write a history into a new directory, the same bytes for the same history; return its path.

    SourceError for a directory that has files; OSError.
    """
    if path.exists() and any(path.iterdir()):
        raise SourceError(f"{path}: it has files already; a copy needs a new directory")
    directory_id = history.directory.get("directory.id")
    data_dir = DataDir(
        path,
        history.cluster_id,
        int(history.directory.get("node.id", NODE_ID)),
        random.Random(history.cluster_id),
        directory_id=uuids.read_text(directory_id) if directory_id else None,
    )
    try:
        if history.snapshot is not None:
            content = history.snapshot.read(0, history.snapshot.size)
            write_private(data_dir.partition_path / history.snapshot.id.file_name, content)
        storage = LogStorage(data_dir.partition_path, segment_bytes_max=SEGMENT_BYTES_MAX, fsync=False)
        storage.open_for_append(history.start_offset)
        epochs: dict[int, int] = {}
        for header, data in history.batches:
            storage.append(data, header.base_offset)
            epochs.setdefault(header.leader_epoch, header.base_offset)
        storage.close()
        data_dir.write_leader_epochs([*epochs.items()])
    finally:
        data_dir.close()
    (path / ".lock").unlink()
    return path
