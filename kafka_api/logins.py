"""Logins of a listener's connections: their limits, and the delayed closing of refused ones.

Neither kind of client may exhaust the process: unauthenticated connections are counted and have a time limit, the
oldest of the host with most of them gives way to a new one, and a client whose login failed waits for the answer
(`connection.failed.authentication.delay.ms`, KIP-306) while nothing is read from it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import takewhile
from typing import Final, NamedTuple, Protocol

from mockraft.kafka_api.api import NEVER_MS
from mockraft.kafka_api.connections import FRAME_LIMIT, Connection, Login
from mockraft.kafka_api.effects import Close, Effect, PauseReading

LOGIN_FRAME_LIMIT: Final = "sasl.server.max.receive.size, before login"
UNAUTHENTICATED_SHARE: Final = 8
"""Share of `received_bytes_max` for unfinished frames of unauthenticated clients, so the others can go on."""


class LoginLimits(Protocol):
    """The limits of connections and of their logins."""

    @property
    def frame_bytes_max(self) -> int:
        """Maximum size of a request."""

    @property
    def received_bytes_max(self) -> int:
        """Maximum size of all unanswered requests."""

    @property
    def connections_max(self) -> int:
        """Maximum number of connections."""

    @property
    def unauthenticated_connections_max(self) -> int:
        """Maximum number of connections without a login."""

    @property
    def authentication_timeout_ms(self) -> int:
        """Time for a login."""

    @property
    def connection_failed_authentication_delay_ms(self) -> int:
        """Time after which a refused client is answered."""

    @property
    def sasl_server_max_receive_size(self) -> int:
        """Maximum size of a request before the login."""


class _Refusal(NamedTuple):
    """Action of a refusal that is due."""

    due_ms: int
    effects: Sequence[Effect]


class Logins:
    """Unauthenticated connections by id, each with the deadline of its login, and refusals.

    `new_login` begins the SASL login of a connection; without SASL `name_of_certificate` names the client of a TLS
    connection (LookupError, ValueError: it is refused). With neither all connections are admitted.
    """

    def __init__(
        self,
        limits: LoginLimits,
        new_login: Callable[[], Login] | None = None,
        name_of_certificate: Callable[[bytes], str] | None = None,
    ) -> None:
        self._limits = limits
        self._new_login = new_login
        self._name_of_certificate = name_of_certificate
        self._login_deadlines_ms: dict[int, int] = {}
        self._hosts: dict[str, dict[int, None]] = {}
        """Unauthenticated connections by host, oldest first."""
        self._host_of: dict[int, str] = {}
        self._refusals: dict[int, _Refusal] = {}

    @property
    def count(self) -> int:
        """Number of unauthenticated connections."""
        return len(self._login_deadlines_ms)

    def refusal(self, connections: int) -> tuple[str, str] | None:
        """Return kind and reason if the connection limit is reached, else None."""
        count, limit = connections + len(self._refusals), self._limits.connections_max
        if count < limit:
            return None
        return "connections_max", f"refused: {count} connections are open, connections_max={limit}"

    def to_give_way(self) -> tuple[int, str] | None:
        """Return the connection that a new one replaces while too many are unauthenticated, and the reason."""
        count, limit = len(self._login_deadlines_ms), self._limits.unauthenticated_connections_max
        if count < limit:
            return None
        most = max(self._hosts.values(), key=len)
        about = f"refused: {count} connections are not authenticated, unauthenticated_connections_max={limit}"
        return next(iter(most)), f"{about}: the oldest gives way to a new one"

    def arrived(self, connection: Connection, now_ms: int) -> None:
        """Register an accepted connection: unauthenticated until `secured` or `admit`."""
        if self._new_login is None and self._name_of_certificate is None:
            return
        connection_id, host = connection.connection_id, connection.client.address.rpartition(":")[0]
        self._login_deadlines_ms[connection_id] = now_ms + self._limits.authentication_timeout_ms
        self._hosts.setdefault(host, {})[connection_id] = None
        self._host_of[connection_id] = host
        if self._new_login is not None:
            connection.authentication = self._new_login()
            connection.reader.frame_bytes_max = self._limits.sasl_server_max_receive_size
            connection.reader.limit_name = LOGIN_FRAME_LIMIT

    def secured(self, connection: Connection, certificate: bytes | None) -> str | None:
        """Complete TLS with this certificate; without SASL that authenticates the client. Return the error, if any."""
        if connection.authentication is not None:
            return None
        if certificate is not None and self._name_of_certificate is not None:
            try:
                principal = f"User:{self._name_of_certificate(certificate)}"
            except (LookupError, ValueError) as unnamed:
                return f"refused: {unnamed}"
            connection.client = connection.client._replace(principal=principal)
        self.forget(connection.connection_id)
        return None

    def admit(self, connection: Connection, login: Login) -> None:
        """Mark a connection as authenticated."""
        self.forget(connection.connection_id)
        connection.client = connection.client._replace(
            principal=login.principal, token_authenticated=login.token_authenticated
        )
        connection.reader.frame_bytes_max = self._limits.frame_bytes_max
        connection.reader.limit_name = FRAME_LIMIT
        if login.session_ends_ms is None:
            connection.authentication = None

    def refuse(self, connection_id: int, response: Sequence[Effect], reason: str, now_ms: int) -> list[Effect]:
        """Send this response after the delay, then close; nothing more is read from the connection."""
        due_ms = now_ms + self._limits.connection_failed_authentication_delay_ms
        self._refusals[connection_id] = _Refusal(due_ms, [*response, Close(connection_id, reason)])
        return [PauseReading(connection_id)]

    def forget(self, connection_id: int) -> None:
        """Remove an unauthenticated connection: it authenticated or ended."""
        if self._login_deadlines_ms.pop(connection_id, None) is None:
            return
        host = self._host_of.pop(connection_id)
        del self._hosts[host][connection_id]
        if not self._hosts[host]:
            del self._hosts[host]

    def left(self, connection_id: int) -> None:
        """Remove an ended connection."""
        self._refusals.pop(connection_id, None)

    def received_bytes_max(self, connection_id: int) -> int:
        """Return the limit on all unfinished frames above which this connection's may not grow."""
        bytes_max = self._limits.received_bytes_max
        return bytes_max // UNAUTHENTICATED_SHARE if connection_id in self._login_deadlines_ms else bytes_max

    def overdue(self, now_ms: int) -> list[tuple[int, str]]:
        """Return connections whose login deadline has passed, each with the reason to close it."""
        reason = f"refused: not authenticated within {self._limits.authentication_timeout_ms} ms"
        due = takewhile(lambda item: item[1] <= now_ms, self._login_deadlines_ms.items())
        return [(connection_id, reason) for connection_id, _ in due]

    def due(self, now_ms: int) -> list[Effect]:
        """Return due refusals, each once."""
        due = list(takewhile(lambda item: item[1].due_ms <= now_ms, self._refusals.items()))
        for connection_id, _ in due:
            del self._refusals[connection_id]
        return [effect for _, refusal in due for effect in refusal.effects]

    def next_due_ms(self) -> int:
        """Return the earliest deadline of a login or refusal."""
        if not self._login_deadlines_ms and not self._refusals:
            return NEVER_MS
        # Limit and delay are the same for all, so the oldest entry is due first.
        login_ms = next(iter(self._login_deadlines_ms.values()), NEVER_MS)
        refusal = next(iter(self._refusals.values()), None)
        return login_ms if refusal is None else min(login_ms, refusal.due_ms)
