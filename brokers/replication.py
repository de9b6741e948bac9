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
from mockraft.wire import client, messages, metadata_log_frame
from mockraft.wire.metadata_log_frame import RecordAt

RECONNECT_BACKOFF_MS = 50
RECONNECT_BACKOFF_MAX_MS = 500
SENT_ON_AT_ONCE = 5
"""How many answers in a row may each name another leader before we take our time."""

_log = logging.getLogger(__name__)


class Replication:
    """Runs one observer against the network; `advanced` is called after every answer it took in.

    Its client id is raft-client-`name`, the broker's id unless given. `fetches` counts answers; `note` says why the
    last one was of no use, empty when it was.
    """

    def __init__(
        self, config: BrokerConfig, observer: Observer, advanced: Callable[[], None], name: str | None = None
    ) -> None:
        self.fetches = 0
        self.note = ""
        self._config = config
        self._name = str(config.broker_id) if name is None else name
        self._observer = observer
        self._advanced = advanced
        self._connections: dict[tuple[str, int] | int, client.KafkaConnection] = {}
        self._correlation_ids = itertools.count()
        self._bootstrap = itertools.cycle(config.bootstrap)

    async def run(self) -> None:
        """Replicate until cancelled. Raises FatalError and WireError where a real broker would exit."""
        heard = Heard()
        backoff_ms = RECONNECT_BACKOFF_MS
        sent_on = 0
        while True:
            epoch = self._observer.epoch
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
                _log.warning("broker %s: metadata log: %s", self._name, heard.note)
            self.note = heard.note
            sent_on = sent_on + 1 if self._observer.epoch != epoch else 0
            if not heard.useful:
                await asyncio.sleep(heard.backoff_ms / 1000)
            elif sent_on > SENT_ON_AT_ONCE:
                # Controllers that name each other for ever shall not keep us busy.
                await asyncio.sleep(RECONNECT_BACKOFF_MS / 1000)

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
                client_id=f"raft-client-{self._name}",
                request_timeout_ms=self._config.raft_request_timeout_ms,
                correlation_ids=self._correlation_ids,
                security=self._config.security,
                messages=self._config.messages,
            )
        return connection


def decoder(config: BrokerConfig) -> Callable[[bytes], RecordAt]:
    """How a broker reads metadata records: one of a proposal reads the proposal's."""
    if config.messages is messages:
        return metadata_log_frame.decode
    from mockraft.wire.overlaid_records import OverlaidRecords

    return OverlaidRecords(config.messages).decode
