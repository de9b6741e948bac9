"""The connections of which it is not known yet whose they are, and those that are being turned away.

Neither kind may exhaust the process: strangers are counted and have a time limit, and whoever failed waits for the
answer (`connection.failed.authentication.delay.ms`, KIP-306) without a byte of theirs being read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, Final, NamedTuple

from mockraft.server.apis.api import Api
from mockraft.server.authentication.credentials import Credentials
from mockraft.server.authentication.sasl_exchange import SaslExchange
from mockraft.server.connection_state import Connection
from mockraft.server.controller.controller import Controller
from mockraft.server.controller.periodic import NEVER_MS
from mockraft.server.distinguished_name import PrincipalMapper, subject_of
from mockraft.server.effects import Close, Effect, PauseReading
from mockraft.server.security_options import uses_sasl, uses_tls

if TYPE_CHECKING:
    import random

STRANGERS_SHARE: Final = 8
"""Unfinished frames of strangers may hold this part of `received_bytes_max`, so that others can always go on."""


class _Refusal(NamedTuple):
    """What is done when the time has come."""

    due_ms: int
    effects: Sequence[Effect]


class Gate:
    """Strangers by connection id, each with the time at which they must have said who they are; and refusals.

    `chance` makes the nonces of SASL, which nobody should be able to foretell. On a PLAINTEXT listener all come in.
    """

    def __init__(self, controller: Controller, apis: Mapping[int, Api], chance: random.Random | None) -> None:
        self._config = controller.config
        self._apis = apis
        self._chance = chance
        self._credentials = Credentials(controller)
        self._principals = PrincipalMapper(self._config.ssl_principal_mapping_rules)
        self._uses_sasl = uses_sasl(self._config.security_protocol)
        self._has_strangers = self._uses_sasl or uses_tls(self._config.security_protocol)
        self._strangers: dict[int, int] = {}
        self._refusals: dict[int, _Refusal] = {}

    @property
    def strangers(self) -> int:
        """How many connections have not said who they are."""
        return len(self._strangers)

    def refusal(self, connections: int) -> tuple[str, str] | None:
        """Why no further connection is taken where there are so many: kind and reason; None where it is."""
        counts = {
            "unauthenticated_connections_max": len(self._strangers),
            "connections_max": connections + len(self._refusals),
        }
        for limit, count in counts.items():
            if count >= getattr(self._config, limit):
                return limit, f"refused: {count} connections are open, {limit}={getattr(self._config, limit)}"
        return None

    def arrived(self, connection: Connection, now_ms: int) -> None:
        """A connection was accepted: a stranger's until `secured` or `admit`."""
        if not self._has_strangers:
            return
        self._strangers[connection.connection_id] = now_ms + self._config.authentication_timeout_ms
        if self._uses_sasl:
            assert self._chance is not None, "a SASL listener needs chance"
            connection.authentication = SaslExchange(self._config, self._apis, self._credentials, self._chance)
            connection.reader.frame_bytes_max = self._config.sasl_server_max_receive_size

    def secured(self, connection: Connection, certificate: bytes | None) -> str | None:
        """TLS is set up and this certificate was shown; without SASL that says who it is. Gives why it says nobody."""
        if connection.authentication is not None:
            return None
        if certificate is not None:
            try:
                connection.principal = f"User:{self._principals.name_of(subject_of(certificate))}"
            except (LookupError, ValueError) as unnamed:
                return f"refused: {unnamed}"
        self.known(connection.connection_id)
        return None

    def admit(self, connection: Connection, exchange: SaslExchange) -> None:
        """A log-in is complete: from now on it is known who is there."""
        self.known(connection.connection_id)
        connection.principal = exchange.principal
        connection.token_authenticated = exchange.token_authenticated
        connection.reader.frame_bytes_max = self._config.frame_bytes_max
        if exchange.session_ends_ms is None:
            connection.authentication = None

    def refuse(self, connection_id: int, said: Sequence[Effect], reason: str, now_ms: int) -> list[Effect]:
        """Have this said and the connection closed after the delay; nothing more is read from it."""
        due_ms = now_ms + self._config.connection_failed_authentication_delay_ms
        self._refusals[connection_id] = _Refusal(due_ms, [*said, Close(connection_id, reason)])
        return [PauseReading(connection_id)]

    def known(self, connection_id: int) -> None:
        """The stranger has said who they are, or is gone."""
        self._strangers.pop(connection_id, None)

    def left(self, connection_id: int) -> None:
        """The connection is gone."""
        self._refusals.pop(connection_id, None)

    def received_bytes_max(self, connection_id: int) -> int:
        """What unfinished frames of all may hold for this connection's to grow."""
        bytes_max = self._config.received_bytes_max
        return bytes_max // STRANGERS_SHARE if connection_id in self._strangers else bytes_max

    def overdue(self, now_ms: int) -> list[tuple[int, str]]:
        """The strangers whose time is over, and what to say of them."""
        reason = f"refused: not authenticated within {self._config.authentication_timeout_ms} ms"
        due = takewhile(lambda item: item[1] <= now_ms, self._strangers.items())
        return [(connection_id, reason) for connection_id, _ in due]

    def due(self, now_ms: int) -> list[Effect]:
        """What refusals do now, each once."""
        due = list(takewhile(lambda item: item[1].due_ms <= now_ms, self._refusals.items()))
        for connection_id, _ in due:
            del self._refusals[connection_id]
        return [effect for _, refusal in due for effect in refusal.effects]

    def next_due_ms(self) -> int:
        """When the next stranger's time is over or the next refusal is due."""
        if not self._strangers and not self._refusals:
            return NEVER_MS
        # Limit and delay are the same for all, so whoever came first is first.
        stranger_ms = next(iter(self._strangers.values()), NEVER_MS)
        refusal = next(iter(self._refusals.values()), None)
        return stranger_ms if refusal is None else min(stranger_ms, refusal.due_ms)
