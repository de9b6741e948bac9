"""What an API of the controller listener is made of, and what its handler is told about a request."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from mockraft.server.controller.controller import Controller


class Parked(NamedTuple):
    """A handler's way to say: not yet.

    `retry(now_ms, expired)` is called when the metadata log grew and, with expired true, at `deadline_ms`; it gives
    the response, or None to stay parked. At the deadline it must answer.
    """

    deadline_ms: int
    retry: Callable[[int, bool], Any]


class Api(NamedTuple):
    """One API: its message classes, the versions the controller listener takes, its handler and its error form.

    `handle(request, ctx, controller)` gives a response message or `Parked`, or raises ApiError.
    `error(request, error_code, message)` is the response that says the error where this API says errors.
    """

    request: Any
    response: Any
    handle: Callable[[Any, RequestContext, Controller], Any]
    min_version: int
    max_version: int
    error: Callable[[Any, int, str | None], Any]
    forwardable: bool = False

    @property
    def api_key(self) -> int:
        """Number of the API on the wire."""
        return int(self.request.api_key)


@dataclass(slots=True)
class RequestContext:
    """Who asked, how and when (Kafka's RequestContext). `principal` is written as `User:name`."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    connection_id: int
    listener: str
    principal: str
    client_address: str
    forwarded: bool
    now_ms: int
    apis: Mapping[int, Api]
