"""The limits of a client listener, named as in Kafka's server.properties."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from mockraft.wire.connection import FRAME_BYTES_MAX

UNREAD_BYTES_HIGH = 65_536
"""The next request waits while the client has more unread bytes of responses than this."""
INT_MAX = 2**31 - 1


class Limits(NamedTuple):
    """Maximum bytes of one request, number of connections, and idle time (-1: unlimited)."""

    socket_request_max_bytes: int = FRAME_BYTES_MAX
    max_connections: int = INT_MAX
    connections_max_idle_ms: int = 600_000

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> Limits:
        """Read the limits from server.properties. Raises ValueError for an invalid number."""
        named = {field: properties.get(field.replace("_", ".")) for field in cls._fields}
        return cls(**{field: _number(field, text) for field, text in named.items() if text is not None})


def _number(field: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{field.replace('_', '.')} must be a whole number, not {text!r}") from None
