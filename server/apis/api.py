"""What an API of the controller listener is made of, and what its handler is told about a request."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from mockraft.server.apis.authorization import check_cluster_operation
from mockraft.server.controller.acl_types import AclOperation
from mockraft.server.controller.periodic import NEVER_MS
from mockraft.server.controller.result import ApiError
from mockraft.wire import error_codes

if TYPE_CHECKING:
    from mockraft.server.controller.controller import Controller


ANONYMOUS = "User:ANONYMOUS"
"""Who asks where nobody has to say who they are."""


class Parked(NamedTuple):
    """A handler's way to say: not yet.

    `retry(now_ms, expired)` is called when the metadata log grew, was committed or changed hands and, with expired
    true, at `deadline_ms` (NEVER_MS: there is none); it gives the response, or None to stay parked. At the deadline it
    must answer.
    """

    deadline_ms: int
    retry: Callable[[int, bool], Any]


class Api(NamedTuple):
    """One API: its message classes, the versions the controller listener takes, its handler and its error form.

    `handle(request, ctx, controller)` gives a response message or `Parked`, or raises ApiError.
    `error(request, error_code, message)` is the response that says the error where this API says errors.
    `active_only`: only the active controller answers it, and only once all that it saw is committed; APIs that every
    node answers (what is read, and the log's own) say False.
    `served_by` is who the journal says answered.
    `operation` is what who asks must be allowed to do to the cluster; None where that depends on more than who asks.
    `validate` raises WireError for a body that can be read but that Kafka's request class refuses to be made of.
    """

    request: Any
    response: Any
    handle: Callable[[Any, RequestContext, Controller], Any]
    min_version: int
    max_version: int
    error: Callable[[Any, int, str | None], Any]
    forwardable: bool = False
    active_only: bool = True
    served_by: str = "controller"
    operation: AclOperation | None = None
    validate: Callable[[Any], None] | None = None

    @property
    def api_key(self) -> int:
        """Number of the API on the wire."""
        return int(self.request.api_key)


@dataclass(slots=True)
class RequestContext:
    """Who asked, how and when (Kafka's RequestContext). `principal` is written as `User:name`.

    `apis` is the node's table by API key; `failure` is set when the handler broke, `refused_with` to the code with
    which it refused the request as a whole. `token_authenticated`: the principal logged in with a delegation token.
    `carried`, where it is set, answers what an Envelope carries.
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
    refused_with: int = 0
    carried: Callable[[Api, Any, RequestContext, Controller], Any] | None = None

    def allows_token_requests(self, security_protocol: str) -> bool:
        """Whether it may ask about delegation tokens on such a listener (ControllerApis.allowTokenRequests)."""
        if self.token_authenticated:
            return False
        is_nobody = security_protocol == "PLAINTEXT" or (security_protocol == "SSL" and self.principal == ANONYMOUS)
        return self.forwarded or not is_nobody


def answer(api: Api, request: Any, ctx: RequestContext, controller: Controller) -> Any:
    """What the API's handler says, a refusal in the API's own error form; a response message or `Parked`.

    A handler that breaks is our bug: the response says UNKNOWN_SERVER_ERROR, `ctx.failure` holds the traceback, and
    the controller goes on (Kafka's would resign).
    """
    try:
        if controller.authorizer is not None and api.operation is not None:
            check_cluster_operation(controller, ctx, api.operation)
        if controller.epoch < 0 and api.active_only:
            raise ApiError(error_codes.NOT_CONTROLLER, controller.wrong_controller)
        response = api.handle(request, ctx, controller)
    except ApiError as refusal:
        ctx.refused_with = refusal.error_code
        return api.error(request, refusal.error_code, refusal.message)
    except Exception:
        return broken(api, request, ctx)
    if controller.pending_offset and api.active_only and response.__class__ is not Parked:
        return _until_committed(api, request, response, ctx, controller)
    return response


def _until_committed(api: Api, request: Any, response: Any, ctx: RequestContext, controller: Controller) -> Parked:
    """The response, once everything that its handler may have seen is committed.

    NOT_CONTROLLER when this node is not active any more by then: nobody knows what becomes of the records
    (QuorumController's deferredEventQueue).
    """
    offset, epoch = controller.pending_offset, controller.epoch

    def retry(now_ms: int, expired: bool) -> Any:
        if controller.epoch != epoch:
            ctx.refused_with = error_codes.NOT_CONTROLLER
            return api.error(request, error_codes.NOT_CONTROLLER, controller.wrong_controller)
        return response if controller.log.high_watermark >= offset else None

    return Parked(NEVER_MS, retry)


def broken(api: Api, request: Any, ctx: RequestContext) -> Any:
    """The response to a request whose handler broke; called while the exception is being handled."""
    import traceback

    ctx.failure = traceback.format_exc()
    code = error_codes.UNKNOWN_SERVER_ERROR
    return api.error(request, code, error_codes.message(code))
