"""Operations to count, find and verify requests; unexpected requests and near misses."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response
from mockraft.kafka_api.journal import Entry, Exchange, VerificationError, matching, merged, verify, when
from mockraft.server.admin import stub_schema
from mockraft.server.admin.access import Stopping, TheDouble
from mockraft.server.admin.json_bodies import Model, StrictRoute, json_response, next_turn
from mockraft.server.admin.problems import ProblemError, field_named
from mockraft.server.admin.requests import Mark, ReceivedRequest, held, held_matching
from mockraft.server.double import Double
from mockraft.server.stubs.match import Match
from pydantic import Field

router = APIRouter(route_class=StrictRoute, tags=["requests"])

WITHIN_MS_MAX = 600_000


class Wanted(Mark):
    """A match and a mark."""

    match: stub_schema.Match | None = Field(default=None, description="Conditions on the requests; default: any.")

    def read(self) -> Match:
        """Return the match. Raise ProblemError."""
        with field_named("match"):
            return Match.from_json(self.match.root if self.match else {})


class Find(Wanted):
    """A search with its limits."""

    limit: int = Field(default=100, ge=1, le=1_000, description="Maximum number: the newest.")
    summary: bool = Field(default=True, description="Omit the decoded bodies.")


class Found(Model):
    """Requests, oldest first."""

    requests: list[ReceivedRequest]


class Verify(Wanted):
    """The expected number of requests; at least one by default."""

    count: int | None = Field(default=None, ge=0)
    at_least: int | None = Field(default=None, ge=0)
    at_most: int | None = Field(default=None, ge=0)
    within_ms: int = Field(
        default=0, ge=0, le=WITHIN_MS_MAX, description="Maximum time to wait, in real time, until there are enough."
    )


class Count(Model):
    """The number of matching requests."""

    count: int


class Verification(Model):
    """The result; if it failed, `report` has the near misses and the journal as text."""

    verified: bool
    count: int
    report: str | None


class Complaint(Model):
    """A reason to fail a test."""

    id: str = Field(description="Id of the stub, the fault or the entry of the journal.", examples=["stub-1"])
    text: str = Field(description="The reason, with what came nearest.", examples=["stub stub-1 was never used: Vote"])


class Complaints(Model):
    """All reasons to fail a test; none if what it set up was met and nothing broke."""

    complaints: list[Complaint]


class Condition(Model):
    """One condition of a match: the expected and the actual value."""

    field: str
    expected: object
    actual: object
    held: bool


class NearMiss(Model):
    """A request and a stub that nearly matched it; distance 0 is a match, 1 nothing in common."""

    stub: str | None
    request: int | None
    distance: float
    conditions: list[Condition]


class NearMisses(Model):
    """Near misses, of each request the best first."""

    near_misses: list[NearMiss]


@router.post("/v1/requests/count")
async def count_requests(body: Wanted, double: TheDouble) -> Count:
    """Count the matching requests."""
    return Count(count=len(await held_matching(double, body.read(), body.mark)))


@router.post("/v1/requests/find", response_model=Found)
async def find_requests(body: Find, double: TheDouble) -> Response:
    """Find the matching requests."""
    found = await held_matching(double, body.read(), body.mark)
    return await _found(None, found[-body.limit :], summary=body.summary)


@router.post("/v1/requests/verify")
async def verify_requests(body: Verify, double: TheDouble, stopping: Stopping) -> Verification:
    """Verify the number of matching requests, optionally within some time. 200 in both cases: read `verified`."""
    if body.count is not None and (body.at_least, body.at_most) != (None, None):
        raise ProblemError(422, "count is an exact number: give either count, or atLeast and atMost", pointer="#/count")
    match = body.read()
    enough = next((n for n in (body.at_least, body.count) if n is not None), 1)
    if body.within_ms and enough:
        await _wait(double, match, enough, body.mark, body.within_ms, stopping)

    def near(others: Sequence[Exchange]) -> list[str]:
        return [miss.describe() for miss in double.script.stubs.near_misses(match, others)]

    entries = merged(double.journals.values(), body.mark)
    verifying = partial(verify, entries, match, body.count, at_least=body.at_least, at_most=body.at_most, near=near)
    with field_named():
        # Entries do not change, so a thread can read them while the controller answers.
        return await asyncio.to_thread(_verified, verifying, entries, match)


@router.get("/v1/complaints")
async def list_complaints(double: TheDouble) -> Complaints:
    """List why a test should fail although none of its assertions does, in words for its report.

    Stubs that were never used, faults that never met anything, failures of mockraft, and with strict stubs the requests
    that they did not expect. Ask before `POST /v1/reset`.
    """
    return Complaints(complaints=[Complaint(**each._asdict()) for each in double.complaints()])


@router.get("/v1/requests/unmatched", response_model=Found)
async def list_unmatched_requests(
    request: Request, double: TheDouble, limit: Annotated[int, Query(ge=1, le=1_000)] = 100
) -> Response:
    """List the newest requests that strict stubs did not expect (`PATCH /v1/settings {"strict": true}`)."""
    return await _found(request, _unmatched(double, limit), summary=True)


@router.get("/v1/requests/unmatched/near-misses", response_model=NearMisses)
async def list_near_misses_of_unmatched(
    request: Request, double: TheDouble, limit: Annotated[int, Query(ge=1, le=100)] = 10
) -> Response:
    """Return the nearest stubs of the newest unexpected requests, condition by condition."""
    misses = [miss for each in _unmatched(double, limit) for miss in double.script.stubs.near_misses(each)]
    return json_response(request, {"nearMisses": [miss.to_json() for miss in misses]})


@router.get("/v1/requests/{requestId}/near-misses", response_model=NearMisses)
async def list_near_misses(
    request: Request, request_id: Annotated[int, Path(alias="requestId", ge=1)], double: TheDouble
) -> Response:
    """Return the nearest stubs of one request."""
    for exchange in held(double, after_id=request_id - 1)[:1]:
        if exchange.id == request_id:
            misses = double.script.stubs.near_misses(exchange)
            return json_response(request, {"nearMisses": [miss.to_json() for miss in misses]})
    raise ProblemError(404, f"request {request_id} is not held", parameter="requestId")


def _verified(verifying: Callable[[], list[Exchange]], entries: list[Entry], match: Match) -> Verification:
    try:
        return Verification(verified=True, count=len(verifying()), report=None)
    except VerificationError as error:
        count = len(list(matching(entries, match)))
        return Verification(verified=False, count=count, report=str(error))


async def _wait(double: Double, match: Match, n: int, after_id: int, within_ms: int, stopping: asyncio.Event) -> None:
    """Wait until enough requests match, the time is over or the server stops."""
    mark = double.mark()
    n -= len(await held_matching(double, match, after_id))
    if n <= 0:
        return
    enough: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def then(found: list[Exchange], error: BaseException | None) -> None:
        if not enough.done():
            enough.set_result(None)

    stop = when(double.journals.values(), match, n, then, max(after_id, mark))
    stopped = asyncio.ensure_future(stopping.wait())
    try:
        await asyncio.wait((enough, stopped), timeout=within_ms / 1000, return_when=asyncio.FIRST_COMPLETED)
    finally:
        stop()
        stopped.cancel()


def _unmatched(double: Double, limit: int) -> list[Exchange]:
    return held(double, lambda exchange: exchange.unmatched)[-limit:]


async def _found(request: Request | None, exchanges: list[Exchange], *, summary: bool) -> Response:
    trees = []
    for count, exchange in enumerate(exchanges):
        if count % 50 == 0:
            await next_turn()
        trees.append(exchange.summary() if summary else exchange.to_json())
    return json_response(request, {"requests": trees})
