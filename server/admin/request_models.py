"""Response models of requests in the journal."""

from __future__ import annotations

from mockraft.server.admin.json_bodies import Int64, Model
from pydantic import Field


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
