"""Recovery of moves that the last run of a broker left, before any replica is placed (Kafka's
`LogManager.recoverAbandonedFutureLogs` and `ReplicaManager.maybeAddLogDirFetchers`).

A kill can leave a move at any of its steps. The files and the metadata together determine how it continues: KIP-113's
table and the additions of Kafka.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from enum import Enum, auto
from typing import NamedTuple

from mockraft.brokers.assignments import ReplicaKey
from mockraft.brokers.core import Core
from mockraft.brokers.log_dirs.errors import StorageError
from mockraft.brokers.log_dirs.log_loading import HeldLog
from mockraft.brokers.log_dirs.logs import Logs
from mockraft.brokers.metadata.observer import FatalError
from mockraft.brokers.moves.movers import Movers


class Recovery(Enum):
    """The treatment of a replica found at start-up."""

    NOTHING = auto()
    """There is a single current log, or none: serve it."""
    RESUME = auto()
    """Current and future log: continue copying, as after another AlterReplicaLogDirs."""
    FINISH = auto()
    """Both, and the controller has accepted the future one's directory: copy the rest and swap."""
    PROMOTE = auto()
    """The only log is a future one: it becomes the current one."""
    OFFLINE = auto()
    """Only a future log, and the current one may be in a directory that is offline: change nothing."""
    KEEP_ONE = auto()
    """Two current logs, killed between the renames: the one in the directory `keep` stays, the others go."""
    REFUSE = auto()
    """Two current logs, and the metadata names neither directory: the broker does not start, a person decides."""


class ReplicaLogs(NamedTuple):
    """The logs of one replica in the readable directories, each as the uuid of its directory.

    `assigned` is the directory in the metadata, `some_offline` is True if any directory could not be read.
    """

    current: Sequence[bytes]
    future: bytes | None
    assigned: bytes
    some_offline: bool


class Recovered(NamedTuple):
    """The treatment, and for KEEP_ONE the directory."""

    recovery: Recovery
    keep: bytes | None = None


def recover(found: ReplicaLogs) -> Recovered:
    """Return the treatment of the logs of one replica."""
    if len(found.current) > 1:
        if found.assigned in found.current:
            return Recovered(Recovery.KEEP_ONE, found.assigned)
        return Recovered(Recovery.REFUSE)
    if found.future is None:
        return Recovered(Recovery.NOTHING)
    agreed = found.future == found.assigned
    if found.current:
        # Kafka promotes at once when the controller has accepted the directory (KAFKA-16082), and loses later appends.
        return Recovered(Recovery.FINISH if agreed else Recovery.RESUME)
    return Recovered(Recovery.OFFLINE if found.some_offline and not agreed else Recovery.PROMOTE)


_log = logging.getLogger(__name__)


def settle(movers: Movers, duplicates: list[HeldLog]) -> None:
    """Promote, resume or leave alone the logs found, according to the metadata; `duplicates` are second current logs.

    Raises FatalError when the metadata names neither of two current logs.
    """
    core = movers.core
    second = {held.key: held for held in duplicates}
    future = {held.key: held for held in core.logs.held(future=True)}
    for key in dict.fromkeys([*second, *future]):
        try:
            _settle(movers, key, second.get(key), future.get(key))
        except StorageError as error:
            _log.warning("broker %d: %s", core.config.broker_id, error)


def _settle(movers: Movers, key: ReplicaKey, second: HeldLog | None, future: HeldLog | None) -> None:
    core, directories = movers.core, movers.directories
    logs = core.logs
    replica = core.view.replicas.get(key)
    if replica is None:
        # Renamed to -stray, like every log that the metadata does not place here.
        logs.mark_stray(key, future=True)
        return
    current = [] if (directory := logs.directory_of(key)) is None or logs.is_lost(key) else [directory]
    if second is not None:
        current.append(second.log_dir.directory_id)
    found = ReplicaLogs(
        current, future.log_dir.directory_id if future else None, replica.directory, directories.has_offline
    )
    recovered = recover(found)
    match recovered.recovery:
        case Recovery.PROMOTE:
            logs.promote(key)
        case Recovery.RESUME | Recovery.FINISH:
            assert future is not None
            agreed = recovered.recovery is Recovery.FINISH
            movers.resume(key, future.topic, current[0], future.log_dir.directory_id, agreed=agreed)
        case Recovery.OFFLINE:
            directories.placed[key] = replica.directory
            directories.lost.add(key)
        case Recovery.KEEP_ONE:
            _keep(core.logs, second, recovered.keep)
            _settle(movers, key, None, future)
        case Recovery.REFUSE:
            raise FatalError(_duplicates_message(core, key, current))
        case Recovery.NOTHING:
            return


def _keep(logs: Logs, second: HeldLog | None, keep: bytes | None) -> None:
    assert second is not None
    if second.log_dir.directory_id == keep:
        logs.keep(second)
    else:
        logs.drop(second)
    _log.info("%s-%d was being moved when the broker was killed: one of two logs is kept", second.topic, second.key[1])


def _duplicates_message(core: Core, key: ReplicaKey, directory_ids: list[bytes]) -> str:
    name = f"{core.view.topics.get(key[0], '')}-{key[1]}"
    paths = " and ".join(f"{core.logs.log_dir(directory_id).path}/{name}" for directory_id in directory_ids)
    return (
        f"Duplicate log directories for {name} are found: {paths}, and the metadata names neither directory. Delete one"
        " of the two, best the one in the directory that is known to have failed recently"
    )
