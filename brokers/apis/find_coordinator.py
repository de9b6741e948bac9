"""FindCoordinator (10): KIP-699 (several keys from version 4 on). The coordinator of a group or a transactional id.

It leads the key's partition of an internal topic, which the first request for any key creates, and waits for: Kafka
answers COORDINATOR_NOT_AVAILABLE, and librdkafka tries again a second later, in each test. Coordinators of the state of
share groups are real brokers, which look for them here, too.
"""

from __future__ import annotations

from typing import Final

from mockraft.brokers.apis.api import Api, ApiError, Parked, RequestContext
from mockraft.brokers.coordinators.state_log import coordinator
from mockraft.kafka_api.authorization.acl_types import DENIED, AclOperation, ResourceType
from mockraft.wire import error_codes, java_values, uuids
from mockraft.wire.messages.find_coordinator_request import FindCoordinatorRequest
from mockraft.wire.messages.find_coordinator_response import Coordinator, FindCoordinatorResponse
from mockraft.wire.topic_names import GROUP_METADATA, SHARE_GROUP_STATE, TRANSACTION_STATE

GROUP, TRANSACTION, SHARE = 0, 1, 2
SEVERAL_KEYS_FROM = 4
SHARE_FROM = 6
NO_NODE = -1
CREATION_WAIT_MS = 1_000
"""Time after which a request is answered although the internal topic is not there."""


RESOURCES: Final = {GROUP: ResourceType.GROUP, TRANSACTION: ResourceType.TRANSACTIONAL_ID}
"""What a client must be allowed to describe, by the type of the key."""
TOPICS: Final = {GROUP: GROUP_METADATA, TRANSACTION: TRANSACTION_STATE, SHARE: SHARE_GROUP_STATE}
"""The internal topic of each type; its leaders are the coordinators."""


def handle(
    request: FindCoordinatorRequest, ctx: RequestContext
) -> FindCoordinatorResponse | Parked[FindCoordinatorResponse]:
    """Return the endpoint of the coordinator of each key, once their topic is there."""
    is_created = TOPICS.get(request.key_type) in ctx.image.topics_by_name
    response = _found(request, ctx)
    if is_created or not _is_early(request, response, ctx):
        return response

    def retry(_now_ms: int, expired: bool) -> FindCoordinatorResponse | None:
        response = _found(request, ctx)
        return response if expired or not _is_early(request, response, ctx) else None

    return Parked(ctx.now_ms + CREATION_WAIT_MS, retry)


def _is_early(request: FindCoordinatorRequest, response: FindCoordinatorResponse, ctx: RequestContext) -> bool:
    """Return True if a coordinator is not there yet, or is this broker and does not lead its partition yet."""
    codes = (response.error_code, *(each.error_code for each in response.coordinators))
    own_id = ctx.broker.config.broker_id
    log = ctx.broker.transactions.log if request.key_type == TRANSACTION else ctx.broker.groups.log
    own = [each.key for each in response.coordinators if each.node_id == own_id]
    own += [request.key] if request.key and response.node_id == own_id else []
    is_led = all(log.is_loaded(log.partition_of(key)) for key in own)
    return error_codes.COORDINATOR_NOT_AVAILABLE in codes or not is_led


def _found(request: FindCoordinatorRequest, ctx: RequestContext) -> FindCoordinatorResponse:
    if ctx.api_version >= SEVERAL_KEYS_FROM:
        return FindCoordinatorResponse(
            coordinators=[_find(key, request.key_type, ctx) for key in request.coordinator_keys]
        )
    found = _find(request.key, request.key_type, ctx)
    return FindCoordinatorResponse(
        error_code=found.error_code,
        error_message=_message(found.error_code),
        node_id=found.node_id,
        host=found.host,
        port=found.port,
    )


def error(request: FindCoordinatorRequest, error_code: int, _message_of: str | None) -> FindCoordinatorResponse:
    """Return the error for each key."""
    message = _message(error_code)
    keys = [_refused(key, error_code, message) for key in request.coordinator_keys]
    if keys:
        return FindCoordinatorResponse(coordinators=keys)
    return FindCoordinatorResponse(error_code=error_code, error_message=message, node_id=NO_NODE, port=-1)


def _message(code: int) -> str:
    """Return what Kafka says about a code, also that there is none."""
    return "NONE" if code == error_codes.NONE else error_codes.message(code)


def _find(key: str, key_type: int, ctx: RequestContext) -> Coordinator:
    if key_type not in TOPICS:
        raise ApiError(error_codes.INVALID_REQUEST)
    if key_type in RESOURCES and not ctx.may(AclOperation.DESCRIBE, RESOURCES[key_type], key):
        return _refused(key, DENIED[RESOURCES[key_type]])
    if key_type == SHARE:
        if ctx.api_version >= SHARE_FROM:
            ctx.check(AclOperation.CLUSTER_ACTION, ResourceType.CLUSTER)
        if ctx.api_version < SHARE_FROM or not _is_share_key(key):
            return _refused(key, error_codes.INVALID_REQUEST)
    topic = TOPICS[key_type]
    if topic not in ctx.image.topics_by_name:
        ctx.broker.create_topics([topic], None)
    broker_id = coordinator(ctx.image, topic, key)
    node = None if broker_id is None else ctx.image.brokers.get(broker_id)
    endpoint = None if node is None or node.fenced else node.endpoints.get(ctx.listener)
    if node is None or endpoint is None:
        return _refused(key, error_codes.COORDINATOR_NOT_AVAILABLE)
    return Coordinator(key=key, node_id=node.broker_id, host=endpoint.host, port=endpoint.port)


def _is_share_key(key: str) -> bool:
    """Return True for GROUP:TOPIC_ID:PARTITION, the key of a share group's partition (SharePartitionKey)."""
    group, topic_id, partition = ["", "", *key.rstrip(":").rsplit(":", 2)][-3:]
    try:
        uuids.read_text(topic_id)
    except ValueError:
        return False
    return bool(java_values.trim(group)) and java_values.parse_integer(partition) is not None


def _refused(key: str, error_code: int, message: str = "") -> Coordinator:
    return Coordinator(key=key, node_id=NO_NODE, host="", port=-1, error_code=error_code, error_message=message)


API = Api(FindCoordinatorRequest, FindCoordinatorResponse, handle, error)
