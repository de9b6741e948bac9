"""Requests of a group's coordinator to the leaders of partitions, this broker included, which keep a group's state."""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypeVar

from mockraft.brokers.assignments import ReplicaKey
from mockraft.brokers.coordinators.broker_channels import BrokerChannels
from mockraft.brokers.coordinators.waiting import Waiting
from mockraft.brokers.core import Core
from mockraft.brokers.effects import Versions
from mockraft.brokers.partitions.replicas import Replicas
from mockraft.wire.message import Message

if TYPE_CHECKING:
    from mockraft.wire.message import RequestMessage

Keys = dict[bytes, list[int]]
"""Partitions by topic id."""
ResponseT = TypeVar("ResponseT", bound=Message)


class Leaders:
    """Sends each leader one request after another. `changed` is called with the last response."""

    def __init__(self, core: Core, replicas: Replicas, timeout_ms: int, changed: Callable[[], None]) -> None:
        assert core.image is not None
        self._image = core.image
        self._channels = BrokerChannels(core, replicas, "share-state", timeout_ms)
        self._queues: dict[int, deque[Callable[[], None]]] = {}
        self._changed = changed

    def ask(
        self, keys: Iterable[ReplicaKey], make: Callable[[Keys], RequestMessage[ResponseT]]
    ) -> Waiting[list[ResponseT]]:
        """Ask the leaders of partitions; the result has no response of a leader that cannot be reached."""
        by_leader: dict[int, Keys] = {}
        for topic_id, index in keys:
            led = self._image.partition(topic_id, index)
            if led is not None and self._channels.is_reachable(led.leader):
                by_leader.setdefault(led.leader, {}).setdefault(topic_id, []).append(index)
        waiting: Waiting[list[ResponseT]] = Waiting()
        responses: list[ResponseT] = []
        left = set(by_leader)

        def ended(leader: int, response: ResponseT | Exception) -> None:
            left.discard(leader)
            if not isinstance(response, Exception):
                responses.append(response)
            self._send_next(leader)
            if not left:
                waiting.resolve(responses)
                self._changed()

        for leader, led_keys in by_leader.items():
            done = functools.partial(ended, leader)
            send = functools.partial(self._channels.send, leader, _as_made(make(led_keys)), done, done)
            self._queues.setdefault(leader, deque()).append(send)
            self._send_next(leader)
        if not left:
            waiting.resolve(responses)
        return waiting

    def close(self) -> None:
        """Close the connections."""
        self._queues.clear()
        self._channels.close()

    def _send_next(self, leader: int) -> None:
        queue = self._queues.get(leader)
        while queue and not self._channels.is_busy(leader):
            queue.popleft()()


def _as_made(request: RequestMessage[ResponseT]) -> Callable[[Versions], RequestMessage[ResponseT]]:
    return lambda _versions: request
