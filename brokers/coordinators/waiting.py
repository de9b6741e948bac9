"""A result that a client's request waits for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from mockraft.kafka_api.api import NEVER_MS, Parked
from mockraft.wire import error_codes
from mockraft.wire.errors import ApiError

ResponseT = TypeVar("ResponseT")
T = TypeVar("T")


class Waiting(Generic[T]):
    """A request until its result is known."""

    def __init__(self) -> None:
        self._result: T | None = None
        self._error_code = error_codes.NONE
        self._on_end: Callable[[int], None] = lambda _code: None

    def on_end(self, ended: Callable[[int], None]) -> None:
        """Call `ended` with the error when the result is known, also if it is already."""
        self._on_end = ended
        if self._result is not None or self._error_code != error_codes.NONE:
            ended(self._error_code)

    def result(self) -> T | None:
        """Return the result; None while there is none. Raises ApiError."""
        if self._error_code != error_codes.NONE:
            raise ApiError(self._error_code)
        return self._result

    def resolve(self, result: T) -> None:
        """Answer the request, unless it was refused."""
        self._result = result
        self._on_end(self._error_code)

    def refuse(self, error_code: int) -> None:
        """Refuse the request."""
        self._error_code = error_code
        self._on_end(error_code)

    def settle(self, result: T, error_code: int) -> None:
        """Answer the request, or refuse it with an error."""
        if error_code == error_codes.NONE:
            self.resolve(result)
        else:
            self.refuse(error_code)

    def answer(
        self, respond: Callable[[T], ResponseT], refused: Callable[[ApiError], ResponseT] | None = None
    ) -> ResponseT | Parked[ResponseT]:
        """Return the response, at once or when the result is known; without `refused` ApiError is raised then."""

        def retry(_now_ms: int, _expired: bool) -> ResponseT | None:
            try:
                result = self.result()
            except ApiError as refusal:
                if refused is None:
                    raise
                return refused(refusal)
            return None if result is None else respond(result)

        response = retry(0, False)
        return Parked(NEVER_MS, retry) if response is None else response
