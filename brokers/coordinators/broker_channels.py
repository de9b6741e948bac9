"""A broker's connections to the others, itself included, for one purpose: one request at a time to each."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from mockraft.brokers.core import Core
from mockraft.brokers.effects import Link, Versions
from mockraft.brokers.kernel import R
from mockraft.brokers.partitions.replicas import Replicas
from mockraft.wire.errors import DisconnectedError, UnsupportedVersionError, WireError

if TYPE_CHECKING:
    from mockraft.wire.message import RequestMessage

_log = logging.getLogger(__name__)


class BrokerChannels:
    """Opens connections as they are needed. `purpose` is the end of Kafka's client id."""

    def __init__(self, core: Core, replicas: Replicas, purpose: str, timeout_ms: int) -> None:
        self._kernel = core.kernel
        self._broker_id = core.config.broker_id
        self._replicas = replicas
        self._purpose = purpose
        self._timeout_ms = timeout_ms
        self._links: dict[int, Link] = {}
        self._busy: set[int] = set()

    def is_busy(self, broker_id: int) -> bool:
        """Return True while a request to this broker has no response."""
        return broker_id in self._busy

    def is_reachable(self, broker_id: int) -> bool:
        """Return True if the broker is registered with an endpoint for brokers."""
        return self._replicas.endpoint_of(broker_id) is not None

    def send(
        self,
        broker_id: int,
        make: Callable[[Versions], RequestMessage[R]],
        answered: Callable[[R], None],
        failed: Callable[[Exception], None],
    ) -> None:
        """Send a request to a broker; `failed` gets DisconnectedError, WireError, UnsupportedVersionError."""
        endpoint = self._replicas.endpoint_of(broker_id)
        if endpoint is None:
            self._busy.add(broker_id)  # so that `failed` sends it nothing
            failed(DisconnectedError(f"broker {broker_id} is not registered"))
            self._busy.discard(broker_id)
            return
        link = self._links.get(broker_id)
        if link is not None and (link.host, link.port) != endpoint:
            self._kernel.disconnect(link)
            link = None
        if link is None:
            client_id = f"broker-{self._broker_id}-{self._purpose}"
            link = Link(f"{self._purpose} {broker_id}", client_id, *endpoint, self._timeout_ms, to_broker=True)
            self._links[broker_id] = link
        self._busy.add(broker_id)
        self._kernel.request(
            link,
            make,
            functools.partial(self._answered, broker_id, answered),
            functools.partial(self._failed, broker_id, failed),
            timeout_ms=self._timeout_ms,
        )

    def close(self) -> None:
        """Close the connections; no request is called back."""
        for link in self._links.values():
            self._kernel.disconnect(link)
        self._links.clear()

    def _answered(self, broker_id: int, answered: Callable[[R], None], response: R) -> None:
        self._busy.discard(broker_id)
        answered(response)

    def _failed(self, broker_id: int, failed: Callable[[Exception], None], error: Exception) -> None:
        if not isinstance(error, DisconnectedError | UnsupportedVersionError | WireError):
            raise error
        _log.info("broker %d: %s to broker %d: %s", self._broker_id, self._purpose, broker_id, error)
        self._busy.discard(broker_id)
        self._kernel.disconnect(self._links.pop(broker_id))
        failed(error)
