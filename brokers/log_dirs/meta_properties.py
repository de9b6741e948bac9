"""`meta.properties`: the cluster, node and id of a log directory (Kafka's `MetaProperties`, KIP-858)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from mockraft.kafka_configs import java_properties
from mockraft.wire import uuids
from mockraft.wire.java_values import parse_integer

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
