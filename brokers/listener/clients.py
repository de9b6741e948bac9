"""The clients of one broker without sockets: connections, parked requests, limits, idle time.

Mirrors Kafka's SocketServer and the purgatories of its requests. The methods return effects for the owner of the
sockets. Parked requests are retried by `tick`: all after `changed` was called, each at its deadline.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from mockraft.brokers.apis.api import BrokerView
from mockraft.brokers.listener.connection import Connection
from mockraft.brokers.listener.limits import Limits
from mockraft.kafka_api.effects import Close, ConnectionEffect
from mockraft.kafka_api.parked import NEVER_MS

CLOSINGS_KEPT = 63
IDLE_SWEEPS = 4
"""Number of searches for idle connections within `connections_max_idle_ms`."""

_log = logging.getLogger(__name__)


class Clients:
    """The connections by id. `closings` are the last reasons for which this side closed one.

    `wake` is called when `next_tick_ms` has become earlier without a call of another method.
    """

    def __init__(self, broker: BrokerView, limits: Limits, wake: Callable[[], None]) -> None:
        self.closings: list[str] = []
        self._broker = broker
        self._limits = limits
        self._wake = wake
        self._connections: dict[int, Connection] = {}
        self._parked: dict[int, Connection] = {}
        self._has_changed = False
        self._next_sweep_ms = 0

    def changed(self) -> None:
        """Let the next tick retry all parked requests: something that they may wait for has changed."""
        if not self._has_changed and self._parked:
            self._has_changed = True
            self._wake()

    def connected(
        self, connection_id: int, listener_name: str, client_address: str, now_ms: int
    ) -> list[ConnectionEffect]:
        """Add an accepted connection, or close it when there are too many."""
        limits = self._limits
        connection = Connection(
            connection_id, self._broker, listener_name, client_address, limits.socket_request_max_bytes, now_ms
        )
        self._connections[connection_id] = connection
        if len(self._connections) > limits.max_connections:
            return self._done(
                connection, connection.close(f"more than max.connections={limits.max_connections} connections")
            )
        return []

    def received(self, connection_id: int, data: bytes, now_ms: int) -> list[ConnectionEffect]:
        """Process bytes received on a connection."""
        connection = self._connections.get(connection_id)
        return [] if connection is None else self._done(connection, connection.receive(data, now_ms))

    def sent(self, connection_id: int, now_ms: int) -> list[ConnectionEffect]:
        """Process a connection's next requests after the bytes that an AwaitSent waited for were written."""
        connection = self._connections.get(connection_id)
        return [] if connection is None else self._done(connection, connection.sent(now_ms))

    def disconnected(self, connection_id: int) -> None:
        """Remove an ended connection; no effect if it was closed from here."""
        self._connections.pop(connection_id, None)
        self._parked.pop(connection_id, None)

    def tick(self, now_ms: int) -> list[ConnectionEffect]:
        """Run what is due: groups, parked requests, the search for idle connections."""
        effects: list[ConnectionEffect] = []
        self._broker.groups.groups.tick(now_ms)
        has_changed, self._has_changed = self._has_changed, False
        for connection in list(self._parked.values()):
            if connection.parked is not None and (has_changed or now_ms >= connection.parked.deadline_ms):
                effects += self._done(connection, connection.retry(now_ms))
        if now_ms >= self._next_sweep_ms:
            effects += self._sweep(now_ms)
        return effects

    def next_tick_ms(self) -> int:
        """Return the time at which `tick` must be called."""
        if self._has_changed:
            return 0
        deadlines_ms = (each.parked.deadline_ms for each in self._parked.values() if each.parked is not None)
        return min(self._broker.groups.groups.next_tick_ms(), self._next_sweep_ms, *deadlines_ms)

    def _done(self, connection: Connection, effects: list[ConnectionEffect]) -> list[ConnectionEffect]:
        """Update the tables after a call of the connection's methods."""
        if connection.parked is not None:
            self._parked[connection.connection_id] = connection
        else:
            self._parked.pop(connection.connection_id, None)
        if effects and isinstance(effects[-1], Close):
            reason = effects[-1].reason
            _log.info("broker %d: closed %s: %s", self._broker.config.broker_id, connection.client_address, reason)
            self.closings = [*self.closings[-CLOSINGS_KEPT:], reason]
            self.disconnected(connection.connection_id)
        return effects

    def _sweep(self, now_ms: int) -> list[ConnectionEffect]:
        """Close the connections that are idle for too long."""
        idle_ms = self._limits.connections_max_idle_ms
        if idle_ms < 0:
            self._next_sweep_ms = NEVER_MS
            return []
        self._next_sweep_ms = now_ms + max(1, idle_ms // IDLE_SWEEPS)
        effects: list[ConnectionEffect] = []
        for connection in list(self._connections.values()):
            if connection.active_ms < now_ms - idle_ms:
                effects += self._done(connection, connection.close(f"idle for connections.max.idle.ms={idle_ms}"))
        return effects
