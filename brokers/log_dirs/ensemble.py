"""The log directories of one node as a set: the content of each, and their consistency.

Kafka's `MetaPropertiesEnsemble`: its loader, its verify, its ids. The same checks run before formatting and before
every start; messages begin as Kafka's do and add the remedy.
"""

from __future__ import annotations

import enum
import os
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from mockraft.files.given_files import read_file
from mockraft.files.private_files import replace_file
from mockraft.kafka_configs import java_properties
from mockraft.releases import METADATA_VERSION
from mockraft.wire import metadata_log_frame, record_batch, uuids
from mockraft.wire.directory_ids import is_reserved
from mockraft.wire.errors import WireError
from mockraft.wire.java_values import parse_integer
from mockraft.wire.records.feature_level_record import FeatureLevelRecord

META_PROPERTIES = "meta.properties"
"""The name of the file within each log directory."""
_KNOWN = ("version", "cluster.id", "broker.id", "node.id", "directory.id")


class MetaPropertiesError(ValueError):
    """The file is unusable; the text is Kafka's message."""


@dataclass(frozen=True, slots=True)
class MetaProperties:
    """The content of the file. Version 0 (from ZooKeeper's days) may be empty; version 1 has cluster id and node id.

    `directory_id` is 16 bytes. `others` are keys unknown to Kafka; they are preserved, which Kafka does not do.
    """

    version: int = 0
    cluster_id: str | None = None
    node_id: int | None = None
    directory_id: bytes | None = None
    others: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, data: bytes) -> MetaProperties:
        """Parse the bytes of a file. Raises MetaPropertiesError."""
        try:
            found = java_properties.read(data)
        except ValueError as error:
            raise MetaPropertiesError(str(error)) from None
        version = _version(found.get("version", "0"))
        key = "node.id" if version else "broker.id"
        node_id = _int32(key, found[key]) if key in found else None
        if version and node_id is None:
            raise MetaPropertiesError("Failed to find node.id")
        if version and "cluster.id" not in found:
            raise MetaPropertiesError("cluster.id was not found.")
        directory_id = _directory_id(found["directory.id"]) if "directory.id" in found else None
        others = {other: value for other, value in found.items() if other not in _KNOWN}
        return cls(version, found.get("cluster.id"), node_id, directory_id, others)

    def with_directory_id(self, directory_id: bytes) -> MetaProperties:
        """Return a copy with this id."""
        return replace(self, directory_id=directory_id)

    def write(self) -> bytes:
        """Return the file's bytes, keys in the order of Kafka's own files, unknown ones last."""
        values = {
            "node.id" if self.version else "broker.id": None if self.node_id is None else str(self.node_id),
            "directory.id": None if self.directory_id is None else uuids.text_of(self.directory_id),
            "version": str(self.version),
            "cluster.id": self.cluster_id,
        }
        known = {key: value for key, value in values.items() if value is not None}
        return java_properties.write({**known, **self.others})


def _version(text: str) -> int:
    try:
        version = _int32("version", text.strip())
    except MetaPropertiesError:
        raise MetaPropertiesError(f"Invalid meta.properties version string '{text}'") from None
    if version not in (0, 1):
        raise MetaPropertiesError(f"Unknown meta.properties version number {version}")
    return version


def _int32(key: str, text: str) -> int:
    """Parse a number as Java's Integer.parseInt. Raise MetaPropertiesError."""
    number = parse_integer(text)
    if number is None:
        raise MetaPropertiesError(f"Unable to read {key} as a base-10 number.")
    return number


def _directory_id(text: str) -> bytes:
    try:
        return uuids.read_text(text)
    except ValueError as error:
        raise MetaPropertiesError(f"Unable to read directory.id as a Uuid: {error}") from None


METADATA_PARTITION_DIR = "__cluster_metadata-0"
META_BYTES_MAX = 65_536


class Refusal(enum.Enum):
    """The reason why directories cannot be used or formatted."""

    NO_DIRECTORY = "no directory was named"
    NONE_READABLE = "no directory has a readable meta.properties"
    NOT_FORMATTED = "a directory has no meta.properties"
    ALREADY_FORMATTED = "a directory has a meta.properties"
    CLUSTER_ID = "a directory is of another cluster"
    NODE_ID = "a directory is of another node"
    NO_CLUSTER_ID = "a directory has no cluster id"
    NO_NODE_ID = "a directory has no node id"
    RESERVED_ID = "a directory has an id that Kafka reserves"
    DUPLICATE_ID = "two directories have one id"
    DUPLICATE_PATH = "one directory is named twice"
    METADATA_DIR = "the directory of the metadata log has failed"
    BOOTSTRAP = "the bootstrap.checkpoint beside the metadata log is broken"
    METADATA_ELSEWHERE = "a metadata log lies where none should"
    NONE_LIVE = "every directory has failed"
    NOT_WRITTEN = "a directory cannot be written to"
    BAD_ID = "a node id or cluster id that cannot be"


class LogDirsError(ValueError):
    """Unusable log directories. `refusal` is the rule; the text is for people."""

    def __init__(self, refusal: Refusal, text: str) -> None:
        super().__init__(text)
        self.refusal = refusal


class DirFound(NamedTuple):
    """The state of one configured path.

    `meta` is None when there is no meta.properties (or no directory), and when `error` describes a failure. `canonical`
    is the path without links, `usable` is True for a directory that can be listed or created. `bootstrap_fault` is the
    defect of its bootstrap.checkpoint, if any.
    """

    path: str
    meta: MetaProperties | None = None
    error: str | None = None
    canonical: str = ""
    usable: bool = True
    has_metadata_log: bool = False
    bootstrap_fault: str | None = None

    @property
    def is_formatted(self) -> bool:
        """True if it has a readable meta.properties."""
        return self.meta is not None

    @property
    def is_empty(self) -> bool:
        """True if it has none, and nothing failed."""
        return self.meta is None and self.error is None


def look(paths: Iterable[str]) -> list[DirFound]:
    """Return the state of these paths, each once, sorted by name as in Kafka. Changes nothing."""
    return [_look(path) for path in sorted(set(paths))]


def verify(
    found: Sequence[DirFound], cluster_id: str | None, node_id: int | None, metadata_log_dir: str | None = None
) -> None:
    """Check the directories' consistency as Kafka's `MetaPropertiesEnsemble.verify` does. Raises LogDirsError.

    An id that is None is taken from the first directory that has one.
    """
    seen: dict[bytes, str] = {}
    for path, meta in ((each.path, each.meta) for each in found):
        if meta is None:
            continue
        file = os.path.join(path, META_PROPERTIES)
        cluster_id = meta.cluster_id if cluster_id is None else cluster_id
        if meta.cluster_id not in (None, cluster_id):
            raise LogDirsError(
                Refusal.CLUSTER_ID,
                f"Invalid cluster.id in: {file}. Expected {cluster_id}, but read {meta.cluster_id}. The directory "
                "is of another cluster: use another one, or empty it if nothing in it is needed.",
            )
        node_id = meta.node_id if node_id is None else node_id
        if meta.node_id not in (None, node_id):
            raise LogDirsError(
                Refusal.NODE_ID,
                f"Stored node id {meta.node_id} doesn't match previous node id {node_id} in {file}. If you moved "
                "your data, make sure your configured node id matches. If you intend to create a new node, you should "
                "remove all data in your data directories.",
            )
        if meta.directory_id is not None:
            _check_directory_id(meta.directory_id, path, seen)
    failed = next((each for each in found if each.path == metadata_log_dir and each.error is not None), None)
    if failed is not None:
        raise LogDirsError(
            Refusal.METADATA_DIR,
            f"Encountered I/O error in metadata log directory {failed.path}. Cannot continue. ({failed.error})",
        )


def draw_directory_id(rng: random.Random, taken: Mapping[str, MetaProperties]) -> bytes:
    """Draw an id for one more directory as Kafka does: any 16 bytes, not reserved, not taken, no dash at the start."""
    others = {meta.directory_id for meta in taken.values()}
    while True:
        drawn = rng.randbytes(16)
        if drawn not in others and not is_reserved(drawn) and not uuids.text_of(drawn).startswith("-"):
            return drawn


def write_meta(path: str, meta: MetaProperties) -> None:
    """Write a directory's meta.properties. Raises LogDirsError."""
    file = Path(path, META_PROPERTIES)
    try:
        replace_file(file, [meta.write()])
    except OSError as error:
        raise not_written(path, error) from error


def not_written(path: str, error: OSError) -> LogDirsError:
    """Return the error for a failed write to a directory."""
    return LogDirsError(
        Refusal.NOT_WRITTEN,
        f"Error while writing meta.properties file {path}: {described(error)}. Make the directory writable, or "
        "leave it out.",
    )


def described(error: OSError) -> str:
    """Return the failure without the errno, and with the path where there is one."""
    where = f"{error.filename}: " if error.filename else ""
    return f"{where}{error.strerror or error}"


def _check_directory_id(directory_id: bytes, path: str, seen: dict[bytes, str]) -> None:
    text = uuids.text_of(directory_id)
    if is_reserved(directory_id):
        raise LogDirsError(
            Refusal.RESERVED_ID,
            f"Invalid reserved directory ID {text} found in {path}. Remove the directory.id line from its "
            f"{META_PROPERTIES}: the broker then draws another.",
        )
    if directory_id in seen:
        raise LogDirsError(
            Refusal.DUPLICATE_ID,
            f"Duplicate directory ID {text} found. It was the ID of {seen[directory_id]}, but also of {path}. If one "
            f"is a copy of the other, leave it out; else remove the directory.id line from one {META_PROPERTIES}.",
        )
    seen[directory_id] = path


def _look(path: str) -> DirFound:
    directory = Path(path)
    try:
        canonical = os.path.realpath(path)
        usable = os.access(path, os.R_OK) if os.path.isdir(path) else not os.path.lexists(path)
        has_metadata_log = os.path.exists(os.path.join(path, METADATA_PARTITION_DIR))
        found = DirFound(path, canonical=canonical, usable=usable, has_metadata_log=has_metadata_log)
    except (OSError, ValueError) as error:
        return DirFound(path, error=str(error), usable=False)
    try:
        meta = MetaProperties.read(read_file(directory / META_PROPERTIES, META_BYTES_MAX))
    except FileNotFoundError:
        return found
    except OSError as error:
        return found._replace(error=described(error))
    except ValueError as error:
        return found._replace(error=f"{directory / META_PROPERTIES}: {error}")
    return found._replace(meta=meta, bootstrap_fault=fault_in(directory))


BOOTSTRAP_CHECKPOINT = "bootstrap.checkpoint"
FILE_BYTES_MAX = 64 << 20


def fault_in(directory: Path) -> str | None:
    """Return the reason why the file in this directory prevents a broker's start; None when it is valid or missing.

    A broker does not need the file, but a real one reads that of its metadata log dir all the same.
    """
    path = directory / BOOTSTRAP_CHECKPOINT
    try:
        names = _feature_names(read_file(path, FILE_BYTES_MAX))
    except FileNotFoundError:
        return None
    except OSError as error:
        return f"{path}: {error.strerror or error}"
    except WireError as error:
        return f"{path}: {error}"
    if METADATA_VERSION in names:
        return None
    return (
        f"No FeatureLevelRecord for {METADATA_VERSION} was found in the bootstrap metadata from the binary bootstrap "
        f"metadata file: {path}"
    )


def _feature_names(data: bytes) -> set[str]:
    found = set()
    for batch in record_batch.read_batches(data, allow_partial_tail=True):
        for _, value in () if batch.is_control else batch.records:
            record = metadata_log_frame.decode(value or b"").record
            if isinstance(record, FeatureLevelRecord):
                found.add(record.name)
    return found
