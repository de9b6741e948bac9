"""What the admin API says of requests, as the journal keeps them."""

from __future__ import annotations

from typing import Any

from mockraft.server.admin.json_bodies import Model
from pydantic import Field


class RequestSummary(Model):
    """A request and what became of it, without the bodies. Times are milliseconds of the controller's clock."""

    id: int = Field(description="Numbers go up over all nodes, and are never used again.", examples=[17])
    node: int = Field(description="The controller that was asked.", examples=[3000])
    connection: int = Field(description="Number of the connection, counted from 1 by the node.")
    received_ms: int
    answered_ms: int
    api: str = Field(examples=["BrokerHeartbeat"])
    api_version: int
    correlation_id: int
    client_id: str | None = Field(examples=["1"])
    peer: str | None = Field(description="Address of the client.", examples=["127.0.0.1:40000"])
    principal: str = Field(examples=["User:ANONYMOUS"])
    broker_id: int | None = Field(description="Who asked, where that was said.", examples=[1])
    served_by: str = Field(description="`controller`, or `stub ID`.", examples=["controller"])
    matched: str | None = Field(description="Id of the stub that matched.")
    unmatched: bool = Field(description="Whether a strict script did not expect it.")
    reason: str | None = Field(description="Why there is no answer, or what was done to it.")
    error: str | None = Field(description="Name of the first error in the answer.", examples=["STALE_BROKER_EPOCH"])
    failure: str | None = Field(description="Where mockraft itself broke: a traceback.")
    bytes: int = Field(description="Bytes of request and answer.")


class RequestDetail(RequestSummary):
    """A request and its answer, decoded, in the JSON of Kafka's own tools."""

    request: dict[str, Any]
    response: dict[str, Any] | None = Field(description="null when there was none, or none that can be read.")
    response_hex: str | None = Field(description="An answer that cannot be read, because it was spoilt on purpose.")


class Requests(Model):
    """Requests, oldest first; with `summary=false` each has its bodies."""

    requests: list[RequestDetail | RequestSummary]
    next: int = Field(description="Give it as `since` for what comes after these.")
    dropped: int = Field(description="How many were forgotten since the start, as only so many are kept.")


class RequestsNow(Model):
    """A piece of the stream, in the data of an event `requests`."""

    requests: list[RequestSummary]
    dropped: int
