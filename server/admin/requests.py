"""Operations on the journal's requests: list, one request, a stream, files."""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import io
import operator
import secrets
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Request, Response
from fastapi.responses import StreamingResponse
from mockraft.kafka_api.journal import Exchange, Journal, matching, merged, write_pcapng
from mockraft.server.admin.access import OneNode, Stopping, TheDouble
from mockraft.server.admin.json_bodies import (
    Int32,
    Int64,
    StrictRoute,
    compact,
    in_chunks,
    json_list,
    json_text,
    tagged,
)
from mockraft.server.admin.problems import ProblemError
from mockraft.server.admin.request_models import ClosedConnections, ReceivedRequest, Requests
from mockraft.server.double import Double

if TYPE_CHECKING:
    from mockraft.wire.json_form import Tree

router = APIRouter(route_class=StrictRoute, tags=["requests"])

LIMIT_MAX = 20_000
PCAPNG = "application/vnd.tcpdump.pcap"
STREAM_INTERVAL_S = 0.1
STREAM_EVENT_REQUESTS_MAX = 1_000
STREAM_PING_S = 15.0
MATCH_BATCH = 1_000
"""Number of requests that are compared with a match before the controller runs again: about 4 ms."""

SEARCH_BATCH = 25
"""Number of requests that are decoded before the controller runs again."""

RUN = secrets.token_hex(4)
"""Prefix of ETags made of ids, because another process starts its ids anew."""

Test = Callable[[Exchange], bool]

_by_id = operator.attrgetter("id")


MaxAge = Annotated[
    int | None,
    Query(
        alias="maxAgeMs",
        description="Only those of the last so many milliseconds, by the controller's clock.",
        ge=0,
        le=(1 << 63) - 1,
    ),
]


async def _wanted(
    double: TheDouble,
    api: Annotated[
        list[str] | None, Query(description="Names of APIs; an empty one is ignored.", examples=[["BrokerHeartbeat"]])
    ] = None,
    client_id: Annotated[str | None, Query(alias="clientId", description="The client id.")] = None,
    broker_id: Annotated[Int32 | None, Query(alias="brokerId", description="Who asked.")] = None,
    connection: Annotated[Int32 | None, Query(description="Number of the connection.")] = None,
    max_age_ms: MaxAge = None,
) -> Test | None:
    """Return the match of the query; None for everything."""
    tests: list[Test] = []
    if names := {name.lower() for name in api or () if name}:
        tests.append(lambda exchange: exchange.api.lower() in names)
    if client_id is not None:
        tests.append(lambda exchange: exchange.client_id == client_id)
    if broker_id is not None:
        tests.append(lambda exchange: exchange.broker_id == broker_id)
    if connection is not None:
        tests.append(lambda exchange: exchange.connection_id == connection)
    if max_age_ms is not None:
        oldest_ms = double.now_ms - max_age_ms
        tests.append(lambda exchange: exchange.received_ms >= oldest_ms)
    return (lambda exchange: all(test(exchange) for test in tests)) if tests else None


async def _after(
    after_id: Annotated[
        Int64 | None, Query(alias="afterId", description="Only requests with a greater id.", ge=0)
    ] = None,
    since: Annotated[Int64 | None, Query(description="The former name of `afterId`.", ge=0, deprecated=True)] = None,
) -> int | None:
    return since if after_id is None else after_id


@dataclass(frozen=True)
class Selection:
    """The exchanges that a query selects: of one node or of all (None), after an id, and that pass a test."""

    double: Double
    node: int | None
    test: Test | None
    after_id: int | None

    def held(self) -> list[Exchange]:
        """Return those that are held now, oldest first."""
        return held(self.double, self.test, self.after_id or 0, self.node)


async def _selection(
    double: TheDouble,
    node: OneNode,
    test: Annotated[Test | None, Depends(_wanted)],
    after_id: Annotated[int | None, Depends(_after)],
) -> Selection:
    return Selection(double, node, test, after_id)


Selected = Annotated[Selection, Depends(_selection)]
Limit = Annotated[
    int, Query(description="Maximum number: the newest, or with `afterId` the oldest after it.", ge=1, le=LIMIT_MAX)
]
Search = Annotated[str, Query(description="Only requests whose JSON, bodies included, contains this text.")]
RequestId = Annotated[int, Path(alias="requestId", description="Id of the request.", ge=1)]


def held(double: Double, test: Test | None = None, after_id: int = 0, node: int | None = None) -> list[Exchange]:
    """Return the exchanges that are held, of one node or of all, oldest first."""
    found = [journal.find(test, after_id) for journal in _journals(double, node)]
    return found[0] if len(found) == 1 else list(heapq.merge(*found, key=_by_id))


async def held_matching(double: Double, match: Test, after_id: int) -> list[Exchange]:
    """Return the exchanges that are held now and match, oldest first; in between the controller runs."""
    found: list[Exchange] = []
    entries = held(double, after_id=after_id)
    for begin in range(0, len(entries), MATCH_BATCH):
        found += matching(entries[begin : begin + MATCH_BATCH], match)
        await asyncio.sleep(0)
    return found


def _journals(double: Double, node: int | None) -> list[Journal]:
    return [journal for node_id, journal in double.journals.items() if node in (None, node_id)]


def dropped(double: Double) -> int:
    """Return the number of entries that all nodes have dropped."""
    return sum(journal.dropped for journal in double.journals.values())


async def _searched(exchanges: Iterable[Exchange], text: str) -> list[Exchange]:
    found: list[Exchange] = []
    text = text.lower()
    for count, exchange in enumerate(exchanges):
        if count % SEARCH_BATCH == 0:
            await asyncio.sleep(0)
        if text in compact(exchange.to_json()).lower():
            found.append(exchange)
    return found


@router.get("/v1/requests", response_model=Requests)
async def list_requests(
    request: Request,
    selection: Selected,
    limit: Limit = 100,
    q: Search = "",
    summary: Annotated[bool, Query(description="Omit the decoded bodies, which cost time.")] = True,
) -> Response:
    """List answered requests, oldest first. To poll cheaply, send `afterId` or the ETag."""
    exchanges = selection.held()
    if q:
        exchanges = await _searched(exchanges, q)
    exchanges = exchanges[-limit:] if selection.after_id is None else exchanges[:limit]
    last = exchanges[-1].id if exchanges else selection.after_id or 0
    first = exchanges[0].id if exchanges else 0
    lost = dropped(selection.double)
    tag = f"{RUN}-{first}-{last}-{len(exchanges)}-{lost}"
    if not exchanges or (answer := tagged(request, tag, b"")).status_code == 304:
        return tagged(request, tag, compact({"requests": [], "next": last, "dropped": lost}).encode())
    trees = map(Exchange.summary if summary else Exchange.to_json, exchanges)
    foot = f'],"next":{last},"dropped":{lost}}}'
    body = in_chunks(json_list('{"requests":[', trees, foot), 200 if summary else SEARCH_BATCH)
    return StreamingResponse(body, media_type="application/json", headers={"etag": answer.headers["etag"]})


@router.delete("/v1/requests", status_code=204)
async def forget_requests(double: TheDouble) -> None:
    """Clear the requests and their counts."""
    for journal in double.journals.values():
        journal.clear()


@router.get(
    "/v1/requests/stream",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}},
)
async def stream_requests(selection: Selected, stopping: Stopping, max_age_ms: MaxAge = None) -> StreamingResponse:
    """Stream new requests as server-sent events: at most ten `requests` events a second.

    The data is `{"requests": [summaries], "dropped": n}`, the id the `afterId` to continue from. Starts after
    `afterId`, or with the first request that is not older than `maxAgeMs`; by default with the next request.
    """
    if selection.after_id is None and max_age_ms is None:
        selection = replace(selection, after_id=selection.double.mark())
    return StreamingResponse(_events(selection, stopping), media_type="text/event-stream")


async def _events(selection: Selection, stopping: asyncio.Event) -> AsyncIterator[str]:
    double = selection.double
    loop = asyncio.get_running_loop()
    quiet_since = loop.time()
    yield ": mockraft\n\n"
    while not stopping.is_set():
        exchanges = selection.held()
        last = seen = double.mark()
        while batch := exchanges[:STREAM_EVENT_REQUESTS_MAX]:
            del exchanges[:STREAM_EVENT_REQUESTS_MAX]
            last = batch[-1].id
            data = compact({"requests": [each.summary() for each in batch], "dropped": dropped(double)})
            yield f"id: {last}\nevent: requests\ndata: {data}\n\n"
            quiet_since = loop.time()
            await asyncio.sleep(0)
        # What is not wanted is looked at once.
        selection = replace(selection, after_id=max(last, seen))
        if loop.time() - quiet_since > STREAM_PING_S:
            quiet_since = loop.time()
            yield ": still here\n\n"
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stopping.wait(), STREAM_INTERVAL_S)


@router.get("/v1/requests/closed", response_model=ClosedConnections)
async def list_closed_connections(
    double: TheDouble,
    node: OneNode,
    connection: Annotated[Int32 | None, Query(description="Number of the connection.")] = None,
    limit: Annotated[int, Query(description="Maximum number: the newest.", ge=1, le=LIMIT_MAX)] = 100,
    q: Annotated[str, Query(description="Only connections whose JSON contains this text.")] = "",
    max_age_ms: MaxAge = None,
) -> Response:
    """List closed connections with the reason, failed logins among them, oldest first."""
    oldest_ms = 0 if max_age_ms is None else double.now_ms - max_age_ms
    held = (each for journal in _journals(double, node) for each in journal.closed() if each.closed_ms >= oldest_ms)
    found: list[Tree] = []
    for count, closed in enumerate(sorted(held, key=_by_id, reverse=True)):
        if len(found) == limit:
            break
        if count % SEARCH_BATCH == 0:
            await asyncio.sleep(0)
        if connection in (None, closed.connection_id):
            tree = closed.to_json()
            if not q or q.lower() in compact(tree).lower():
                found.append(tree)
    found.reverse()
    return json_text({"closed": found, "dropped": dropped(double)})


@router.get("/v1/requests/{requestId}", response_model=ReceivedRequest)
async def get_request(request_id: RequestId, double: TheDouble) -> Response:
    """Return one request with its bodies."""
    for exchange in held(double, after_id=request_id - 1)[:1]:
        if exchange.id == request_id:
            return json_text(exchange.to_json())
    raise ProblemError(
        404, f"request {request_id} is not in the journal: it never was, or it was dropped", parameter="requestId"
    )


@router.get("/v1/entries/{entryId}")
async def get_entry(
    entry_id: Annotated[int, Path(alias="entryId", description="Id of the entry.", ge=1)], double: TheDouble
) -> dict[str, Any]:
    """Return one entry of the journal: a request with its bodies, a closed connection or a failure of periodic work."""
    for journal in double.journals.values():
        entry = journal.entry(entry_id)
        if entry is not None:
            return entry.to_json()
    raise ProblemError(
        404, f"entry {entry_id} is not in the journal: it never was, or it was dropped", parameter="entryId"
    )


@router.get(
    "/v1/requests.jsonl",
    response_class=StreamingResponse,
    responses={200: {"content": {"application/jsonl": {"schema": {"type": "string"}}}}},
)
async def export_requests_as_json_lines(double: TheDouble, node: OneNode) -> StreamingResponse:
    """Return everything in the journal, closed connections included, as one JSON text per line."""
    lines = (line + "\n" for journal in _journals(double, node) for line in journal.json_lines())
    return StreamingResponse(in_chunks(lines, SEARCH_BATCH), media_type="application/jsonl")


@router.get(
    "/v1/requests.pcapng",
    response_class=Response,
    responses={200: {"content": {PCAPNG: {"schema": {"type": "string", "format": "binary"}}}}},
)
async def export_requests_as_capture(double: TheDouble, node: OneNode) -> Response:
    """Return the requests and answers in the journal as a capture, for Wireshark."""
    journals = {node_id: journal for node_id, journal in double.journals.items() if node in (None, node_id)}
    entries = list(merged(journals.values()))
    servers = {node_id: journal.address for node_id, journal in journals.items()}
    file = io.BytesIO()
    await asyncio.to_thread(write_pcapng, file, entries, servers)
    return Response(file.getvalue(), media_type=PCAPNG)
