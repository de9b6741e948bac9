"""DescribeConfigs (32), versions 1-4: KIP-133, KIP-226 (synonyms), KIP-569 (types), KIP-714 and KIP-848 (resources).

A broker describes its own configs and the dynamic configs of all brokers, topics, groups and client metrics
(ConfigHelper). Not modelled: documentation of keys (null).
"""

from __future__ import annotations

from typing import Final

from mockraft.brokers.apis.api import Api, ApiError, RequestContext, invalid
from mockraft.brokers.config import static_configs
from mockraft.kafka_api.authorization.acl_types import AclOperation, resource_of_configs
from mockraft.kafka_configs import config_responses, described_configs, loggers
from mockraft.kafka_configs.config_keys import BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP, RESOURCE_TYPES, TOPIC
from mockraft.kafka_configs.described_configs import DescribedConfig, Layers
from mockraft.wire import error_codes, topic_names
from mockraft.wire.java_values import parse_integer
from mockraft.wire.messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from mockraft.wire.messages.describe_configs_response import DescribeConfigsResponse, DescribeConfigsResult

_NAMELESS: Final = {CLIENT_METRICS: "Client metrics subscription", GROUP: "Group"}


def handle(request: DescribeConfigsRequest, ctx: RequestContext) -> DescribeConfigsResponse:
    """Return the configs of each resource, or its error."""
    if any(resource.resource_type not in RESOURCE_TYPES for resource in request.resources):
        raise ApiError(error_codes.INVALID_REQUEST)
    layers = layers_of(ctx)
    return DescribeConfigsResponse(results=[_result(resource, request, layers, ctx) for resource in request.resources])


def layers_of(ctx: RequestContext) -> Layers:
    """Return the sources of this broker's values."""
    config = ctx.broker.config
    own = ctx.image.config(BROKER, str(config.broker_id))
    return described_configs.layers_of(own, ctx.image.config(BROKER, ""), static_configs(config))


def _result(
    resource: DescribeConfigsResource, request: DescribeConfigsRequest, layers: Layers, ctx: RequestContext
) -> DescribeConfigsResult:
    try:
        ctx.check(AclOperation.DESCRIBE_CONFIGS, *resource_of_configs(resource.resource_type, resource.resource_name))
        found = _described(resource.resource_type, resource.resource_name, layers, ctx)
    except ApiError as refusal:
        text = error_codes.message(refusal.error_code) if refusal.message is None else refusal.message
        return config_responses.refused(resource, refusal.error_code, text)
    described = config_responses.entries(found, include_synonyms=request.include_synonyms)
    return config_responses.result(resource, described)


def _described(resource_type: int, name: str, layers: Layers, ctx: RequestContext) -> list[DescribedConfig]:
    if resource_type == TOPIC:
        reason = topic_names.reason_invalid(name)
        if reason is not None:
            raise ApiError(error_codes.INVALID_TOPIC_EXCEPTION, reason)
        if name not in ctx.image.topics_by_name:
            raise ApiError(error_codes.UNKNOWN_TOPIC_OR_PARTITION, "")
    elif resource_type == BROKER:
        if not name:
            return described_configs.describe_cluster_default(layers)
        _check_broker(ctx, name, "or empty string, ")
        return described_configs.describe_node(layers)
    elif resource_type == BROKER_LOGGER:
        if not name:
            raise invalid("Broker id must not be empty")
        _check_broker(ctx, name, "")
        return loggers.describe()
    elif not name:
        raise invalid(f"{_NAMELESS[resource_type]} name must not be empty")
    return described_configs.describe(layers, resource_type, ctx.image.config(resource_type, name))


def _check_broker(ctx: RequestContext, name: str, or_what: str) -> None:
    named_id = parse_integer(name)
    if named_id is None:
        raise invalid(f"Broker id must be an integer, but it is: {name}")
    if named_id != ctx.broker.config.broker_id:
        raise invalid(f"Unexpected broker id, expected {ctx.broker.config.broker_id} {or_what}but received {name}")


API = Api(DescribeConfigsRequest, DescribeConfigsResponse, handle, config_responses.error)
