"""Who was asked what and when: one request in flight to each node, a pause after a failure (Kafka's RequestManager)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random


@dataclass(frozen=True, slots=True)
class Peer:
    """Another node as it is asked: its id, below -1 for a bootstrap server of which only the address is known."""

    id: int
    host: str
    port: int


@dataclass(slots=True)
class _Asked:
    request_id: int
    sent_ms: int
    backoff_until_ms: int | None = None


class Peers:
    """The nodes that were asked. Times are milliseconds."""

    def __init__(self, retry_backoff_ms: int, request_timeout_ms: int, chance: random.Random) -> None:
        self.request_timeout_ms = request_timeout_ms
        self._retry_backoff_ms = retry_backoff_ms
        self._chance = chance
        self._asked: dict[int, _Asked] = {}

    def sent(self, peer_id: int, request_id: int, now_ms: int) -> None:
        """A request goes out."""
        self._asked[peer_id] = _Asked(request_id, now_ms)

    def expects(self, peer_id: int, request_id: int) -> bool:
        """Whether the answer to that request is still waited for."""
        asked = self._asked.get(peer_id)
        return asked is not None and asked.request_id == request_id and asked.backoff_until_ms is None

    def answered(self, peer_id: int, request_id: int, succeeded: bool, now_ms: int) -> None:
        """The answer was taken; after a bad one the peer is left alone for a while."""
        if not self.expects(peer_id, request_id):
            return
        if succeeded:
            del self._asked[peer_id]
        else:
            self._asked[peer_id].backoff_until_ms = now_ms + self._retry_backoff_ms

    def reset(self, peer_id: int | None = None) -> None:
        """Wait for nothing any more, of one peer or of all: late answers are ignored."""
        if peer_id is None:
            self._asked.clear()
        else:
            self._asked.pop(peer_id, None)

    def has_timed_out(self, peer_id: int, now_ms: int) -> bool:
        """Whether a request to it was not answered in time."""
        asked = self._asked.get(peer_id)
        return asked is not None and asked.backoff_until_ms is None and now_ms >= self._deadline_ms(asked)

    def is_backing_off(self, peer_id: int, now_ms: int) -> bool:
        """Whether it failed just now."""
        asked = self._asked.get(peer_id)
        return asked is not None and asked.backoff_until_ms is not None and now_ms < asked.backoff_until_ms

    def is_ready(self, peer_id: int, now_ms: int) -> bool:
        """Whether it can be asked."""
        asked = self._asked.get(peer_id)
        return asked is None or now_ms >= self._until_ms(asked)

    def any_in_flight(self, now_ms: int) -> bool:
        """Whether any answer is waited for."""
        return any(
            asked.backoff_until_ms is None and now_ms < self._deadline_ms(asked) for asked in self._asked.values()
        )

    def ready_one(self, candidates: Sequence[Peer], now_ms: int) -> Peer | None:
        """One of them to ask, by chance; none while any answer is waited for."""
        ready = [peer for peer in candidates if self.is_ready(peer.id, now_ms)]
        if not ready or self.any_in_flight(now_ms):
            return None
        return ready[self._chance.randrange(len(ready))]

    def next_ms(self, now_ms: int) -> int | None:
        """When the first of those that were asked can be asked again; None when nobody is waited for."""
        waits = (self._until_ms(asked) for asked in self._asked.values())
        return min((until_ms for until_ms in waits if until_ms > now_ms), default=None)

    def _deadline_ms(self, asked: _Asked) -> int:
        return asked.sent_ms + self.request_timeout_ms

    def _until_ms(self, asked: _Asked) -> int:
        return self._deadline_ms(asked) if asked.backoff_until_ms is None else asked.backoff_until_ms
