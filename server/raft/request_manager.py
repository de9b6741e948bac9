"""Requests in flight by node: one to each node, a pause after a failure (Kafka's RequestManager)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random


@dataclass(frozen=True, slots=True)
class Target:
    """Another node as a target of requests: its id, below -1 for a bootstrap server with an unknown id."""

    id: int
    host: str
    port: int


@dataclass(slots=True)
class _Pending:
    request_id: int
    sent_ms: int
    backoff_until_ms: int | None = None


class RequestManager:
    """Nodes with sent requests. Times are milliseconds."""

    def __init__(self, retry_backoff_ms: int, request_timeout_ms: int, rng: random.Random) -> None:
        self.request_timeout_ms = request_timeout_ms
        self._retry_backoff_ms = retry_backoff_ms
        self._rng = rng
        self._pending: dict[int, _Pending] = {}

    def sent(self, target_id: int, request_id: int, now_ms: int) -> None:
        """Record a sent request."""
        self._pending[target_id] = _Pending(request_id, now_ms)

    def expects(self, target_id: int, request_id: int) -> bool:
        """Return True if the response to that request is still awaited."""
        pending = self._pending.get(target_id)
        return pending is not None and pending.request_id == request_id and pending.backoff_until_ms is None

    def answered(self, target_id: int, request_id: int, succeeded: bool, now_ms: int) -> None:
        """Complete a request; after a failure the node is not sent requests for a while."""
        if not self.expects(target_id, request_id):
            return
        if succeeded:
            del self._pending[target_id]
        else:
            self._pending[target_id].backoff_until_ms = now_ms + self._retry_backoff_ms

    def reset(self, target_id: int | None = None) -> None:
        """Drop requests in flight, of one node or of all: late responses are ignored."""
        if target_id is None:
            self._pending.clear()
        else:
            self._pending.pop(target_id, None)

    def has_timed_out(self, target_id: int, now_ms: int) -> bool:
        """Return True if a request to the node timed out."""
        pending = self._pending.get(target_id)
        return pending is not None and pending.backoff_until_ms is None and now_ms >= self._deadline_ms(pending)

    def is_backing_off(self, target_id: int, now_ms: int) -> bool:
        """Return True if the node failed recently."""
        pending = self._pending.get(target_id)
        return pending is not None and pending.backoff_until_ms is not None and now_ms < pending.backoff_until_ms

    def is_ready(self, target_id: int, now_ms: int) -> bool:
        """Return True if the node can be sent a request."""
        pending = self._pending.get(target_id)
        return pending is None or now_ms >= self._until_ms(pending)

    def any_in_flight(self, now_ms: int) -> bool:
        """Return True if any response is awaited."""
        return any(
            pending.backoff_until_ms is None and now_ms < self._deadline_ms(pending)
            for pending in self._pending.values()
        )

    def ready_one(self, candidates: Sequence[Target], now_ms: int) -> Target | None:
        """Return a random node to ask; None while any response is awaited."""
        ready = [target for target in candidates if self.is_ready(target.id, now_ms)]
        if not ready or self.any_in_flight(now_ms):
            return None
        return ready[self._rng.randrange(len(ready))]

    def next_ms(self, now_ms: int) -> int | None:
        """Return the earliest time at which a node can be sent a request again; None if no request is awaited."""
        waits = (self._until_ms(pending) for pending in self._pending.values())
        return min((until_ms for until_ms in waits if until_ms > now_ms), default=None)

    def _deadline_ms(self, pending: _Pending) -> int:
        return pending.sent_ms + self.request_timeout_ms

    def _until_ms(self, pending: _Pending) -> int:
        return self._deadline_ms(pending) if pending.backoff_until_ms is None else pending.backoff_until_ms
