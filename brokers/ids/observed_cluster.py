"""A cluster's committed metadata, read by a client that is no broker: used ids and live brokers."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

from mockraft.brokers.config import draw_config
from mockraft.brokers.image.cluster_image import ClusterImage
from mockraft.brokers.metadata.observer import FatalError, Observer
from mockraft.brokers.metadata.replication import Replication
from mockraft.wire.client_security import ClientSecurity
from mockraft.wire.errors import WireError

NO_REPLICA = -2
"""The replica id of a consumer, so that no quorum lists this short-lived observer; -1 would look like "no leader"."""
TIMEOUT_MS = 10_000


class ObservedCluster:
    """Replicates the metadata log for as long as the block lasts. `image` is up to date when the block begins.

    Entering raises ConnectionError when no controller of `bootstrap`, (host, port) each, leads within `timeout_ms`.
    """

    def __init__(
        self,
        bootstrap: Sequence[tuple[str, int]],
        cluster_id: str,
        *,
        security: ClientSecurity | None = None,
        timeout_ms: int = TIMEOUT_MS,
    ) -> None:
        config = draw_config(NO_REPLICA, cluster_id, tuple(bootstrap), random.Random(), security=security)
        self.image = ClusterImage()
        self._timeout_ms = timeout_ms
        self._observer = Observer(NO_REPLICA, cluster_id, bytes(16), self.image)
        self._advanced = asyncio.Event()
        self._replication = Replication(config, self._observer, self._advanced.set)

    @property
    def used_ids(self) -> frozenset[int]:
        """Return every id that a partition has among its replicas."""
        partitions = (each for topic in self.image.topics.values() for each in topic.partitions.values())
        return frozenset(replica for partition in partitions for replica in partition.replicas)

    @property
    def alive(self) -> dict[int, frozenset[str]]:
        """Return the listener hosts of each broker that is registered and not fenced."""
        return {
            each.broker_id: frozenset(endpoint.host for endpoint in each.endpoints.values())
            for each in self.image.alive()
        }

    @property
    def controllers(self) -> frozenset[int]:
        """Return the ids of controllers, registered or voters; a broker must not use them."""
        return frozenset(self.image.controllers) | frozenset(self._observer.voters)

    async def wait_for(self, condition: Callable[[], bool], timeout_ms: float) -> bool:
        """Wait for `condition` to hold for the metadata; return False on timeout. Raises ConnectionError."""
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                while not condition():
                    self._advanced.clear()
                    waiting = asyncio.ensure_future(self._advanced.wait())
                    try:
                        await asyncio.wait((self._task, waiting), return_when=asyncio.FIRST_COMPLETED)
                    finally:
                        waiting.cancel()
                    if self._task.done():
                        self._task.result()
        except TimeoutError:
            return False
        except (FatalError, WireError) as error:
            raise ConnectionError(f"the metadata log cannot be read: {error}") from error
        return True

    async def __aenter__(self) -> Self:
        self._task = asyncio.ensure_future(self._replication.run())
        try:
            if not await self.wait_for(self._is_up_to_date, self._timeout_ms):
                raise ConnectionError(
                    f"the metadata log was not read within {self._timeout_ms} ms: "
                    f"{self._replication.note or 'no controller leads'}"
                )
        except BaseException:
            await self._close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._close()

    async def _close(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        await self._replication.close()

    def _is_up_to_date(self) -> bool:
        return 0 <= self._observer.leader_high_watermark <= self._observer.high_watermark
