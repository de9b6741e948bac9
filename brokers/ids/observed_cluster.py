"""A cluster's committed metadata, read by a client that is no broker: used ids and live brokers."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import random
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

from mockraft.brokers.config import draw_config
from mockraft.brokers.image.cluster_image import ClusterImage
from mockraft.brokers.kernel import Kernel
from mockraft.brokers.metadata.observer import FatalError, Observer
from mockraft.brokers.metadata.replication import Replication
from mockraft.brokers.shell.shell import Shell
from mockraft.brokers.shell.socket_links import SocketLinks
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
        drawn = draw_config(0, cluster_id, tuple(bootstrap), random.Random(), security=security)
        config = dataclasses.replace(drawn, broker_id=NO_REPLICA)
        self.cluster_id = cluster_id
        self.image = ClusterImage()
        self._timeout_ms = timeout_ms
        self._observer = Observer(NO_REPLICA, cluster_id, bytes(16), self.image)
        kernel = Kernel(self._failed)
        self._replication = Replication(kernel, config, self._observer, _nothing)
        self._shell = Shell(kernel, functools.partial(SocketLinks, security=security))
        self._kernel = kernel
        self._error: Exception | None = None

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
                await self._shell.until(lambda: self._error is not None or condition())
        except TimeoutError:
            return False
        if isinstance(self._error, FatalError | WireError):
            raise ConnectionError(f"the metadata log cannot be read: {self._error}") from self._error
        if self._error is not None:
            raise self._error
        return True

    async def __aenter__(self) -> Self:
        self._kernel.enter(self._replication.start)
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
        self._kernel.stop()
        await self._shell.close()

    def _failed(self, error: Exception) -> None:
        self._error = error

    def _is_up_to_date(self) -> bool:
        return 0 <= self._observer.leader_high_watermark <= self._observer.high_watermark


def _nothing() -> None:
    """Do nothing: the shell wakes those who wait for records."""
