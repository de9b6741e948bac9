"""What a client listener bears, named as in Kafka's server.properties."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from mockraft.wire.connection import FRAME_BYTES_MAX

UNREAD_BYTES_HIGH = 65_536
"""With so many bytes of answers unread by the client its next request waits."""
PENDING_REQUESTS_MAX = 8
"""With so many whole requests waiting on one connection no more is read from it."""
INT_MAX = 2**31 - 1


class Limits(NamedTuple):
    """Bytes of one request, connections at one time, and how long one may be idle (-1: for ever)."""

    socket_request_max_bytes: int = FRAME_BYTES_MAX
    max_connections: int = INT_MAX
    connections_max_idle_ms: int = 600_000

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> Limits:
        """The limits that server.properties name. Raises ValueError for what is no number."""
        named = {field: properties.get(field.replace("_", ".")) for field in cls._fields}
        return cls(**{field: _number(field, text) for field, text in named.items() if text is not None})


def _number(field: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{field.replace('_', '.')} must be a whole number, not {text!r}") from None
