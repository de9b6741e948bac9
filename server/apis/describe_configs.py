"""DescribeConfigs (32), versions 1-4: KIP-133, KIP-226 (synonyms), KIP-569 (types), KIP-714 and KIP-848 (resources).

A controller returns its own node's configs, those set for all brokers, topics, groups and client metrics; brokers
answer their clients themselves. Not implemented: the documentation of keys (null), loggers (there are none).
"""

from mockraft.kafka_configs import config_responses
from mockraft.kafka_configs.config_keys import BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP, RESOURCE_TYPES, TOPIC
from mockraft.kafka_configs.described_configs import DescribedConfig
from mockraft.server.apis.api import Api, RequestContext
from mockraft.server.apis.authorization import check_configs
from mockraft.server.controller.controller import Controller
from mockraft.server.controller.result import ApiError, invalid_request
from mockraft.server.controller.security.acl_types import AclOperation
from mockraft.server.controller.settings import described_configs
from mockraft.wire import error_codes
from mockraft.wire.java_values import parse_integer
from mockraft.wire.messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from mockraft.wire.messages.describe_configs_response import DescribeConfigsResponse, DescribeConfigsResult
from mockraft.wire.topic_names import reason_invalid


def handle(request: DescribeConfigsRequest, ctx: RequestContext, controller: Controller) -> DescribeConfigsResponse:
    """Return the configs of each resource, or its error."""
    if any(asked.resource_type not in RESOURCE_TYPES for asked in request.resources):
        raise ApiError(error_codes.INVALID_REQUEST)
    results, refused = [], []
    for asked in request.resources:
        try:
            check_configs(controller, ctx, AclOperation.DESCRIBE_CONFIGS, asked.resource_type, asked.resource_name)
            results.append(_result(controller, asked, request))
        except ApiError as refusal:
            refused.append(config_responses.refused(asked, refusal.error_code, refusal.message))
    return DescribeConfigsResponse(results=results + refused)


def _result(
    controller: Controller, asked: DescribeConfigsResource, request: DescribeConfigsRequest
) -> DescribeConfigsResult:
    try:
        found = _described(controller, asked.resource_type, asked.resource_name)
    except ApiError as refusal:
        return config_responses.refused(asked, refusal.error_code, refusal.message)
    return config_responses.result(asked, found, include_synonyms=request.include_synonyms)


def _described(controller: Controller, resource_type: int, name: str) -> list[DescribedConfig]:
    if resource_type == TOPIC:
        invalid = reason_invalid(name)
        if invalid is not None:
            raise ApiError(error_codes.INVALID_TOPIC_EXCEPTION, invalid)
        if name not in controller.image.topics.by_name:
            raise ApiError(error_codes.UNKNOWN_TOPIC_OR_PARTITION, "")
    elif resource_type == BROKER:
        if not name:
            return described_configs.describe_cluster_default(controller)
        _check_node(controller, name, "or empty string, ")
        return described_configs.describe_node(controller)
    elif resource_type == BROKER_LOGGER:
        if not name:
            raise invalid_request("Broker id must not be empty")
        _check_node(controller, name, "")
        return []
    elif not name:
        what = {CLIENT_METRICS: "Client metrics subscription", GROUP: "Group"}[resource_type]
        raise invalid_request(f"{what} name must not be empty")
    return described_configs.describe(controller, resource_type, name)


def _check_node(controller: Controller, name: str, or_what: str) -> None:
    named_id = parse_integer(name)
    if named_id is None:
        raise invalid_request(f"Broker id must be an integer, but it is: {name}")
    if named_id != controller.config.node_id:
        expected = f"{controller.config.node_id} {or_what}"
        raise invalid_request(f"Unexpected broker id, expected {expected}but received {name}")


API = Api(
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    handle,
    config_responses.error,
    active_only=False,
    reads_committed=True,
)
