"""Selection of requests in a test, and the errors for requests that are missing or late."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

from mockraft.kafka_api.journal import Exchange, Journal, VerificationError, when
from mockraft.server.stubs.match import Match
from mockraft.server.stubs.stub import Stub, stub
from mockraft.wire.message import Message

if TYPE_CHECKING:
    from mockraft.kafka_api.journal.exchange import RequestT as Q
    from mockraft.kafka_api.journal.exchange import ResponseT as A
    from mockraft.server.request_types import Conditions
    from mockraft.wire.api_keys import ApiName
    from mockraft.wire.message import RequestClass

_POLL_S = 0.005

T = TypeVar("T")

PATIENCE_S = 10.0
"""Default time to wait for requests."""

Requests: TypeAlias = "RequestClass[Q, A] | Stub | Match | ApiName | int | Callable[[Exchange], bool] | None"
"""Requests to select: those of a stub or match, an API by name or number, a function of an exchange; None is all.

A request class selects the requests of its API, and lets type checkers know the exchanges' requests and responses.
"""


Wanted: TypeAlias = Callable[[Exchange], bool] | None
"""The test for requests that a selection becomes; None is all."""


class WaitTimeoutError(VerificationError, TimeoutError):
    """The awaited requests did not come in time; the text lists what came instead."""


def match_of(match: Requests[Q, A], fields: Mapping[str, Any]) -> Wanted:
    """Return the test for requests, None for all of them. StubError, a ValueError, names the field."""
    if isinstance(match, Stub):
        match = match.match
    if isinstance(match, Match):
        return match.and_where(**fields) if fields else match
    if isinstance(match, type) and issubclass(match, Message):
        match = cast("ApiName", match.__name__.removesuffix("Request"))
    if match is None or isinstance(match, str | int):
        api = () if match is None else (match,)
        return stub(*api, **cast("Conditions", fields)).match if api or fields else None
    if fields:
        raise ValueError(f"a function selects the requests, so {', '.join(fields)} cannot be given too")
    return cast(Callable[[Exchange], bool], match)


def check_timeout(timeout_s: float) -> None:
    """Raise ValueError for a negative time."""
    if timeout_s < 0:
        raise ValueError(f"timeout_s={timeout_s:g}: it must be at least 0")


async def wait_until(condition: Callable[[], object], timeout_s: float) -> None:
    """Wait for a condition of any kind; nothing reports it, so it is evaluated every few milliseconds."""
    check_timeout(timeout_s)
    try:
        async with asyncio.timeout(timeout_s):
            while not condition():
                await asyncio.sleep(_POLL_S)
    except TimeoutError:
        raise TimeoutError(f"waited {timeout_s:g} s: the condition does not hold") from None


async def requests_of(
    journals: Callable[[], Iterable[Journal]], wanted: Wanted, n: int, since: int, timeout_s: float
) -> list[Exchange]:
    """Wait until there are `n` requests since the mark, and return them; TimeoutError."""
    check_timeout(timeout_s)
    met: asyncio.Future[list[Exchange]] = asyncio.get_running_loop().create_future()

    def then(found: list[Exchange], wrong: BaseException | None) -> None:
        # A wait that was given up hears of one more request before it ends.
        if met.done():
            return
        if wrong is None:
            met.set_result(found)
        else:
            met.set_exception(wrong)

    stop = when(journals(), wanted, n, then, since)
    try:
        async with asyncio.timeout(timeout_s):
            return await met
    finally:
        stop()
