"""DeleteTopics (20), versions 1-6: KIP-4, KIP-516 (by topic id from version 6).

A request with a timeout of zero expires before its turn in Kafka's event queue; any other is done in time. Without
DELETE on a topic it is refused; without DESCRIBE the response hides its name and existence. From version 5 on a client
over its controller mutation quota is refused (KIP-599); before, it is only throttled.
"""

from collections import Counter
from typing import Final

from mockraft.kafka_api import error_responses
from mockraft.kafka_api.authorization.acl_types import AclOperation
from mockraft.server.apis.api import Api, RequestContext
from mockraft.server.apis.authorization import allowed_topics, is_allowed_on_cluster
from mockraft.server.apis.refusals import mutation_quota
from mockraft.server.controller.controller import Controller
from mockraft.server.controller.result import ApiError, error_fields
from mockraft.server.controller.topics import topics
from mockraft.wire import error_codes
from mockraft.wire.messages.delete_topics_request import DeleteTopicsRequest
from mockraft.wire.messages.delete_topics_response import DeletableTopicResult, DeleteTopicsResponse

NO_ID: Final = bytes(16)

_VERSION_WITH_DELETION_DISABLED: Final = 3
_VERSION_WITH_STRICT_QUOTA: Final = 5


def handle(request: DeleteTopicsRequest, ctx: RequestContext, controller: Controller) -> DeleteTopicsResponse:
    """Delete each topic, or return its error, in an order that reveals nothing (Kafka shuffles it too)."""
    if not controller.config.delete_topic_enable:
        if ctx.api_version < _VERSION_WITH_DELETION_DISABLED:
            raise ApiError(error_codes.INVALID_REQUEST, "This version does not support topic deletion.")
        raise ApiError(error_codes.TOPIC_DELETION_DISABLED)
    results, names, ids = _requested(request)
    if request.timeout_ms <= 0 and 1 in (*names.values(), *ids.values()):
        raise ApiError(error_codes.REQUEST_TIMED_OUT)
    doomed = _doomed(names, ids, results, ctx, controller)
    quota = mutation_quota(controller, ctx, _VERSION_WITH_STRICT_QUOTA)
    deleted = controller.commit(topics.delete_topics(controller, doomed, quota), ctx.now_ms)
    for topic_id, refusal in deleted.items():
        results.append(DeletableTopicResult(name=doomed[topic_id], topic_id=topic_id, **error_fields(refusal)))
    controller.rng.shuffle(results)
    return DeleteTopicsResponse(throttle_time_ms=quota.throttle_time_ms, responses=results)


def _requested(request: DeleteTopicsRequest) -> tuple[list[DeletableTopicResult], Counter[str], Counter[bytes]]:
    results = []
    names: Counter[str] = Counter(request.topic_names)
    ids: Counter[bytes] = Counter()
    for topic in request.topics:
        if topic.name is not None and topic.topic_id != NO_ID:
            message = "You may not specify both topic name and topic id."
            results.append(_result(topic.name, topic.topic_id, error_codes.INVALID_REQUEST, message))
        elif topic.name is not None:
            names[topic.name] += 1
        elif topic.topic_id != NO_ID:
            ids[topic.topic_id] += 1
        else:
            message = "Neither topic name nor id were specified."
            results.append(_result(None, NO_ID, error_codes.INVALID_REQUEST, message))
    for name, times in names.items():
        if times > 1:
            results.append(_result(name, NO_ID, error_codes.INVALID_REQUEST, "Duplicate topic name."))
    for topic_id, times in ids.items():
        if times > 1:
            results.append(_result(None, topic_id, error_codes.INVALID_REQUEST, "Duplicate topic id."))
    return results, names, ids


def _doomed(
    names: Counter[str],
    ids: Counter[bytes],
    results: list[DeletableTopicResult],
    ctx: RequestContext,
    controller: Controller,
) -> dict[bytes, str]:
    """Return names, by id, of the topics to delete; errors of the others are appended to the results."""
    image = controller.image.topics
    single_ids = [topic_id for topic_id, times in ids.items() if times == 1]
    single_names = [name for name, times in names.items() if times == 1]
    by_id = {topic_id: image.by_id[topic_id].name for topic_id in single_ids if topic_id in image.by_id}
    describable = deletable = {*single_names, *by_id.values()}
    if not is_allowed_on_cluster(controller, ctx, AclOperation.DELETE):
        describable = allowed_topics(controller, ctx, AclOperation.DESCRIBE, describable)
        deletable = allowed_topics(controller, ctx, AclOperation.DELETE, deletable)
    doomed = {}
    for topic_id in single_ids:
        name = by_id.get(topic_id)
        if name is None:
            results.append(_result(None, topic_id, error_codes.UNKNOWN_TOPIC_ID))
        elif name in deletable:
            doomed[topic_id] = name
        else:
            shown = name if name in describable else None
            results.append(_result(shown, topic_id, error_codes.TOPIC_AUTHORIZATION_FAILED))
    for name in single_names:
        topic = image.by_name.get(name)
        if name not in describable or (topic is not None and name not in deletable):
            results.append(_result(name, NO_ID, error_codes.TOPIC_AUTHORIZATION_FAILED))
        elif topic is None:
            results.append(_result(name, NO_ID, error_codes.UNKNOWN_TOPIC_OR_PARTITION))
        elif topic.topic_id in doomed or ids[topic.topic_id] > 1:
            doomed.pop(topic.topic_id, None)
            message = "The provided topic name maps to an ID that was already supplied."
            results.append(_result(name, topic.topic_id, error_codes.INVALID_REQUEST, message))
        else:
            doomed[topic.topic_id] = name
    return doomed


def _result(name: str | None, topic_id: bytes, error_code: int, message: str | None = None) -> DeletableTopicResult:
    if error_code != error_codes.NONE and message is None:
        message = error_codes.message(error_code)
    return DeletableTopicResult(name=name, topic_id=topic_id, error_code=error_code, error_message=message)


API = Api(DeleteTopicsRequest, DeleteTopicsResponse, handle, error_responses.delete_topics, forwardable=True)
