"""IncrementalAlterConfigs (44), versions 0-1: KIP-339, KIP-412 (loggers), KIP-714 and KIP-848 (their resources)."""

from mockraft.kafka_api import error_responses
from mockraft.kafka_api.authorization.acl_types import AclOperation
from mockraft.kafka_configs import loggers
from mockraft.kafka_configs.config_keys import BROKER_LOGGER, resource_types
from mockraft.releases import Behaviour
from mockraft.server.apis.alter_configs import Outcomes, Resource, changed
from mockraft.server.apis.api import Api, RequestContext
from mockraft.server.apis.authorization import is_allowed_on_cluster
from mockraft.server.controller.controller import Controller
from mockraft.server.controller.result import ApiError, error_fields, invalid_request
from mockraft.server.controller.settings import configs
from mockraft.server.controller.settings.configs import ConfigOperation
from mockraft.wire import error_codes
from mockraft.wire.java_values import parse_integer
from mockraft.wire.messages.incremental_alter_configs_request import (
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from mockraft.wire.messages.incremental_alter_configs_response import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsResponse,
)


def handle(
    request: IncrementalAlterConfigsRequest, ctx: RequestContext, controller: Controller
) -> IncrementalAlterConfigsResponse:
    """Change each resource's configs, or return its error; all changes are one batch."""
    outcomes, resources, of_loggers = _requested(request, ctx, controller)
    change = configs.alter_resource
    outcomes += changed(controller, ctx, resources, change, "configs altered", validate_only=request.validate_only)
    responses = [
        AlterConfigsResourceResponse(**error_fields(refusal), resource_type=resource_type, resource_name=name)
        for (resource_type, name), refusal in outcomes + of_loggers
    ]
    return IncrementalAlterConfigsResponse(responses=responses)


def _requested(
    request: IncrementalAlterConfigsRequest, ctx: RequestContext, controller: Controller
) -> tuple[Outcomes, dict[Resource, dict[str, ConfigOperation]], Outcomes]:
    """Return early errors, the changes by resource and key, and the results of broker loggers."""
    refused: Outcomes = []
    resources: dict[Resource, dict[str, ConfigOperation]] = {}
    repeated: set[Resource] = set()
    of_loggers: Outcomes = []
    for requested in request.resources:
        resource = (requested.resource_type, requested.resource_name)
        if requested.resource_type == BROKER_LOGGER:
            try:
                _alter_loggers(requested, ctx, controller, validate_only=request.validate_only)
                of_loggers.append((resource, None))
            except ApiError as refusal:
                of_loggers.append((resource, refusal.kept()))
        elif requested.resource_type not in resource_types(controller.release):
            message = f"Unknown resource type {requested.resource_type}."
            refused.append((resource, ApiError(error_codes.UNSUPPORTED_VERSION, message)))
        elif resource in resources:
            del resources[resource]
            repeated.add(resource)
            refused.append((resource, invalid_request("Duplicate resource.")))
        elif resource not in repeated:
            resources[resource] = {
                each.name: ConfigOperation(each.config_operation, each.value) for each in requested.configs
            }
    return refused, resources, of_loggers


def _alter_loggers(
    resource: AlterConfigsResource, ctx: RequestContext, controller: Controller, *, validate_only: bool
) -> None:
    """Change log levels as RuntimeLoggerManager.applyChangesForResource; ApiError."""
    if not is_allowed_on_cluster(controller, ctx, AclOperation.CLUSTER_ACTION):
        code = error_codes.CLUSTER_AUTHORIZATION_FAILED
        raise ApiError(code, error_codes.message(code))
    node_id, named_id = controller.config.node_id, parse_integer(resource.resource_name)
    if named_id is None:
        raise invalid_request(f"Node id must be an integer, but it is: {resource.resource_name}")
    if named_id != node_id:
        raise invalid_request(f"Unexpected node id. Expected {node_id}, but received {named_id}")
    names_operations = controller.has(Behaviour.LOGGER_OPERATIONS_ARE_NAMED)
    loggers.alter(resource.configs, validate_only=validate_only, names_operations=names_operations)


API = Api(
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    handle,
    error_responses.incremental_alter_configs,
    forwardable=True,
)
