"""The description of one API, the context of a request, and the result of a handler that must wait.

Kafka's ApiMessageType, RequestContext and DelayedOperation.
"""

from __future__ import annotations

import re
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeAlias, TypeVar, TypeVarTuple, Unpack

from mockraft.wire import error_codes
from mockraft.wire.connection import FRAME_BYTES_MAX
from mockraft.wire.message import Message, field_names
from mockraft.wire.messages.api_versions_request import ApiVersionsRequest

if TYPE_CHECKING:
    from mockraft.wire.connection import Request

R = TypeVar("R")
Ts = TypeVarTuple("Ts")


class RaisedInTestError(Exception):
    """Carries, as its cause, what a function of a test raised that is no Exception: pytest's outcome, SystemExit."""


def call_of_test(function: Callable[[Unpack[Ts]], R], *arguments: *Ts) -> R:
    """Call a function of a test. RaisedInTestError for what else would pass by handlers; not for KeyboardInterrupt.

    Handlers let through what is no Exception, as it ends more than a request: the user or a time-out has raised it.
    """
    try:
        return function(*arguments)
    except (Exception, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise RaisedInTestError(repr(error)) from error


def failure_text() -> str:
    """Return the traceback of the exception that is being handled."""
    error = sys.exception()
    if isinstance(error, RaisedInTestError):
        error = error.__cause__
    assert error is not None
    return "".join(traceback.format_exception(error))


ANONYMOUS = "User:ANONYMOUS"
"""The principal of a client that did not authenticate."""

RequestT = TypeVar("RequestT", bound=Message)
ResponseT = TypeVar("ResponseT", bound=Message)


@dataclass(frozen=True, slots=True)
class Api(Generic[RequestT, ResponseT]):
    """One API: its message classes, handler, error form and versions.

    Servers narrow the type of `handle`. `error_form(request, error_code, message)` makes the error response of an API
    that needs more than the code and, if the response has a field for it, the message. A version below 0 stands for
    the message's own limit. `served_by` is the server's name in the journal. `validate` raises WireError for a
    decodable body that Kafka's request class rejects. `in_session` returns a copy of a request that also names what
    the client's session adds, for stubs that select some of it.
    """

    request: type[RequestT]
    response: type[ResponseT]
    handle: Callable[..., object]
    error_form: Callable[[RequestT, int, str | None], ResponseT] | None = None
    min_version: int = -1
    max_version: int = -1
    served_by: str = "broker"
    validate: Callable[[RequestT], None] | None = None
    in_session: Callable[[RequestT, Any], RequestT] | None = None

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

    def answered_version(self, api_version: int) -> int:
        """Return a response's version: an unknown ApiVersions version is answered in 0 (RequestContext.apiVersion)."""
        return api_version if 0 <= api_version <= self.max_version else 0

    def elements_max(self, limits: Any) -> int:
        """Return the maximum number of elements in a request; here, of those that fit into one."""
        return FRAME_BYTES_MAX

    def error(self, request: RequestT, error_code: int, message: str | None) -> ResponseT:
        """Return the error response of this API; `message` is None for an error without a text."""
        assert self.error_form is not None
        return self.error_form(request, error_code, message)

    def unknown_server_error(self, request: RequestT) -> ResponseT:
        """Return the response to a request whose handler failed unexpectedly."""
        return self.error(request, error_codes.UNKNOWN_SERVER_ERROR, None)


AnyApi: TypeAlias = Api[Any, Any]
"""An API of unknown message classes, as in a table by API key."""


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


class ConnectionClosedError(Exception):
    """The client's connection must be closed without a response; the text is the reason for the log."""


class Client(NamedTuple):
    """The other end of a connection, as far as it is known: address, principal (`User:name`), broker id or -1.

    `listener` is the name of the listener, `token_authenticated`: the principal logged in with a delegation token.
    """

    connection_id: int
    address: str
    listener: str
    principal: str = ANONYMOUS
    broker_id: int = -1
    token_authenticated: bool = False

    def may_request_tokens(self, security_protocol: str) -> bool:
        """Return True if delegation token requests are allowed on such a listener (KafkaApis.allowTokenRequests)."""
        is_nobody = security_protocol == "PLAINTEXT" or (security_protocol == "SSL" and self.principal == ANONYMOUS)
        return not is_nobody and not self.token_authenticated


class OfRequest:
    """Properties of a request's header and client, in its context as well as in its entry in the journal."""

    __slots__ = ()

    header: Request
    client: Client

    @property
    def api_key(self) -> int:
        """Number of the API on the wire."""
        return self.header.api_key

    @property
    def api_version(self) -> int:
        """Version of the request."""
        return self.header.api_version

    @property
    def correlation_id(self) -> int:
        """Correlation id of the request."""
        return self.header.correlation_id

    @property
    def principal(self) -> str:
        """The client's name, `User:name`."""
        return self.client.principal

    @property
    def connection_id(self) -> int:
        """Number of the connection."""
        return self.client.connection_id


@dataclass(slots=True)
class RequestContext(OfRequest):
    """Context of a request: its header, the client, and the time (Kafka's RequestContext).

    `failure` is the traceback if the handler raised, `refused_with` the code with which it refused the request as a
    whole. `remark` is what the client could do better, for the log and the journal, `changed_by` the stub that changed
    the request, empty for none; `asked` is the client's request if the stub has taken out of it what it refuses.
    """

    header: Request
    client: Client
    now_ms: int
    failure: str | None = field(default=None, init=False)
    refused_with: int = field(default=0, init=False)
    remark: str = field(default="", init=False)
    changed_by: str = field(default="", init=False)
    asked: Message | None = field(default=None, init=False)

    @property
    def client_id(self) -> str:
        """Client id of the request, empty for none."""
        return self.header.client_id or ""

    @property
    def client_address(self) -> str:
        """The client's address."""
        return self.client.address

    @property
    def listener(self) -> str:
        """Name of the listener."""
        return self.client.listener


_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
"""ApiVersionsRequest.SOFTWARE_NAME_VERSION_PATTERN."""


def is_valid(request: ApiVersionsRequest, version: int) -> bool:
    """Return True if the client software's name and version are valid (ApiVersionsRequest.isValid).

    Since version 5 also a cluster id and a node id (-1: none) are given together or not at all.
    """
    if version >= 5 and (request.cluster_id is None) != (request.node_id == -1):
        return False
    names = (request.client_software_name, request.client_software_version)
    return version < 3 or all(_SOFTWARE.fullmatch(name) for name in names)


NEVER_MS: Final = 1 << 62
"""Later than any time."""

AnswerT_co = TypeVar("AnswerT_co", covariant=True)
T = TypeVar("T")


class Parked(NamedTuple, Generic[AnswerT_co]):
    """Result of a handler that cannot answer yet.

    `retry(now_ms, expired)` is called when the state that it may wait for has changed and, with expired true, at
    `deadline_ms` (NEVER_MS: no deadline); it returns the response, or None to stay parked. At the deadline it must
    return a response.
    """

    deadline_ms: int
    retry: Callable[[int, bool], AnswerT_co | None]

    def then(self, follow: Callable[[AnswerT_co, int], T]) -> Parked[T]:
        """Return the same wait with another result: `follow(response, now_ms)`."""

        def retry(now_ms: int, expired: bool) -> T | None:
            response = self.retry(now_ms, expired)
            return None if response is None else follow(response, now_ms)

        return Parked(self.deadline_ms, retry)
