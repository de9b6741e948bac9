"""Warnings of refused clients: what was met and what would work, without a flood.

A client with wrong settings connects again and again. One line for each kind of refusal, host and listener in a minute
is enough; the journal has an entry for every refusal.
"""

from __future__ import annotations

import logging
from collections.abc import Hashable
from typing import TYPE_CHECKING, Final

from mockraft.wire import api_keys
from mockraft.wire.errors import WireError
from mockraft.wire.messages.api_versions_request import ApiVersionsRequest
from mockraft.wire.printable import printable_line

if TYPE_CHECKING:
    from mockraft.kafka_api.api import Client
    from mockraft.kafka_api.journal import Journal
    from mockraft.wire.message import Message

SILENT_MS: Final = 60_000
"""Time without another warning of the same key, such as kind, host and listener."""
KEYS_MAX: Final = 1_024
"""Keys that are remembered, and warnings that are logged within `SILENT_MS`."""
SHOWN_MAX: Final = 400
"""Characters of a log line that a client or another node wrote."""
TLS_HANDSHAKE: Final = 0x1603
"""First two bytes of each TLS handshake; as part of a frame's length they stand for 352 MiB and more."""

OPENING_APIS: Final = frozenset({api_keys.SASL_HANDSHAKE, api_keys.API_VERSIONS})
"""Requests with which a client begins a connection, and shows what it expects."""
_log = logging.getLogger("mockraft.listener")


class NotServedError(WireError):
    """The API of a request is not served here."""

    kind = "api"


class VersionNotServedError(WireError):
    """The version of a request is not served here."""

    kind = "api_version"


class Repeats:
    """Decides which of the warnings with one key are logged: one in `silent_ms`, and each with another reason.

    It is the first one, or a later one of those within the time (`logged_at`). Of all keys together at most `KEYS_MAX`
    are logged in `SILENT_MS`: clients choose reasons, ids and hosts.
    """

    def __init__(self, logged_at: int = 1, silent_ms: float = SILENT_MS) -> None:
        self._logged_at = logged_at
        self._silent_ms = silent_ms
        self._seen: dict[Hashable, tuple[int, int, str, int]] = {}
        self._logged = self._logged_since_ms = 0

    def due(self, key: Hashable, now_ms: int, reason: str = "") -> int:
        """Count a warning; return how many there were since the last logged one if it should be logged, else 0."""
        since_ms, count, before, unlogged = self._seen.pop(key, (now_ms, 0, reason, 0))
        if now_ms - since_ms >= self._silent_ms or reason != before:
            since_ms, count = now_ms, 0
        if len(self._seen) >= KEYS_MAX:
            # Clients choose many keys; the oldest is removed first.
            del self._seen[next(iter(self._seen))]
        is_due = count + 1 == self._logged_at and self._has_room(now_ms)
        # One for which there was no room is due again.
        count += is_due or count + 1 != self._logged_at
        self._seen[key] = since_ms, count, reason, 0 if is_due else unlogged + 1
        return unlogged + 1 if is_due else 0

    def _has_room(self, now_ms: int) -> bool:
        if now_ms - self._logged_since_ms >= SILENT_MS:
            self._logged, self._logged_since_ms = 0, now_ms
        self._logged += 1
        return self._logged <= KEYS_MAX

    def forget(self, key: Hashable) -> None:
        """Log the next warning with this key."""
        self._seen.pop(key, None)


class RefusalLog:
    """Logs refusals of one listener by `kind` and host."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._repeats = Repeats()

    def warn(self, kind: str, client: Client, reason: str, now_ms: int) -> None:
        """Log why a client was refused, unless the same was logged a short time ago."""
        host = client.address.rpartition(":")[0] or client.address
        count = self._repeats.due((kind, host, client.listener), now_ms)
        if not count:
            return
        node = f"{'broker' if self._journal.at_broker else 'controller'} {self._journal.node_id}"
        name = f"connection {client.connection_id} of {client.address}"
        times = f" ({count:,} times since the last such line)" if count > 1 else ""
        _log.warning("%s, listener %s: %s: %s%s", node, client.listener, name, printable_line(reason, SHOWN_MAX), times)


def needs_metadata(client_id: str | None, request: Message) -> bool:
    """Return True for the ApiVersions of a client that can do nothing without Metadata, and will not even ask for it.

    That is librdkafka, and the producers and consumers of Java; an admin client may want the controller.
    """
    if not isinstance(request, ApiVersionsRequest):
        return False
    software = f"{request.client_software_name} {request.client_software_version}"
    return "rdkafka" in software or (client_id or "").startswith(("producer-", "consumer-"))


def with_tls(protocol: str) -> str:
    """Return why a client with TLS is refused."""
    return f"TLS on a listener without TLS: the client needs security.protocol={protocol}"


def with_sasl(protocol: str) -> str:
    """Return why a login is refused."""
    return f"a SASL login on a listener without SASL: the client needs security.protocol={protocol}"


def without_sasl(api_name: str, protocol: str, mechanisms: tuple[str, ...]) -> str:
    """Return why a request before the login is refused."""
    how = f"security.protocol={protocol}, sasl.mechanism={' or '.join(mechanisms)}"
    return f"{api_name} before login: the client needs {how}"
