"""The description of one API, and the context of a request (Kafka's ApiMessageType and RequestContext)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from mockraft.wire import error_codes
from mockraft.wire.message import Message, field_names

ANONYMOUS = "User:ANONYMOUS"
"""The principal of a client that did not authenticate."""

RequestT = TypeVar("RequestT", bound=Message)
ResponseT = TypeVar("ResponseT", bound=Message)


@dataclass(frozen=True, slots=True)
class Api(Generic[RequestT, ResponseT]):
    """One API: its message classes, handler, error form and versions.

    Servers narrow the type of `handle`. `error_form(request, error_code, message)` makes the error response of an API
    that needs more than the code and, if the response has a field for it, the message. A version below 0 stands for
    the message's own limit.
    """

    request: type[RequestT]
    response: type[ResponseT]
    handle: Callable[..., object]
    error_form: Callable[[RequestT, int, str | None], ResponseT] | None = None
    min_version: int = -1
    max_version: int = -1

    def __post_init__(self) -> None:
        if self.error_form is None:
            names = field_names(self.response)
            if "error_code" not in names:
                raise TypeError(f"{self.response.__name__} has no error_code: the API needs an error_form")
            form = error_with_message if "error_message" in names else error_code_only
            object.__setattr__(self, "error_form", form(self.response))
        if self.min_version < 0:
            object.__setattr__(self, "min_version", self.request.min_version)
        if self.max_version < 0:
            object.__setattr__(self, "max_version", self.request.max_version)

    @property
    def api_key(self) -> int:
        """Number of the API on the wire."""
        return int(self.request.api_key)

    @property
    def versions(self) -> tuple[int, int]:
        """The lowest and the highest served version."""
        return self.min_version, self.max_version

    def error(self, request: RequestT, error_code: int, message: str | None) -> ResponseT:
        """Return the error response of this API; `message` is None for an error without a text."""
        assert self.error_form is not None
        return self.error_form(request, error_code, message)

    def unknown_server_error(self, request: RequestT) -> ResponseT:
        """Return the response to a request whose handler failed unexpectedly."""
        return self.error(request, error_codes.UNKNOWN_SERVER_ERROR, None)


def error_code_only(response: Callable[..., ResponseT]) -> Callable[[Message, int, str | None], ResponseT]:
    """Return the error form of an API whose response has an error code and no message."""
    return lambda request, error_code, message: response(error_code=error_code)


def error_with_message(response: Callable[..., ResponseT]) -> Callable[[Message, int, str | None], ResponseT]:
    """Return the error form of an API whose response has an error code and a message."""
    return lambda request, error_code, message: response(error_code=error_code, error_message=message)


def error_with_default_message(response: Callable[..., ResponseT]) -> Callable[[Message, int, str | None], ResponseT]:
    """Return the error form of an API whose response has an error code and always Kafka's message for it."""
    return lambda request, error_code, message: response(
        error_code=error_code, error_message=error_codes.message(error_code)
    )


@dataclass(slots=True)
class RequestContext:
    """Context of a request: its header and the client. `principal` is `User:name`, `client_address` an IP address."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    principal: str
    client_address: str
