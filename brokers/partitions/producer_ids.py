"""Producer ids from blocks that the controller allocates to this broker (Kafka's `RPCProducerIdManager`, KIP-730)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from mockraft.brokers.channel import ControllerChannel
from mockraft.wire import error_codes
from mockraft.wire.messages.allocate_producer_ids_request import AllocateProducerIdsRequest


class ProducerIdsError(Exception):
    """The controller allocated no ids; the text is the reason."""


class ProducerIds:
    """Returns each id once. At most one request for a block is in flight, however many callers wait for it."""

    def __init__(self, channel: ControllerChannel, broker_id: int, broker_epoch: Callable[[], int]) -> None:
        self._channel = channel
        self._broker_id = broker_id
        self._broker_epoch = broker_epoch
        self._block = iter(range(0))
        self._asking = asyncio.Lock()

    async def next_id(self) -> int:
        """Return an unused id. Raises ProducerIdsError, and the channel's errors."""
        async with self._asking:
            for producer_id in self._block:
                return producer_id
            request = AllocateProducerIdsRequest(broker_id=self._broker_id, broker_epoch=self._broker_epoch())
            response = await self._channel.send(lambda _: request)
            if response.error_code != error_codes.NONE or response.producer_id_len <= 0:
                raise ProducerIdsError(f"AllocateProducerIds: {error_codes.name(response.error_code)}")
            self._block = iter(range(response.producer_id_start, response.producer_id_start + response.producer_id_len))
            return next(self._block)

    async def close(self) -> None:
        """Close the connection."""
        await self._channel.close()
