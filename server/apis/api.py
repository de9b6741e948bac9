"""The APIs of the controller listener: the shared base with controller handlers, and the context of a request."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias

from mockraft.kafka_api import api as serving_api
from mockraft.kafka_api.api import NEVER_MS, Parked, RequestT, ResponseT
from mockraft.kafka_api.authorization.acl_types import AclOperation
from mockraft.kafka_api.connections import Result as Result
from mockraft.server.apis.authorization import check_cluster_operation
from mockraft.server.controller.result import ApiError
from mockraft.wire import api_keys, error_codes
from mockraft.wire.message import Message

if TYPE_CHECKING:
    from mockraft.server.config import ControllerConfig
    from mockraft.server.controller.controller import Controller


@dataclass(frozen=True, slots=True)
class Api(serving_api.Api[RequestT, ResponseT]):
    """One API of the controller listener.

    `handle(request, ctx, controller)` returns a response message or `Parked`, or raises ApiError. `active_only`: only
    the active controller answers it; False for APIs that every node answers (reads, and the log's own).
    `reads_committed`: it is answered only once everything that it read is committed, as `active_only` ones are.
    `operation` is required on the cluster; None if the check depends on the request. `is_bulk`: brokers send it for
    all of their partitions at once, so it may have `ControllerConfig.bulk_elements_max` elements. `module` is the one
    to import if this is `later`.
    """

    handle: Callable[[RequestT, RequestContext, Controller], ResponseT | Parked[ResponseT]]
    forwardable: bool = False
    active_only: bool = True
    reads_committed: bool = False
    served_by: str = "controller"
    operation: AclOperation | None = None
    is_bulk: bool = False
    module: str = field(default="", init=False, repr=False, compare=False)

    if not TYPE_CHECKING:  # a type checker would take any name for an attribute

        def __getattr__(self, name: str) -> object:
            """Return the value of a field that is not set, and keep it: the one of `API` in the module."""
            if name == "module" or not self.module:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            value = getattr(import_module(self.module).API, name)
            object.__setattr__(self, name, value)
            return value

    def in_versions(self, lowest: int, highest: int) -> AnyApi:
        """Return this API with other versions."""
        if self.module:
            return later(self.module, min_version=lowest, max_version=highest)
        return replace(self, min_version=lowest, max_version=highest)

    def elements_max(self, limits: ControllerConfig) -> int:
        """Return the maximum number of elements in a request."""
        return limits.bulk_elements_max if self.is_bulk else limits.request_elements_max


AnyApi: TypeAlias = Api[Any, Any]
"""An API from the table by API key. An overlay's classes replace Kafka's there, so its classes are not known."""


def later(module: str, **known: int) -> AnyApi:
    """Return the `API` of a module that is imported when one of its fields is used, other than the `known` ones."""
    api: AnyApi = object.__new__(Api)
    for name, value in {"module": module, **known}.items():
        object.__setattr__(api, name, value)
    return api


Carried: TypeAlias = "Callable[[AnyApi, Message, RequestContext, Callable[[], Result]], Result]"


@dataclass(slots=True)
class RequestContext(serving_api.RequestContext):
    """Context of a request to a controller.

    `apis` is the node's table by API key. `carried`, if set, answers the request in an Envelope; its last
    argument returns the controller's own answer.
    """

    apis: Mapping[int, AnyApi]
    forwarded: bool = False
    carried: Carried | None = None

    def allows_token_requests(self, security_protocol: str) -> bool:
        """True if delegation token requests are allowed on such a listener (ControllerApis.allowTokenRequests)."""
        if self.forwarded:
            return not self.client.token_authenticated
        return self.client.may_request_tokens(security_protocol)


def answer(
    api: Api[RequestT, ResponseT], request: RequestT, ctx: RequestContext, controller: Controller
) -> ResponseT | Parked[ResponseT]:
    """Call the API's handler and return a response message or `Parked`; a refusal becomes the API's error form.

    A handler that raises is our bug: the response has UNKNOWN_SERVER_ERROR, `ctx.failure` holds the traceback, and the
    controller goes on (Kafka's would resign). A policy that raises is a test's.
    """
    events = controller.events
    before, events.cause = events.cause, partial(_asked, ctx)
    controller.policy_failure = ""
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
    finally:
        events.cause = before
        ctx.failure = ctx.failure or controller.policy_failure or None
    waits = api.active_only or api.reads_committed
    if controller.pending_offset and waits and not isinstance(response, Parked):
        return _until_committed(api, request, response, ctx, controller)
    return response


def _asked(ctx: RequestContext) -> str:
    """Return whose request it is; omitted for a broker's own requests."""
    is_own = ctx.api_key in (api_keys.BROKER_HEARTBEAT, api_keys.BROKER_REGISTRATION)
    asked = "" if is_own else f"{api_keys.name(ctx.api_key)} of client {ctx.client_id or ctx.principal}"
    changed = f"changed by {ctx.changed_by}" if ctx.changed_by else ""
    return " ".join(filter(None, (asked, changed)))


def _until_committed(
    api: Api[RequestT, ResponseT], request: RequestT, response: ResponseT, ctx: RequestContext, controller: Controller
) -> Parked[ResponseT]:
    """Return the response once everything that its handler may have read is committed.

    If this node is no longer active by then, a read is answered from the image that is left, and any other request with
    NOT_CONTROLLER: the records' outcome is unknown (QuorumController's deferredEventQueue).
    """
    offset, epoch = controller.pending_offset, controller.epoch

    def retry(now_ms: int, expired: bool) -> ResponseT | None:
        if controller.epoch != epoch and not api.active_only:
            again = answer(api, request, ctx, controller)
            return None if isinstance(again, Parked) else again
        if controller.epoch != epoch:
            ctx.refused_with = error_codes.NOT_CONTROLLER
            return api.error(request, error_codes.NOT_CONTROLLER, controller.wrong_controller)
        return response if controller.log.high_watermark >= offset else None

    return Parked(NEVER_MS, retry)


def broken(api: Api[RequestT, ResponseT], request: RequestT, ctx: RequestContext) -> ResponseT:
    """Return the response to a request whose handler raised; call it while the exception is being handled."""
    ctx.failure = serving_api.failure_text()
    code = error_codes.UNKNOWN_SERVER_ERROR
    return api.error(request, code, error_codes.message(code))
