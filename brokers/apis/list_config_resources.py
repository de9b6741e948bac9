"""ListConfigResources (74): KIP-714 (client metrics), KIP-1142 (the other types).

Groups and client metrics subscriptions are listed when they have configs, brokers and topics when they exist.
"""

from __future__ import annotations

from mockraft.brokers.apis.api import Api, ApiError, Need, RequestContext
from mockraft.kafka_api.authorization.acl_types import AclOperation
from mockraft.wire import error_codes
from mockraft.wire.messages.list_config_resources_request import ListConfigResourcesRequest
from mockraft.wire.messages.list_config_resources_response import ConfigResource, ListConfigResourcesResponse

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
_IN_ORDER = (GROUP, CLIENT_METRICS, BROKER_LOGGER, BROKER, TOPIC)


def handle(request: ListConfigResourcesRequest, ctx: RequestContext) -> ListConfigResourcesResponse:
    """Return the resources of the requested types; of all types when none is named."""
    supported = {CLIENT_METRICS} if ctx.api_version == 0 else set(_IN_ORDER)
    wanted = set(request.resource_types) or supported
    if not wanted <= supported:
        raise ApiError(error_codes.UNSUPPORTED_VERSION)
    return ListConfigResourcesResponse(
        config_resources=[
            ConfigResource(resource_name=name, resource_type=kind)
            for kind in _IN_ORDER
            if kind in wanted
            for name in _names(kind, ctx)
        ]
    )


def _names(kind: int, ctx: RequestContext) -> list[str]:
    image = ctx.image
    if kind == TOPIC:
        return list(image.topics_by_name)
    if kind in (BROKER, BROKER_LOGGER):
        return [str(each) for each, broker in sorted(image.brokers.items()) if ctx.listener in broker.endpoints]
    return [name for of, name in image.configs if of == kind]


API = Api(ListConfigResourcesRequest, ListConfigResourcesResponse, handle, needs=(Need(AclOperation.DESCRIBE_CONFIGS),))
