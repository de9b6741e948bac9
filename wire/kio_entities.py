"""Messages as kio's entities and back, by way of their bytes; kio is imported when the first of them is.

kio has a class for each version of a message, mockraft one for all: `to_kio` needs to be told which.
"""

from __future__ import annotations

import io
import re
from typing import Any

from mockraft.wire import messages, records
from mockraft.wire.errors import WireError
from mockraft.wire.message import Message

_KINDS = {"Request": "request", "Response": "response"}


def is_kio(entity: object) -> bool:
    """Whether it is an entity of kio; does not import kio."""
    return type(entity).__module__.startswith("kio.") and hasattr(entity, "__version__")


def from_kio(entity: Any) -> tuple[Message, int]:
    """The message that an entity is, and its version.

    TypeError for what is no entity of a whole message; WireError for a version that mockraft does not speak, and where
    kio cannot write it.
    """
    name, version = type(entity).__name__, int(getattr(entity, "__version__", -1))
    room = next((room for room in (messages, records) if name in room.NAMES), None)
    if room is None or not is_kio(entity):
        raise TypeError(f"{name} is no message that mockraft knows as an entity of kio")
    from kio.serial import entity_writer

    file = io.BytesIO()
    try:
        entity_writer(type(entity))(file, entity)
    except Exception as error:
        raise WireError(f"kio cannot write {name} v{version}: {error}") from error
    return room.by_name(name).read(file.getvalue(), version), version


def to_kio(message: Message, version: int) -> Any:
    """The entity of kio that a message is in a version.

    LookupError where kio has no such class; WireError for what the version cannot say, or kio's types cannot hold.
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
