"""The state that a twin begins with, and what a controller needs to know to be that twin."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from mockraft.releases import METADATA_VERSION, SUPPORTED, Release, release
from mockraft.server.controller.image import Image
from mockraft.server.controller.log.state_file import SavedState, write_saved
from mockraft.twin.history import History, Moment, SourceError
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
