"""FindCoordinator (10): KIP-699 (several keys from version 4 on). The coordinator of a consumer group.

With a `__consumer_offsets` topic the coordinator is the leader of the group's partition, as in Kafka; otherwise it is
one of the live brokers, and stays the same for a group while that broker is alive. Transactions and share groups have
no coordinator here; a transactional id gets an authorization error, because that makes a producer fail, whereas it
would retry after any other error.
"""

from __future__ import annotations

import zlib

from mockraft.brokers.apis.api import Api, ApiError, RequestContext
from mockraft.brokers.apis.topic_names import GROUP_METADATA
from mockraft.wire import error_codes
from mockraft.wire.messages.find_coordinator_request import FindCoordinatorRequest
from mockraft.wire.messages.find_coordinator_response import Coordinator, FindCoordinatorResponse

GROUP, TRANSACTION = 0, 1
SEVERAL_KEYS_FROM = 4
NO_NODE = -1


def handle(request: FindCoordinatorRequest, ctx: RequestContext) -> FindCoordinatorResponse:
    """Return the endpoint of the coordinator of each key."""
    if ctx.api_version >= SEVERAL_KEYS_FROM:
        return FindCoordinatorResponse(
            coordinators=[_find(key, request.key_type, ctx) for key in request.coordinator_keys]
        )
    found = _find(request.key, request.key_type, ctx)
    return FindCoordinatorResponse(
        error_code=found.error_code,
        error_message=found.error_message,
        node_id=found.node_id,
        host=found.host,
        port=found.port,
    )


def error(request: FindCoordinatorRequest, error_code: int, message: str | None) -> FindCoordinatorResponse:
    """Return the error for each key."""
    keys = [_refused(key, error_code, message) for key in request.coordinator_keys]
    if keys:
        return FindCoordinatorResponse(coordinators=keys)
    return FindCoordinatorResponse(error_code=error_code, error_message=message, node_id=NO_NODE, port=-1)


def coordinator_of(ctx: RequestContext, group_id: str) -> int | None:
    """Return the broker that coordinates this group; None while there is none."""
    offsets = ctx.image.topics_by_name.get(GROUP_METADATA)
    if offsets is not None and offsets.partitions:
        index = (java_hash(group_id) & 0x7FFFFFFF) % len(offsets.partitions)
        leader = offsets.partitions[index].leader
        return leader if leader >= 0 else None
    alive = [broker.broker_id for broker in ctx.image.alive()]
    # Rendezvous hashing: a broker that is added or removed moves only its own groups.
    return max(alive, key=lambda each: (zlib.crc32(f"{each}/{group_id}".encode()), each), default=None)


def check_coordinator(ctx: RequestContext, group_id: str) -> None:
    """Raise ApiError (NOT_COORDINATOR) when this broker does not coordinate the group."""
    if coordinator_of(ctx, group_id) != ctx.broker.config.broker_id:
        raise ApiError(error_codes.NOT_COORDINATOR)


def _find(key: str, key_type: int, ctx: RequestContext) -> Coordinator:
    if key_type != GROUP:
        is_transaction = key_type == TRANSACTION
        code = error_codes.TRANSACTIONAL_ID_AUTHORIZATION_FAILED if is_transaction else error_codes.INVALID_REQUEST
        return _refused(key, code, "simulated brokers coordinate only consumer groups")
    if not key:
        return _refused(key, error_codes.INVALID_GROUP_ID, None)
    broker_id = coordinator_of(ctx, key)
    node = None if broker_id is None else ctx.image.brokers.get(broker_id)
    endpoint = None if node is None else node.endpoints.get(ctx.listener_name)
    if node is None or endpoint is None:
        return _refused(key, error_codes.COORDINATOR_NOT_AVAILABLE, None)
    return Coordinator(key=key, node_id=node.broker_id, host=endpoint.host, port=endpoint.port)


def _refused(key: str, error_code: int, message: str | None) -> Coordinator:
    return Coordinator(key=key, node_id=NO_NODE, host="", port=-1, error_code=error_code, error_message=message)


def java_hash(text: str) -> int:
    """Return Java's String.hashCode."""
    value = 0
    units = text.encode("utf-16-be")
    for position in range(0, len(units), 2):
        value = (31 * value + int.from_bytes(units[position : position + 2])) & 0xFFFFFFFF
    return value


API = Api(FindCoordinatorRequest, FindCoordinatorResponse, handle, error)
