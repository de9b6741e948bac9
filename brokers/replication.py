"""The sockets of an observer: which node it asks next, and when.

Kafka's raft channel keeps one connection per node and treats a bootstrap server as a node of its own, so a starting
broker has two: it asks a bootstrap server once, is told the leader, and stays with the leader from then on.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Callable

from mockraft.brokers.config import BrokerConfig
from mockraft.brokers.observer import Heard, Observer
from mockraft.wire import client

RECONNECT_BACKOFF_MS = 50
RECONNECT_BACKOFF_MAX_MS = 500

_log = logging.getLogger(__name__)


class Replication:
    """Runs one observer against the network; `advanced` is called after every answer it took in.

    `fetches` counts answers; `note` says why the last one was of no use, empty when it was.
    """

    def __init__(self, config: BrokerConfig, observer: Observer, advanced: Callable[[], None]) -> None:
        self.fetches = 0
        self.note = ""
        self._config = config
        self._observer = observer
        self._advanced = advanced
        self._connections: dict[tuple[str, int] | int, client.KafkaConnection] = {}
        self._correlation_ids = itertools.count()
        self._bootstrap = itertools.cycle(config.bootstrap)

    async def run(self) -> None:
        """Replicate until cancelled. Raises FatalError and WireError where a real broker would exit."""
        heard = Heard()
        backoff_ms = RECONNECT_BACKOFF_MS
        while True:
            try:
                connection = await self._connection(heard)
                response = await connection.send(self._observer.request())
                heard = self._observer.receive(response)
                self.fetches += 1
                backoff_ms = RECONNECT_BACKOFF_MS
                self._advanced()
            except (client.DisconnectedError, client.UnsupportedVersionError) as error:
                heard = Heard(False, backoff_ms, str(error))
                backoff_ms = min(backoff_ms * 2, RECONNECT_BACKOFF_MAX_MS)
            if heard.note and heard.note != self.note:
                _log.warning("broker %d: metadata log: %s", self._config.broker_id, heard.note)
            self.note = heard.note
            if not heard.useful:
                await asyncio.sleep(heard.backoff_ms / 1000)

    async def close(self) -> None:
        """Close every connection."""
        for connection in self._connections.values():
            await connection.close()

    async def _connection(self, heard: Heard) -> client.KafkaConnection:
        """To the leader while it answers well, else to a bootstrap server, which may know a newer one."""
        leader = self._observer.leader if heard.useful else None
        endpoint = leader.endpoint if leader else next(self._bootstrap)
        node = leader.node_id if leader else endpoint
        connection = self._connections.get(node)
        if connection is None or not connection.is_open:
            connection = self._connections[node] = await client.connect(
                *endpoint,
                client_id=f"raft-client-{self._config.broker_id}",
                request_timeout_ms=self._config.raft_request_timeout_ms,
                correlation_ids=self._correlation_ids,
                security=self._config.security,
                messages=self._config.messages,
            )
        return connection
