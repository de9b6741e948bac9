"""The description of one API, and the context of a request (Kafka's ApiMessageType and RequestContext)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from mockraft.wire import error_codes
from mockraft.wire.message import Message

ANONYMOUS = "User:ANONYMOUS"
"""The principal of a client that did not authenticate."""

RequestT = TypeVar("RequestT", bound=Message)
ResponseT = TypeVar("ResponseT", bound=Message)


@dataclass(frozen=True, slots=True)
class Api(Generic[RequestT, ResponseT]):
    """One API: its message classes, handler, error form and versions.

    Servers narrow the type of `handle`. `error(request, error_code, message)` returns the error response of this API;
    `message` is None for an error without a text. A version below 0 stands for the message's own limit.
    """

    request: type[RequestT]
    response: type[ResponseT]
    handle: Callable[..., object]
    error: Callable[[RequestT, int, str | None], ResponseT]
    min_version: int = -1
    max_version: int = -1

    @property
    def api_key(self) -> int:
        """Number of the API on the wire."""
        return int(self.request.api_key)

    @property
    def versions(self) -> tuple[int, int]:
        """The lowest and the highest served version."""
        low, high = self.min_version, self.max_version
        return (self.request.min_version if low < 0 else low, self.request.max_version if high < 0 else high)

    def unknown_server_error(self, request: RequestT) -> ResponseT:
        """Return the response to a request whose handler failed unexpectedly."""
        return self.error(request, error_codes.UNKNOWN_SERVER_ERROR, None)


def error_code_only(response: Callable[..., ResponseT]) -> Callable[[Message, int, str | None], ResponseT]:
    """Return the error form of an API whose response has an error code and no message."""
    return lambda request, error_code, message: response(error_code=error_code)


def error_with_message(response: Callable[..., ResponseT]) -> Callable[[Message, int, str | None], ResponseT]:
    """Return the error form of an API whose response has an error code and a message."""
    return lambda request, error_code, message: response(error_code=error_code, error_message=message)


@dataclass(slots=True)
class RequestContext:
    """Context of a request: its header and the client. `principal` is `User:name`, `client_address` an IP address."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    principal: str
    client_address: str
