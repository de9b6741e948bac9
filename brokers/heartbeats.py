"""The heartbeats of one broker: no task is needed in the normal case, because ten thousand brokers share a process."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mockraft.brokers import lifecycle
from mockraft.brokers.channel import RECONNECT_BACKOFF_MS, ControllerChannel
from mockraft.wire import client, error_codes

if TYPE_CHECKING:
    from mockraft.brokers.broker import SimulatedBroker


class Heartbeats:
    """Sends one heartbeat at a time over the channel and reports the result to the lifecycle.

    `answered` counts successful heartbeats. `took`, if set, is called with the latency of each in seconds, measured
    from the first attempt.
    """

    __slots__ = ("_broker", "_channel", "_sent_s", "answered", "took")

    def __init__(self, broker: SimulatedBroker, channel: ControllerChannel) -> None:
        self._broker = broker
        self._channel = channel
        self._sent_s = 0.0
        self.answered = 0
        self.took: Callable[[float], None] | None = None

    def send(self) -> None:
        """Send the heartbeat for the broker's current state."""
        self._sent_s = time.perf_counter()
        try:
            sent = self._channel.send_soon(self._broker.heartbeat(), self._came)
        except client.UnsupportedVersionError as error:
            self._broker.not_answered(error)
            return
        if not sent:
            self._broker.start_task(self._send)

    def _came(self, outcome: Any) -> None:
        broker = self._broker
        if broker.stopped.is_set():
            return
        if isinstance(outcome, client.RequestTimedOutError):
            broker.not_answered(outcome)
        elif isinstance(outcome, client.DisconnectedError):
            broker.start_task(self._send_again)
        elif isinstance(outcome, Exception):
            broker.failed(outcome)
        elif outcome.error_code == error_codes.NOT_CONTROLLER:
            broker.start_task(self._send_again)
        else:
            self._take(broker.accepted(outcome))

    async def _send_again(self) -> None:
        await self._channel.close()
        await asyncio.sleep(RECONNECT_BACKOFF_MS / 1000)
        await self._send()

    async def _send(self) -> None:
        request = self._broker.heartbeat()
        self._take(await self._broker.send_lifecycle(self._channel, lambda _: request))

    def _take(self, response: Any | None) -> None:
        if response is None:
            return
        self.answered += 1
        if self.took is not None:
            self.took(time.perf_counter() - self._sent_s)
        self._broker.happen(
            lifecycle.HeartbeatAnswered(response.is_caught_up, response.is_fenced, response.should_shut_down)
        )
