"""Selection of requests in a test, and the errors for requests that are missing or late."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

from mockraft.kafka_api.journal import Exchange, VerificationError, merged, verify, when
from mockraft.server.double import Double
from mockraft.server.stubs.match import Match
from mockraft.server.stubs.stub import Stub, stub
from mockraft.wire.message import Message

if TYPE_CHECKING:
    from mockraft.kafka_api.journal.exchange import RequestT as Q
    from mockraft.kafka_api.journal.exchange import ResponseT as A
    from mockraft.wire.message import RequestClass

_SHOWN_MAX = 10
_POLL_S = 0.005

T = TypeVar("T")

PATIENCE_S = 10.0
"""Default time to wait for requests."""

Requests: TypeAlias = "RequestClass[Q, A] | Stub | Match | str | int | Callable[[Exchange], bool] | None"
"""Requests to select: those of a stub or match, an API by name or number, a function of an exchange; None is all.

A request class selects the requests of its API, and lets type checkers know the exchanges' requests and responses.
"""


class WaitTimeoutError(VerificationError, TimeoutError):
    """The awaited requests did not come in time; the text lists what came instead."""


def complain(about: Sequence[T], describe: Callable[[T], str]) -> None:
    """AssertionError that describes these things, the first of them at any rate, if there are any."""
    __tracebackhide__ = True
    if about:
        more = [f"… and {len(about) - _SHOWN_MAX} more"] if len(about) > _SHOWN_MAX else []
        raise AssertionError("\n\n".join([*map(describe, about[:_SHOWN_MAX]), *more]))


def match_of(match: Requests[Q, A], fields: Mapping[str, Any]) -> Callable[[Exchange], bool] | None:
    """Return the test for requests, None for all of them. StubError, a ValueError, names the field."""
    if isinstance(match, Stub):
        match = match.match
    if isinstance(match, Match):
        return match.and_where(**fields) if fields else match
    if isinstance(match, type) and issubclass(match, Message):
        match = match.__name__.removesuffix("Request")
    if match is None or isinstance(match, str | int):
        api = () if match is None else (match,)
        return stub(*api, **fields).match if api or fields else None
    if fields:
        raise ValueError(f"a function selects the requests, so {', '.join(fields)} cannot be given too")
    return cast(Callable[[Exchange], bool], match)


def verified(
    double: Double,
    wanted: Callable[[Exchange], bool] | None,
    since: int,
    n: int | None = None,
    at_least: int | None = None,
    at_most: int | None = None,
) -> list[Exchange]:
    """The requests since a mark, when there are as many as wanted; in the event loop's thread. VerificationError."""

    def near(exchanges: Sequence[Exchange]) -> list[str]:
        stubs = double.script.stubs
        return [miss.describe() for miss in stubs.near_misses(wanted, exchanges)] if isinstance(wanted, Match) else []

    entries = merged(double.journals.values(), since)
    try:
        return verify(entries, wanted, n, at_least=at_least, at_most=at_most, near=near)
    except VerificationError as error:
        error.double = double
        raise


async def wait_until(condition: Callable[[], object], timeout_s: float) -> None:
    """Wait for a condition of any kind; nothing reports it, so it is evaluated every few milliseconds."""
    try:
        async with asyncio.timeout(timeout_s):
            while not condition():
                await asyncio.sleep(_POLL_S)
    except TimeoutError:
        raise TimeoutError(f"waited {timeout_s:g} s: the condition does not hold") from None


async def wait_for(
    double: Double, match: Requests[Q, A], n: int, timeout_s: float, since: int, fields: Mapping[str, object]
) -> list[Exchange[Q, A]]:
    """The requests, once there are `n`; in the event loop's thread. WaitTimeoutError."""
    wanted = match_of(match, fields)
    met: asyncio.Future[list[Exchange]] = asyncio.get_running_loop().create_future()

    def then(found: list[Exchange], wrong: Exception | None) -> None:
        # A wait that was given up hears of one more request before it ends.
        if met.done():
            return
        if wrong is None:
            met.set_result(found)
        else:
            met.set_exception(wrong)

    stop = when(double.journals.values(), wanted, n, then, since)
    try:
        async with asyncio.timeout(timeout_s):
            return await met
    except TimeoutError:
        try:
            return verified(double, wanted, since, at_least=n)
        except VerificationError as error:
            late = WaitTimeoutError(f"waited {timeout_s:g} s: {error.findings}", error.journal)
            late.double = double
            raise late from None
    finally:
        stop()
