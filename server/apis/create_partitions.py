"""CreatePartitions (37), versions 0-3: KIP-195 (the API), KIP-599 (version 3).

Repeated names are refused here, all else by the controller. A request with a timeout of zero expires before its turn
in Kafka's event queue; any other is done in time. From version 3 on a client over its controller mutation quota is
refused; before, it is only throttled.
"""

from collections import Counter
from typing import Final

from mockraft.kafka_api import error_responses
from mockraft.kafka_api.authorization.acl_types import AclOperation
from mockraft.server.apis.api import Api, RequestContext
from mockraft.server.apis.authorization import allowed_topics
from mockraft.server.apis.refusals import mutation_quota
from mockraft.server.controller.controller import Controller
from mockraft.server.controller.result import ApiError, error_fields, invalid_request
from mockraft.server.controller.topics.partition_creation import create_partitions
from mockraft.wire import error_codes
from mockraft.wire.java_values import in_hash_map_order
from mockraft.wire.messages.create_partitions_request import CreatePartitionsRequest
from mockraft.wire.messages.create_partitions_response import CreatePartitionsResponse, CreatePartitionsTopicResult

_VERSION_WITH_STRICT_QUOTA: Final = 3


def handle(request: CreatePartitionsRequest, ctx: RequestContext, controller: Controller) -> CreatePartitionsResponse:
    """Add partitions to each topic, or return its error; names are ordered as in Kafka's hash sets."""
    times = Counter(topic.name for topic in request.topics)
    repeated = in_hash_map_order({name: None for name, count in times.items() if count > 1})
    by_name = {topic.name: topic for topic in request.topics}
    single = [topic for name, topic in in_hash_map_order(by_name) if times[name] == 1]
    alterable = allowed_topics(controller, ctx, AclOperation.ALTER, [topic.name for topic in single])
    requested = [topic for topic in single if topic.name in alterable]
    quota = mutation_quota(controller, ctx, _VERSION_WITH_STRICT_QUOTA)
    duplicate = invalid_request("Duplicate topic name.")
    unauthorized = ApiError(error_codes.TOPIC_AUTHORIZATION_FAILED)
    outcomes: list[tuple[str, ApiError | None]] = [(name, duplicate) for name, _ in repeated]
    outcomes += [(topic.name, unauthorized) for topic in single if topic.name not in alterable]
    if requested:
        if request.timeout_ms <= 0:
            raise ApiError(error_codes.REQUEST_TIMED_OUT)
        result = create_partitions(controller, requested, quota)
        if request.validate_only:
            result.records.clear()
        outcomes += controller.commit(result, ctx.now_ms).items()
    results = [CreatePartitionsTopicResult(name=name, **error_fields(refusal)) for name, refusal in outcomes]
    return CreatePartitionsResponse(throttle_time_ms=quota.throttle_time_ms, results=results)


API = Api(
    CreatePartitionsRequest, CreatePartitionsResponse, handle, error_responses.create_partitions, forwardable=True
)
