"""The sockets of an observer: chooses the node and time of the next request.

Kafka's raft channel keeps one connection per node and treats a bootstrap server as a node of its own, so a starting
broker has two: it sends one request to a bootstrap server, learns the leader, and stays with the leader from then on.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Callable

from mockraft.brokers.config import BrokerConfig
from mockraft.brokers.metadata.observer import Observer, Outcome
from mockraft.wire import client, messages, metadata_log_frame
from mockraft.wire.metadata_log_frame import RecordAt

RECONNECT_BACKOFF_MS = 50
RECONNECT_BACKOFF_MAX_MS = 500
SENT_ON_AT_ONCE = 5
"""Maximum number of successive responses that may each name another leader before the next request is delayed."""

_log = logging.getLogger(__name__)


class Replication:
    """Runs one observer against the network; `advanced` is called after every processed response.

    Its client id is raft-client-`name`, the broker's id unless given. `fetches` counts responses; `note` is the reason
    why the last one was not useful, empty when it was.
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
        outcome = Outcome()
        backoff_ms = RECONNECT_BACKOFF_MS
        sent_on = 0
        while True:
            epoch = self._observer.epoch
            try:
                connection = await self._connection(outcome)
                response = await connection.send(self._observer.request())
                outcome = self._observer.receive(response)
                self.fetches += 1
                backoff_ms = RECONNECT_BACKOFF_MS
                self._advanced()
            except (client.DisconnectedError, client.UnsupportedVersionError) as error:
                outcome = Outcome(False, backoff_ms, str(error))
                backoff_ms = min(backoff_ms * 2, RECONNECT_BACKOFF_MAX_MS)
            if outcome.note and outcome.note != self.note:
                _log.warning("broker %s: metadata log: %s", self._name, outcome.note)
            self.note = outcome.note
            sent_on = sent_on + 1 if self._observer.epoch != epoch else 0
            if not outcome.useful:
                await asyncio.sleep(outcome.backoff_ms / 1000)
            elif sent_on > SENT_ON_AT_ONCE:
                # Limits the load when controllers name each other for ever.
                await asyncio.sleep(RECONNECT_BACKOFF_MS / 1000)

    async def close(self) -> None:
        """Close every connection."""
        for connection in self._connections.values():
            await connection.close()

    async def _connection(self, outcome: Outcome) -> client.KafkaConnection:
        """Return the leader while it responds normally, else a bootstrap server, which may know a newer one."""
        leader = self._observer.leader if outcome.useful else None
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
    """Return the reader of metadata records: that of a proposal for a broker of one."""
    if config.messages is messages:
        return metadata_log_frame.decode
    from mockraft.wire.overlaid_records import OverlaidRecords

    return OverlaidRecords(config.messages).decode
