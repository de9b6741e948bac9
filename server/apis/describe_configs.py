"""DescribeConfigs (32), versions 1-4: KIP-133, KIP-226 (synonyms), KIP-569 (types), KIP-714 and KIP-848 (resources).

A controller returns its own node's configs, those set for all brokers, topics, groups and client metrics; brokers
answer their clients themselves. Not implemented: the documentation of keys (null).

A short request may name a resource with hundreds of configs many times. A response has at most as many configs as a
bulk request may have elements, and resources beyond that get POLICY_VIOLATION; Kafka has no such limit. Equal configs
are described and encoded once.
"""

from typing import Final, TypeAlias

from mockraft.kafka_api.authorization.acl_types import AclOperation
from mockraft.kafka_configs import config_responses, loggers
from mockraft.kafka_configs.config_keys import BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP, TOPIC, resource_types
from mockraft.kafka_configs.described_configs import DescribedConfig
from mockraft.server.apis.api import Api, RequestContext
from mockraft.server.apis.authorization import check_configs
from mockraft.server.controller.controller import Controller
from mockraft.server.controller.result import ApiError, invalid_request
from mockraft.server.controller.settings import described_configs
from mockraft.wire import error_codes
from mockraft.wire.java_values import parse_integer
from mockraft.wire.messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from mockraft.wire.messages.describe_configs_response import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from mockraft.wire.topic_names import reason_invalid

_Known: TypeAlias = dict[tuple[object, ...], list[DescribeConfigsResourceResult]]
"""Configs that were described for the same request, by their own values."""

_TOO_MANY: Final = "The response would have more than {} configs, request_elements_max: ask for fewer resources."


def handle(request: DescribeConfigsRequest, ctx: RequestContext, controller: Controller) -> DescribeConfigsResponse:
    """Return the configs of each resource, or its error."""
    if any(requested.resource_type not in resource_types(controller.release) for requested in request.resources):
        raise ApiError(error_codes.INVALID_REQUEST)
    results, refused = [], []
    known: _Known = {}
    left = configs_max = controller.config.bulk_elements_max
    for requested in request.resources:
        try:
            check_configs(
                controller, ctx, AclOperation.DESCRIBE_CONFIGS, requested.resource_type, requested.resource_name
            )
            result = _result(controller, requested, known, include_synonyms=request.include_synonyms)
            left -= len(result.configs)
            if left < 0:
                raise ApiError(error_codes.POLICY_VIOLATION, _TOO_MANY.format(configs_max))
            results.append(result)
        except ApiError as refusal:
            refused.append(config_responses.refused(requested, refusal.error_code, refusal.message))
    return config_responses.response(results + refused)


def _result(
    controller: Controller, requested: DescribeConfigsResource, known: _Known, *, include_synonyms: bool
) -> DescribeConfigsResult:
    resource_type, name = requested.resource_type, requested.resource_name
    try:
        _check(controller, resource_type, name)
    except ApiError as refusal:
        return config_responses.refused(requested, refusal.error_code, refusal.message)
    own = controller.image.configs.get((resource_type, name), {})
    key = resource_type, bool(name), tuple(own.items())
    described = known.get(key)
    if described is None:
        found = _described(controller, resource_type, name)
        described = known[key] = config_responses.entries(found, include_synonyms=include_synonyms)
    return config_responses.result(requested, described)


def _check(controller: Controller, resource_type: int, name: str) -> None:
    """Raise ApiError if there is no such resource."""
    if resource_type == TOPIC:
        invalid = reason_invalid(name)
        if invalid is not None:
            raise ApiError(error_codes.INVALID_TOPIC_EXCEPTION, invalid)
        if name not in controller.image.topics.by_name:
            raise ApiError(error_codes.UNKNOWN_TOPIC_OR_PARTITION, "")
    elif resource_type == BROKER:
        if name:
            _check_node(controller, name, "or empty string, ")
    elif resource_type == BROKER_LOGGER:
        if not name:
            raise invalid_request("Broker id must not be empty")
        _check_node(controller, name, "")
    elif not name:
        what = {CLIENT_METRICS: "Client metrics subscription", GROUP: "Group"}[resource_type]
        raise invalid_request(f"{what} name must not be empty")


def _described(controller: Controller, resource_type: int, name: str) -> list[DescribedConfig]:
    if resource_type == BROKER_LOGGER:
        return loggers.describe()
    if resource_type == BROKER:
        describe = described_configs.describe_node if name else described_configs.describe_cluster_default
        return describe(controller)
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
