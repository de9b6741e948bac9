"""Authorization of requests (Kafka's AuthHelper). Without an authorizer everything is allowed."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

from mockraft.kafka_api.authorization.acl_types import (
    CLUSTER_NAME,
    DENIED,
    AclOperation,
    ResourceType,
    resource_of_configs,
)
from mockraft.kafka_api.authorization.authorizer import host_text
from mockraft.kafka_api.refusals import SHOWN_MAX
from mockraft.server.controller.result import ApiError
from mockraft.wire import error_codes
from mockraft.wire.printable import printable_line

if TYPE_CHECKING:
    from mockraft.server.controller.controller import Controller

_log = logging.getLogger("mockraft.authorizer")


class Requester(Protocol):
    """The client that asks: the part of a request's context that decisions are made by."""

    @property
    def principal(self) -> str:
        """The principal, as `User:name`."""

    @property
    def client_address(self) -> str:
        """Address of the client; with the port, unless the request was forwarded."""

    @property
    def forwarded(self) -> bool:
        """True if the request came in an Envelope."""

    @property
    def connection_id(self) -> int:
        """Number of the connection."""

    @property
    def listener(self) -> str:
        """Name of the listener."""


def is_allowed(
    controller: Controller, ctx: Requester, operation: AclOperation, resource_type: ResourceType, name: str
) -> bool:
    """Return True if the requester may perform the operation on the resource."""
    authorizer = controller.authorizer
    if authorizer is None:
        return True
    host = host_text(ctx.client_address if ctx.forwarded else ctx.client_address.rpartition(":")[0])
    acls = controller.image.security.acl_index
    allowed = authorizer.allows(acls, ctx.principal, host, operation, resource_type, name)
    if not allowed:
        about = f"{ctx.principal} from {host} may not {operation.name} {resource_type.name} {name}"
        _log.debug("%s", printable_line(about, SHOWN_MAX))
    return allowed


def is_allowed_on_cluster(controller: Controller, ctx: Requester, operation: AclOperation) -> bool:
    """Return True if the requester may perform the operation on the cluster."""
    return is_allowed(controller, ctx, operation, ResourceType.CLUSTER, CLUSTER_NAME)


def check_cluster_operation(controller: Controller, ctx: Requester, operation: AclOperation) -> None:
    """Raise ApiError CLUSTER_AUTHORIZATION_FAILED unless the requester may do this to the cluster."""
    if not is_allowed_on_cluster(controller, ctx, operation):
        # Kafka prints its whole request object here: connection, session, buffer.
        about = f"connectionId={ctx.connection_id}, session=Session({ctx.principal},{ctx.client_address})"
        message = f"Request Request({about}, listenerName={ctx.listener}) needs {operation.name} permission."
        raise ApiError(error_codes.CLUSTER_AUTHORIZATION_FAILED, message)


def allowed_topics(controller: Controller, ctx: Requester, operation: AclOperation, names: Iterable[str]) -> set[str]:
    """Return the topics on which the requester may perform the operation."""
    return {name for name in names if is_allowed(controller, ctx, operation, ResourceType.TOPIC, name)}


def check_configs(
    controller: Controller, ctx: Requester, operation: AclOperation, config_resource_type: int, name: str
) -> None:
    """Raise ApiError, by the kind of the resource, unless the requester may do this with its configs."""
    resource_type, resource_name = resource_of_configs(config_resource_type, name)
    if not is_allowed(controller, ctx, operation, resource_type, resource_name):
        raise ApiError(DENIED[resource_type], error_codes.message(DENIED[resource_type]))
