"""What an API of the controller listener is made of, and what its handler is told about a request."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from mockraft.server.controller.result import ApiError
from mockraft.wire import error_codes

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
    """Who asked, how and when (Kafka's RequestContext). `principal` is written as `User:name`.

    `apis` is the node's table by API key; `failure` is set when the handler broke. `token_authenticated`: the principal
    of a forwarded request logged in with a delegation token.
    """

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
    failure: str | None = None
    token_authenticated: bool = False

    @property
    def allows_token_requests(self) -> bool:
        """Whether it may ask about delegation tokens on this PLAINTEXT listener (ControllerApis.allowTokenRequests)."""
        return self.forwarded and not self.token_authenticated


def answer(api: Api, request: Any, ctx: RequestContext, controller: Controller) -> Any:
    """What the API's handler says, a refusal in the API's own error form; a response message or `Parked`.

    A handler that breaks is our bug: the response says UNKNOWN_SERVER_ERROR, `ctx.failure` holds the traceback, and
    the controller goes on (Kafka's would resign).
    """
    try:
        return api.handle(request, ctx, controller)
    except ApiError as refusal:
        return api.error(request, refusal.error_code, refusal.message)
    except Exception:
        return broken(api, request, ctx)


def broken(api: Api, request: Any, ctx: RequestContext) -> Any:
    """The response to a request whose handler broke; called while the exception is being handled."""
    import traceback

    ctx.failure = traceback.format_exc()
    code = error_codes.UNKNOWN_SERVER_ERROR
    return api.error(request, code, error_codes.message(code))
