"""The result of a handler that must wait: a deadline and a function that tries again (Kafka's DelayedOperation)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Generic, NamedTuple, TypeVar

NEVER_MS: Final = 1 << 62
"""Later than any time."""

AnswerT_co = TypeVar("AnswerT_co", covariant=True)
T = TypeVar("T")


class Parked(NamedTuple, Generic[AnswerT_co]):
    """Result of a handler that cannot answer yet.

    `retry(now_ms, expired)` is called when the state that it may wait for has changed and, with expired true, at
    `deadline_ms` (NEVER_MS: no deadline); it returns the response, or None to stay parked. At the deadline it must
    return a response.
    """

    deadline_ms: int
    retry: Callable[[int, bool], AnswerT_co | None]

    def then(self, follow: Callable[[AnswerT_co, int], T]) -> Parked[T]:
        """Return the same wait with another result: `follow(response, now_ms)`."""

        def retry(now_ms: int, expired: bool) -> T | None:
            response = self.retry(now_ms, expired)
            return None if response is None else follow(response, now_ms)

        return Parked(self.deadline_ms, retry)
