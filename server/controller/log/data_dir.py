"""A controller's data directory: its lock, its identity and the small files beside the log, in Kafka's formats.

`.lock`, `meta.properties` (MetaProperties version 1), `__cluster_metadata-0/{quorum-state, partition.metadata,
leader-epoch-checkpoint}`. Each file is replaced as a whole: written beside, fsynced, renamed.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mockraft.files.directory_lock import lock_directory
from mockraft.files.given_files import TEXT_BYTES_MAX, read_file
from mockraft.files.private_files import DIRECTORY_MODE, replace_file, sync_directory
from mockraft.files.trees import json_tree
from mockraft.kafka_configs import java_properties
from mockraft.server.controller.log import limits
from mockraft.server.controller.quorum.voter_set import NO_DIRECTORY_ID, PARTITION, ElectionState, ReplicaKey
from mockraft.server.controller.result import ApiError
from mockraft.wire import error_codes, uuids
from mockraft.wire.directory_ids import draw_uuid
from mockraft.wire.printable import printable_line
from mockraft.wire.topic_names import CLUSTER_METADATA, CLUSTER_METADATA_ID

if TYPE_CHECKING:
    import random

    from mockraft.wire.json_form import Tree

_META_VERSIONS = ("0", "1")
_INTEGER = re.compile(r"-?[0-9]{1,10}")
PARTITION_DIR = f"{CLUSTER_METADATA}-{PARTITION}"


class DataDirError(ValueError):
    """Raised at start if the data directory is unusable; the message has the reason and a remedy."""


class StorageError(ApiError):
    """Raised if a file of the log could not be written (disk full, I/O error): nothing was appended."""

    def __init__(self, message: str) -> None:
        super().__init__(error_codes.KAFKA_STORAGE_ERROR, message)

    def __str__(self) -> str:
        """Return the message alone: at start it is part of a DataDirError."""
        return str(self.message)


class DataDir:
    """An open and locked data directory of one controller."""

    def __init__(
        self, path: Path, cluster_id: str, node_id: int, rng: random.Random, *, directory_id: bytes | None = None
    ) -> None:
        """Lock `path` (created if missing) and check or write its identity. DataDirError if it belongs to another.

        `directory_id` is the required one, None any.
        """
        self.path = path
        self.partition_path = path / PARTITION_DIR
        try:
            missing = [each for each in (path, *path.parents) if not each.exists()]
            path.mkdir(DIRECTORY_MODE, parents=True, exist_ok=True)
            for each in missing:
                sync_directory(each.parent)
            lock = lock_directory(str(path))
        except OSError as error:
            raise DataDirError(f"data dir {path}: cannot be used: {error}") from error
        if lock is None:
            raise DataDirError(f"{path / '.lock'}: locked: another controller runs on this data dir")
        self._lock = lock
        try:
            self.directory_id = self._identify(cluster_id, node_id, directory_id or draw_uuid(rng))
            if directory_id not in (None, self.directory_id):
                raise DataDirError(
                    f"data dir {path}: its directory.id is {uuids.text_of(self.directory_id)}, but this controller has"
                    f" {uuids.text_of(directory_id or b'')}: not its data dir"
                )
        except OSError as error:
            self.close()
            raise DataDirError(f"data dir {path}: cannot be used: {error}") from error
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Release the lock."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def read_election(self) -> ElectionState:
        """Read quorum-state, data version 0 or 1; epoch 0 when there is no such file yet."""
        path = self.partition_path / "quorum-state"
        try:
            state = json_tree(read_file(path).decode(errors="replace").partition("\n")[0])
            leader_id, voted_id, epoch = (_int32(state, key) for key in ("leaderId", "votedId", "leaderEpoch"))
            voted_directory_id = uuids.read_text(state.get("votedDirectoryId", uuids.text_of(NO_DIRECTORY_ID)))
        except FileNotFoundError:
            return ElectionState()
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise DataDirError(f"{path}: not a quorum-state file: {error}") from error
        # Kafka counts past the last epoch to a negative one, and continues at the log's.
        if reason := limits.refusal(epoch=max(epoch, 0)):
            raise DataDirError(f"{path}: {reason}")
        return ElectionState(
            max(epoch, 0),
            leader_id if leader_id >= 0 else None,
            ReplicaKey(voted_id, voted_directory_id) if voted_id >= 0 else None,
        )

    def write_election(self, election: ElectionState, kraft_version: int, voter_ids: Sequence[int]) -> None:
        """Replace quorum-state (FileQuorumStateStore): data version 0 at kraft.version 0, else 1. StorageError."""
        state: Tree = {
            "leaderId": -1 if election.leader_id is None else election.leader_id,
            "leaderEpoch": election.epoch,
            "votedId": -1 if election.voted is None else election.voted.id,
        }
        if kraft_version == 0:
            voters = [{"voterId": voter_id} for voter_id in voter_ids]
            state = {"clusterId": "", **state, "appliedOffset": 0, "currentVoters": voters, "data_version": 0}
        else:
            directory_id = NO_DIRECTORY_ID if election.voted is None else election.voted.directory_id
            state |= {"votedDirectoryId": uuids.text_of(directory_id), "data_version": 1}
        self._replace("quorum-state", json.dumps(state, separators=(",", ":")))

    def read_leader_epochs(self) -> list[tuple[int, int]]:
        """Read the (epoch, start offset) pairs of leader-epoch-checkpoint, empty when there is no such file."""
        path = self.partition_path / "leader-epoch-checkpoint"
        try:
            lines = read_file(path, TEXT_BYTES_MAX).decode(errors="replace").split("\n")
            pairs = [line.split() for line in lines[2:] if line]
            epochs = [(int(epoch), int(start)) for epoch, start in pairs]
        except FileNotFoundError:
            return []
        except ValueError as error:
            raise DataDirError(f"{path}: not a leader-epoch-checkpoint file: {error}") from error
        for epoch, start in epochs:
            if reason := limits.refusal(epoch=epoch, offset=start):
                raise DataDirError(f"{path}: {reason}")
        return epochs

    def write_leader_epochs(self, epochs: Sequence[tuple[int, int]]) -> None:
        """Replace leader-epoch-checkpoint (LeaderEpochCheckpointFile, version 0). StorageError."""
        lines = ["0", str(len(epochs)), *(f"{epoch} {start}" for epoch, start in epochs), ""]
        self._replace("leader-epoch-checkpoint", "\n".join(lines))

    def _replace(self, name: str, text: str) -> None:
        path = self.partition_path / name
        try:
            replace_file(path, [text.encode()])
        except OSError as error:
            raise StorageError(f"{path}: cannot be written: {error}") from error

    def _identify(self, cluster_id: str, node_id: int, directory_id: bytes) -> bytes:
        path = self.path / "meta.properties"
        if not path.exists():
            if self.partition_path.exists() and any(self.partition_path.glob("*.log")):
                raise DataDirError(f"data dir {self.path}: has a log but no meta.properties: its owner is unknown")
            found = {}
        else:
            found = read_meta_properties(path)
            if found.get("version", "1") not in _META_VERSIONS:
                raise DataDirError(f"{path}: version {found['version']} is not one that this mockraft can read")
            _check_same(path, "cluster.id", found.get("cluster.id"), cluster_id)
            _check_same(path, "node.id", found.get("node.id", found.get("broker.id")), str(node_id))
        self.partition_path.mkdir(DIRECTORY_MODE, exist_ok=True)
        # Also when it exists: the process that created it may have been killed before it synced it.
        sync_directory(self.path)
        topic, topic_id = self.partition_path / "partition.metadata", f"topic_id: {uuids.text_of(CLUSTER_METADATA_ID)}"
        if not topic.exists():
            replace_file(topic, [f"version: 0\n{topic_id}".encode()])
        elif topic_id not in read_file(topic).decode(errors="replace").splitlines():
            raise DataDirError(f"{topic}: it has not the {topic_id} of {CLUSTER_METADATA}")
        if "directory.id" in found:
            return _uuid(path, found["directory.id"])
        found |= {"cluster.id": cluster_id, "directory.id": uuids.text_of(directory_id), "node.id": str(node_id)}
        found["version"] = "1"
        replace_file(path, [java_properties.write(dict(sorted(found.items())))])
        return directory_id


def cluster_id_of(path: Path) -> str | None:
    """Return the cluster id in a data dir's meta.properties, None if there is none. DataDirError when unreadable."""
    return _property_of(path, "cluster.id")


def directory_id_of(path: Path) -> str | None:
    """Return the directory id, as `cluster_id_of`."""
    return _property_of(path, "directory.id")


def _property_of(path: Path, name: str) -> str | None:
    try:
        return read_meta_properties(path / "meta.properties").get(name)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise DataDirError(f"{path / 'meta.properties'}: cannot be read: {error}") from error


def _int32(state: Mapping[str, str | int], key: str) -> int:
    """Return an integer of quorum-state. ValueError if it is no int32."""
    text = str(state[key])
    if not _INTEGER.fullmatch(text) or not -(2**31) <= (number := int(text)) < 2**31:
        raise ValueError(f"{key} {printable_line(text, 20)} is not a 32-bit integer")
    return number


def _uuid(path: Path, text: str) -> bytes:
    try:
        return uuids.read_text(text)
    except ValueError as error:
        raise DataDirError(f"{path}: directory.id {text!r} is not a uuid") from error


def _check_same(path: Path, key: str, found: str | None, expected: str) -> None:
    if found != expected:
        raise DataDirError(f"{path}: {key} is {found}, but this controller has {expected}: not its data dir")


def read_meta_properties(path: Path) -> dict[str, str]:
    """Return the keys and values of meta.properties. OSError; DataDirError if they cannot be those of a node."""
    try:
        found = java_properties.read(read_file(path))
        if "node.id" in found:
            _int32(found, "node.id")
    except ValueError as error:
        raise DataDirError(f"{path}: {error}") from error
    if "directory.id" in found:
        _uuid(path, found["directory.id"])
    return found
