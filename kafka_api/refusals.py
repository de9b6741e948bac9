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

if TYPE_CHECKING:
    from mockraft.kafka_api.api import Client
    from mockraft.kafka_api.journal import Journal
    from mockraft.wire.message import Message

SILENT_MS: Final = 60_000
"""Time without another warning of the same key, such as kind, host and listener."""
KEYS_MAX: Final = 1_024
_SHOWN_MAX: Final = 400
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
    """Decides which of the warnings with one key are logged: one in `SILENT_MS`, and each with another reason.

    It is the first one, or a later one of those within the time (`logged_at`).
    """

    def __init__(self, logged_at: int = 1) -> None:
        self._logged_at = logged_at
        self._seen: dict[Hashable, tuple[int, int, str]] = {}

    def is_due(self, key: Hashable, now_ms: int = 0, reason: str = "") -> bool:
        """Count a warning; return True if it should be logged. Without a time each reason is logged once."""
        since_ms, count, before = self._seen.pop(key, (now_ms, 0, reason))
        if now_ms - since_ms >= SILENT_MS or reason != before:
            since_ms, count = now_ms, 0
        if len(self._seen) >= KEYS_MAX:
            # Clients choose many keys; the oldest is removed first.
            del self._seen[next(iter(self._seen))]
        self._seen[key] = since_ms, count + 1, reason
        return count + 1 == self._logged_at

    def forget(self, key: Hashable) -> None:
        """Log the next warning with this key."""
        self._seen.pop(key, None)


def shortened(text: str) -> str:
    """Return a text for a log line: what clients name in it may be long."""
    return text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}… ({len(text)} characters)"


class RefusalLog:
    """Logs refusals of one listener by `kind` and host."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._repeats = Repeats()

    def warn(self, kind: str, client: Client, reason: str, now_ms: int) -> None:
        """Log why a client was refused, unless the same was logged a short time ago."""
        host = client.address.rpartition(":")[0] or client.address
        if not self._repeats.is_due((kind, host, client.listener), now_ms):
            return
        node = f"{'broker' if self._journal.at_broker else 'controller'} {self._journal.node_id}"
        name = f"connection {client.connection_id} of {client.address}"
        _log.warning("%s, listener %s: %s: %s", node, client.listener, name, shortened(reason))


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
