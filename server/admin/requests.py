"""Operations on the journal's requests: list, one request, a stream, files."""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import operator
import secrets
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, cast

from fastapi import APIRouter, Depends, Path, Query, Request, Response
from fastapi.responses import StreamingResponse
from mockraft.kafka_api.journal import Exchange, Journal, Matching, matching, merged, pcapng_pieces
from mockraft.server.admin.access import OneNode, Stopping, Streams, TheDouble
from mockraft.server.admin.json_bodies import (
    Int32,
    Int64,
    Model,
    StrictRoute,
    compact,
    in_chunks,
    json_list,
    json_text,
    next_turn,
    tagged,
)
from mockraft.server.admin.problems import ProblemError
from mockraft.server.double import Double
from mockraft.server.stubs.errors import StubError
from mockraft.server.stubs.match import Match
from pydantic import Field

if TYPE_CHECKING:
    from mockraft.wire.api_keys import ApiName
    from mockraft.wire.json_form import Tree


class Mark(Model):
    """A position in the journal: later requests are selected."""

    after_id: Int64 = Field(default=0, ge=0, description="Only requests with a greater id.")
    since: Int64 = Field(
        default=0, ge=0, description="The former name of `afterId`.", json_schema_extra={"deprecated": True}
    )

    @property
    def mark(self) -> int:
        """The id after which requests are selected."""
        return self.after_id or self.since


class ReceivedRequest(Model):
    """A request and its outcome; a summary has no bodies. Times are milliseconds of the controller's clock."""

    id: int = Field(description="Ids increase over all nodes, and are never reused.", examples=[17])
    node: int = Field(description="The controller, or the simulated broker, that received it.", examples=[3000])
    at_broker: bool = Field(description="True if `node` is a simulated broker.")
    connection: int = Field(description="Number of the connection, counted from 1 by the node.")
    received_ms: int
    answered_ms: int
    took_us: int = Field(description="Microseconds from the request to its answer.", examples=[140])
    api: str = Field(examples=["BrokerHeartbeat"])
    api_version: int
    correlation_id: int
    client_id: str | None = Field(examples=["1"])
    peer: str | None = Field(description="Address of the client.", examples=["127.0.0.1:40000"])
    principal: str = Field(examples=["User:ANONYMOUS"])
    broker_id: int | None = Field(description="Id of the sending broker, if known.", examples=[1])
    forwarded: bool = Field(description="True if that broker forwarded it for the client (KIP-590).")
    served_by: str = Field(description="`controller`, or `stub ID`.", examples=["controller"])
    matched: str | None = Field(description="Id of the stub that matched.")
    unmatched: bool = Field(description="True if strict stubs did not expect it.")
    reason: str | None = Field(description="Why there is no answer, or how it was altered.")
    error: str | None = Field(description="Name of the first error in the answer.", examples=["STALE_BROKER_EPOCH"])
    failure: str | None = Field(description="Traceback of a failure in mockraft itself.")
    bytes: int = Field(description="Bytes of request and answer.")
    request: dict[str, object] = Field(default={}, description="The request in the JSON of Kafka's own tools.")
    response: dict[str, object] | None = Field(default=None, description="The answer; null if it cannot be read.")
    response_hex: str | None = Field(default=None, description="An unreadable answer, damaged on purpose.")


class Requests(Model):
    """Requests, oldest first; with `summary=false` each has its bodies."""

    requests: list[ReceivedRequest]
    next: int = Field(description="The `afterId` for the requests after these.")
    dropped: int = Field(description="Number of dropped entries since the start, because the journal is bounded.")


class ClosedConnection(Model):
    """A closed connection. Times are milliseconds of the controller's clock."""

    id: int = Field(description="Id of the entry; requests and closed connections are counted together.", examples=[17])
    node: int = Field(description="The controller, or the simulated broker, that had the connection.", examples=[3000])
    at_broker: bool = Field(description="True if `node` is a simulated broker.")
    connection: int = Field(description="Number of the connection, counted from 1 by the node.")
    peer: str = Field(description="Address of the client.", examples=["127.0.0.1:40000"])
    opened_ms: int
    closed_ms: int
    refused: bool = Field(description="True if the controller closed it.")
    reason: str
    refused_frame: str = Field(description="The refused bytes in hexadecimal; empty if there are none.")


class ClosedConnections(Model):
    """Closed connections, oldest first."""

    closed: list[ClosedConnection]
    dropped: int = Field(description="Number of dropped entries since the start, because the journal is bounded.")


router = APIRouter(route_class=StrictRoute, tags=["requests"])

LIMIT_MAX = 20_000
PCAPNG = "application/vnd.tcpdump.pcap"
STREAM_INTERVAL_S = 0.1
STREAM_EVENT_REQUESTS_MAX = 1_000
STREAM_PING_S = 15.0
MATCH_BATCH = 1_000
"""Number of requests that are compared with a match before the controller runs again: about 4 ms."""

STREAMS_MAX = 64
SEARCH_BATCH = 25
"""Number of requests that are decoded before the controller runs again."""

RUN = secrets.token_hex(4)
"""Prefix of ETags made of ids, because another process starts its ids anew."""

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


async def _match(
    api: Annotated[
        list[str] | None, Query(description="Names of APIs; an empty one is ignored.", examples=[["BrokerHeartbeat"]])
    ] = None,
    client_id: Annotated[str | None, Query(alias="clientId", description="The client id.")] = None,
    broker_id: Annotated[Int32 | None, Query(alias="brokerId", description="Who asked.")] = None,
    connection: Annotated[Int32 | None, Query(description="Number of the connection.")] = None,
) -> Match | None:
    """Return the match of the query; None for everything. ProblemError for an unknown API."""
    names = cast("list[ApiName]", [name for name in api or () if name])
    if not names and (client_id, broker_id, connection) == (None, None, None):
        return None
    anywhere = {"gte": -1}  # at simulated brokers too, as without a condition
    try:
        return Match(names or None, client_id=client_id, broker_id=broker_id, connection=connection, broker=anywhere)
    except StubError as unknown:
        raise ProblemError(422, str(unknown), parameter="api") from None


async def _after(
    after_id: Annotated[
        Int64 | None, Query(alias="afterId", description="Only requests with a greater id.", ge=0)
    ] = None,
    since: Annotated[Int64 | None, Query(description="The former name of `afterId`.", ge=0, deprecated=True)] = None,
) -> int | None:
    return since if after_id is None else after_id


@dataclass(frozen=True)
class Selection:
    """The exchanges that a query selects: of one node or of all (None), that match, after an id and since a time."""

    double: Double
    node: int | None
    match: Matching | None
    after_id: int | None
    since_ms: int = 0

    def held(self) -> list[Exchange]:
        """Return those that are held now, oldest first."""
        found = held(self.double, self.match, self.after_id or 0, self.node)
        return [each for each in found if each.received_ms >= self.since_ms]

    def forget(self) -> None:
        """Remove them from the journals; without any condition clear these, and their counts."""
        journals = _journals(self.double, self.node)
        if (self.match, self.after_id, self.since_ms) == (None, None, 0):
            for journal in journals:
                journal.clear()
        else:
            ids = {each.id for each in self.held()}
            for journal in journals:
                journal.forget(ids)


async def _selection(
    double: TheDouble,
    node: OneNode,
    match: Annotated[Match | None, Depends(_match)],
    after_id: Annotated[int | None, Depends(_after)],
    max_age_ms: MaxAge = None,
) -> Selection:
    since_ms = 0 if max_age_ms is None else double.now_ms - max_age_ms
    return Selection(double, node, match, after_id, since_ms)


Selected = Annotated[Selection, Depends(_selection)]
Limit = Annotated[
    int, Query(description="Maximum number: the newest, or with `afterId` the oldest after it.", ge=1, le=LIMIT_MAX)
]
Search = Annotated[str, Query(description="Only requests whose JSON, bodies included, contains this text.")]
RequestId = Annotated[int, Path(alias="requestId", description="Id of the request.", ge=1)]


def held(double: Double, match: Matching | None = None, after_id: int = 0, node: int | None = None) -> list[Exchange]:
    """Return the exchanges that are held, of one node or of all, oldest first."""
    found = [journal.find(match, after_id) for journal in _journals(double, node)]
    return found[0] if len(found) == 1 else list(heapq.merge(*found, key=_by_id))


async def held_matching(double: Double, match: Match, after_id: int) -> list[Exchange]:
    """Return the exchanges that are held now and match, oldest first; in between the controller runs."""
    found: list[Exchange] = []
    entries = held(double, after_id=after_id)
    for begin in range(0, len(entries), MATCH_BATCH):
        found += matching(entries[begin : begin + MATCH_BATCH], match)
        await next_turn()
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
            await next_turn()
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
    body = in_chunks(json_list('{"requests":[', trees, foot))
    return StreamingResponse(body, media_type="application/json", headers={"etag": answer.headers["etag"]})


@router.delete("/v1/requests", status_code=204)
async def forget_requests(selection: Selected) -> None:
    """Forget the selected requests; without a condition all entries of the journal, and their counts."""
    selection.forget()


@router.get(
    "/v1/requests/stream",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}},
)
async def stream_requests(selection: Selected, stopping: Stopping, streams: Streams) -> StreamingResponse:
    """Stream new requests as server-sent events: at most ten `requests` events a second.

    The data is `{"requests": [summaries], "dropped": n}`, the id the `afterId` to continue from. Starts after
    `afterId`, or with the first request that is not older than `maxAgeMs`; by default with the next request.
    """
    if selection.after_id is None and not selection.since_ms:
        selection = replace(selection, after_id=selection.double.mark())
    if len(streams) >= STREAMS_MAX:
        raise ProblemError(503, f"{STREAMS_MAX} streams are open: close one, or poll `/v1/requests?afterId=`")
    return StreamingResponse(_events(selection, stopping, streams), media_type="text/event-stream")


async def _events(
    selection: Selection, stopping: asyncio.Event, streams: set[asyncio.Task[object]]
) -> AsyncIterator[str]:
    double = selection.double
    if (task := asyncio.current_task()) is not None:
        streams.add(task)
        task.add_done_callback(streams.discard)
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
            await next_turn()
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
            await next_turn()
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
    lines = (f"{line}\n".encode() for journal in _journals(double, node) for line in journal.json_lines())
    return StreamingResponse(in_chunks(lines), media_type="application/jsonl")


@router.get(
    "/v1/requests.pcapng",
    response_class=Response,
    responses={200: {"content": {PCAPNG: {"schema": {"type": "string", "format": "binary"}}}}},
)
async def export_requests_as_capture(double: TheDouble, node: OneNode) -> StreamingResponse:
    """Return the requests and answers in the journal as a capture, for Wireshark."""
    journals = {node_id: journal for node_id, journal in double.journals.items() if node in (None, node_id)}
    entries = list(merged(journals.values()))
    servers = {node_id: journal.address for node_id, journal in journals.items()}
    return StreamingResponse(in_chunks(pcapng_pieces(entries, servers)), media_type=PCAPNG)
