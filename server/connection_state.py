"""What the node remembers of a connection: what came in, what is parked, who is on the other side."""

from __future__ import annotations

from collections import deque
from typing import Any

from mockraft.server.apis.api import Api, Parked, RequestContext
from mockraft.wire.connection import FrameReader, Request

ANONYMOUS = "User:ANONYMOUS"


class ParkedRequest:
    """A request whose handler said: not yet."""

    __slots__ = ("api", "body", "ctx", "deadline_ms", "request", "retry")

    def __init__(self, api: Api, request: Request, body: Any, ctx: RequestContext, parked: Parked) -> None:
        self.api = api
        self.request = request
        self.body = body
        self.ctx = ctx
        self.deadline_ms = parked.deadline_ms
        self.retry = parked.retry


class Connection:
    """What the node knows of one connection."""

    __slots__ = (
        "awaits_sent",
        "connection_id",
        "opened_ms",
        "parked",
        "paused",
        "peer_address",
        "principal",
        "reader",
        "waiting",
    )

    def __init__(self, connection_id: int, peer_address: str, opened_ms: int, frame_bytes_max: int) -> None:
        self.connection_id = connection_id
        self.peer_address = peer_address
        self.principal = ANONYMOUS
        self.opened_ms = opened_ms
        self.reader = FrameReader(frame_bytes_max)
        self.waiting: deque[bytes] = deque()
        self.parked: ParkedRequest | None = None
        self.paused = False
        self.awaits_sent = False
