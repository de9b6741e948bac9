"""CreateTopics (19), versions 2-7: KIP-4, KIP-464 (defaults), KIP-525 (configs), KIP-516 (topic ids).

Repeated names and `__cluster_metadata` are refused here, all else by the controller. A request with a timeout of zero
expires before its turn in Kafka's event queue; any other is done in time. CREATE on the cluster allows any topic; a
new topic's configs are returned to clients with DESCRIBE_CONFIGS on it. From version 6 on a client over its controller
mutation quota is refused (KIP-599); before, it is only throttled.
"""

from collections import Counter
from typing import Final

from mockraft.kafka_api import error_responses
from mockraft.kafka_api.authorization.acl_types import AclOperation
from mockraft.releases import Behaviour
from mockraft.server.apis.api import Api, RequestContext
from mockraft.server.apis.authorization import allowed_topics, is_allowed_on_cluster
from mockraft.server.apis.refusals import mutation_quota
from mockraft.server.controller.controller import Controller
from mockraft.server.controller.result import ApiError, error_fields, invalid_request
from mockraft.server.controller.topics import topics
from mockraft.server.controller.topics.topics import CreatedTopic
from mockraft.wire import error_codes
from mockraft.wire.messages.create_topics_request import CreateTopicsRequest
from mockraft.wire.messages.create_topics_response import (
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsResponse,
)
from mockraft.wire.topic_names import CLUSTER_METADATA

_VERSION_WITH_STRICT_QUOTA: Final = 6


def handle(request: CreateTopicsRequest, ctx: RequestContext, controller: Controller) -> CreateTopicsResponse:
    """Create each topic, or return its error."""
    named = Counter(topic.name for topic in request.topics)
    single = [name for name, times in named.items() if times == 1 and name != CLUSTER_METADATA]
    creatable = _creatable(controller, ctx, single)
    describable = allowed_topics(controller, ctx, AclOperation.DESCRIBE_CONFIGS, single)
    requested = [topic for topic in request.topics if topic.name in creatable]
    if requested and request.timeout_ms <= 0:
        raise ApiError(error_codes.REQUEST_TIMED_OUT)
    quota = mutation_quota(controller, ctx, _VERSION_WITH_STRICT_QUOTA)
    result = topics.create_topics(controller, requested, forwarded=ctx.forwarded, quota=quota)
    if request.validate_only:
        result.records.clear()
    made = controller.commit(result, ctx.now_ms)
    results = [_result(topic.name, made[topic.name], topic.name in describable) for topic in requested]
    results += [_result(name, invalid_request("Duplicate topic name.")) for name, times in named.items() if times > 1]
    unauthorized = ApiError(error_codes.TOPIC_AUTHORIZATION_FAILED, "Authorization failed.")
    if named[CLUSTER_METADATA] == 1:
        prohibited = invalid_request(f"Creation of internal topic {CLUSTER_METADATA} is prohibited.")
        is_invalid = controller.has(Behaviour.METADATA_TOPIC_IS_INVALID)
        results.append(_result(CLUSTER_METADATA, prohibited if is_invalid else unauthorized))
    results += [_result(name, unauthorized) for name in single if name not in creatable]
    return CreateTopicsResponse(throttle_time_ms=quota.throttle_time_ms, topics=results)


def _creatable(controller: Controller, ctx: RequestContext, names: list[str]) -> set[str]:
    if is_allowed_on_cluster(controller, ctx, AclOperation.CREATE):
        return set(names)
    return allowed_topics(controller, ctx, AclOperation.CREATE, names)


def _result(name: str, made: CreatedTopic | ApiError, is_describable: bool = True) -> CreatableTopicResult:
    if isinstance(made, ApiError):
        return CreatableTopicResult(name=name, **error_fields(made))
    if not is_describable:
        return CreatableTopicResult(
            name=name,
            topic_id=made.topic_id,
            error_message=None,
            topic_config_error_code=error_codes.TOPIC_AUTHORIZATION_FAILED,
        )
    return CreatableTopicResult(
        name=name,
        topic_id=made.topic_id,
        error_message=None,
        num_partitions=made.partitions,
        replication_factor=made.replication_factor,
        configs=[
            CreatableTopicConfigs(
                name=config.key.name,
                value=None if config.key.is_sensitive else config.value,
                config_source=config.source,
                is_sensitive=config.key.is_sensitive,
            )
            for config in made.configs
        ],
    )


API = Api(CreateTopicsRequest, CreateTopicsResponse, handle, error_responses.create_topics, forwardable=True)
