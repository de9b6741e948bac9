"""Conversion between messages and kio's entities, by way of their bytes; kio is imported on first use.

kio has one class for each version of a message, mockraft one for all: `to_kio` therefore takes the version.
"""

from __future__ import annotations

import io
import re
from typing import Any, Protocol

from mockraft.wire import messages, records
from mockraft.wire.errors import WireError
from mockraft.wire.message import Message

_KINDS = {"Request": "request", "Response": "response"}


class KioEntity(Protocol):
    """A message of the package kio, which has a class for each version."""

    @property
    def __version__(self) -> int:
        """Version of its message."""


def is_kio(entity: object) -> bool:
    """Return True for an entity of kio, without importing kio."""
    return type(entity).__module__.startswith("kio.") and hasattr(entity, "__version__")


def from_kio(entity: Any) -> tuple[Message, int]:
    """Return the message of an entity, and its version.

    Raises TypeError for anything but an entity of a whole message; WireError for a version that mockraft does not
    support, and if kio cannot write it.
    """
    name, version = type(entity).__name__, int(getattr(entity, "__version__", -1))
    package = next((package for package in (messages, records) if name in package.NAMES), None)
    if package is None or not is_kio(entity):
        raise TypeError(f"{name} is no message that mockraft knows as an entity of kio")
    from kio.serial import entity_writer

    file = io.BytesIO()
    try:
        entity_writer(type(entity))(file, entity)
    except Exception as error:
        raise WireError(f"kio cannot write {name} v{version}: {error}") from error
    return package.by_name(name).read(file.getvalue(), version), version


def to_kio(message: Message, version: int) -> Any:
    """Return a message as kio's entity of a version.

    Raises LookupError if kio has no such class; WireError if the version or kio's types cannot hold the message.
    """
    from kio.index import UnknownEntity, load_entity_schema
    from kio.serial import entity_reader
    from kio.static.constants import EntityType

    name = type(message).__name__
    ending = next((ending for ending in _KINDS if name.endswith(ending)), "")
    key = re.sub(r"(?=[A-Z])", "_", name.removesuffix(ending)).lower().removeprefix("_")
    kind: Any = EntityType[_KINDS.get(ending, "data")]
    try:
        cls = load_entity_schema(key, version, kind)
    except UnknownEntity:
        raise LookupError(f"kio has no {name} v{version}") from None
    data = message.write(version)
    try:
        entity, size = entity_reader(cls)(data, 0)
    except Exception as error:
        raise WireError(f"kio cannot hold {name} v{version}: {error}") from error
    assert size == len(data), f"kio left {len(data) - size} bytes of {name} v{version} unread"
    return entity
