"""The start of a move (Kafka's `ReplicaManager.alterReplicaLogDirs`, same order of checks)."""

from __future__ import annotations

from mockraft.brokers.assignments import ReplicaKey
from mockraft.brokers.core import Core
from mockraft.brokers.log_dirs.errors import LogError
from mockraft.brokers.log_dirs.log_loading import NAME_LENGTH_MAX
from mockraft.brokers.moves.move import MoveRefusedError
from mockraft.brokers.moves.movers import Move, Movers
from mockraft.wire import error_codes

_FUTURE_SUFFIX_LENGTH = len(".-future") + 32


def start_move(movers: Movers, topic: str, partition: int, path: str) -> Move | None:
    """Start to move a replica to the directory with this path.

    Returns None when there is nothing to do: the replica is there already, in which case a move elsewhere is cancelled
    for good. An active move to the same directory continues; one to another directory is cancelled. Raises
    MoveRefusedError with the codes of AlterReplicaLogDirs. For a replica that is not here (REPLICA_NOT_AVAILABLE,
    UNKNOWN_TOPIC_OR_PARTITION) the directory is remembered.
    """
    core, directories = movers.core, movers.directories
    target = _target(movers, topic, partition, path)
    logs = core.logs
    directories.make_logs()
    key = _key_of(core, topic, partition)
    move = None if key is None else movers.find(key)
    name = f"{topic}-{partition}"
    if key is not None and key in directories.placed and not directories.is_here(key):
        raise MoveRefusedError(error_codes.KAFKA_STORAGE_ERROR, f"Partition {name} is offline")
    if move is not None and move.target == target:
        return move
    source = None if key is None or logs.log(key) is None else logs.directory_of(key)
    if source == target:
        if move is not None:
            movers.cancel(move, "its current directory was requested")
        return None
    directories.preferred[topic, partition] = target
    if key is None or source is None:
        raise _not_here(core, key, topic, partition)
    if directories.has_offline:
        # The future log may be in an offline directory, and then there would be two.
        if move is not None:
            movers.cancel(move, f"a move to {path} was requested, and a directory is offline")
        raise MoveRefusedError(
            error_codes.KAFKA_STORAGE_ERROR, f"Can not create log for {name} because log directories are offline"
        )
    try:
        begun = movers.replace(move, target) if move else movers.begin(key, topic, source, target)
    except LogError as error:
        raise MoveRefusedError(error.error_code, str(error)) from error
    directories.preferred.pop((topic, partition), None)
    return begun


def _target(movers: Movers, topic: str, partition: int, path: str) -> bytes:
    """Return the directory with this path, if replicas may be moved there."""
    if len(f"{topic}-{partition}") + _FUTURE_SUFFIX_LENGTH > NAME_LENGTH_MAX:
        raise MoveRefusedError(error_codes.INVALID_TOPIC_EXCEPTION, "The topic name is too long.")
    if path in movers.core.config.offline_log_dirs:
        raise MoveRefusedError(error_codes.KAFKA_STORAGE_ERROR, f"Log directory {path} is offline")
    target = next((log_dir.directory_id for log_dir in movers.core.config.log_dirs if log_dir.path == path), None)
    if target is None:
        raise MoveRefusedError(error_codes.LOG_DIR_NOT_FOUND, f"Log dir {path} is not found in the config.")
    if not movers.directories.is_live(target):
        raise MoveRefusedError(error_codes.KAFKA_STORAGE_ERROR, f"Log directory {path} is offline")
    if movers.directories.is_cordoned(target):
        raise MoveRefusedError(error_codes.INVALID_REPLICA_ASSIGNMENT, f"Log directory {path} is cordoned")
    return target


def _not_here(core: Core, key: ReplicaKey | None, topic: str, partition: int) -> MoveRefusedError:
    message = f"Error while fetching partition state for {topic}-{partition}"
    known = key is not None and (core.image is None or core.image.partition(*key) is not None)
    code = error_codes.REPLICA_NOT_AVAILABLE if known else error_codes.UNKNOWN_TOPIC_OR_PARTITION
    return MoveRefusedError(code, message)


def _key_of(core: Core, topic: str, partition: int) -> ReplicaKey | None:
    if core.image is not None:
        known = core.image.topics_by_name.get(topic)
        return None if known is None else (known.topic_id, partition)
    topic_id = next((topic_id for topic_id, name in core.view.topics.items() if name == topic), None)
    return None if topic_id is None else (topic_id, partition)
