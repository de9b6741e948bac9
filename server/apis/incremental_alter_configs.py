"""IncrementalAlterConfigs (44), versions 0-1: KIP-339, KIP-412 (broker loggers), KIP-714 and KIP-848 (their resources).

Not implemented: a broker logger resource is checked for its name, and has no loggers.
"""

from mockraft.kafka_api import error_responses
from mockraft.kafka_api.authorization.acl_types import AclOperation
from mockraft.kafka_configs.config_keys import BROKER_LOGGER, resource_types
from mockraft.kafka_configs.config_values import Operation, invalid_config
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
    outcomes, resources, loggers = _requested(request, ctx, controller)
    change = configs.alter_resource
    outcomes += changed(controller, ctx, resources, change, "configs altered", validate_only=request.validate_only)
    responses = [
        AlterConfigsResourceResponse(**error_fields(refusal), resource_type=resource_type, resource_name=name)
        for (resource_type, name), refusal in outcomes + loggers
    ]
    return IncrementalAlterConfigsResponse(responses=responses)


def _requested(
    request: IncrementalAlterConfigsRequest, ctx: RequestContext, controller: Controller
) -> tuple[Outcomes, dict[Resource, dict[str, ConfigOperation]], Outcomes]:
    """Return early errors, the changes by resource and key, and the results of broker loggers."""
    refused: Outcomes = []
    resources: dict[Resource, dict[str, ConfigOperation]] = {}
    repeated: set[Resource] = set()
    loggers: Outcomes = []
    for requested in request.resources:
        resource = (requested.resource_type, requested.resource_name)
        if requested.resource_type == BROKER_LOGGER:
            loggers.append((resource, _logger_refusal(requested, ctx, controller)))
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
    return refused, resources, loggers


def _logger_refusal(resource: AlterConfigsResource, ctx: RequestContext, controller: Controller) -> ApiError | None:
    if not is_allowed_on_cluster(controller, ctx, AclOperation.CLUSTER_ACTION):
        code = error_codes.CLUSTER_AUTHORIZATION_FAILED
        return ApiError(code, error_codes.message(code))
    node_id = controller.config.node_id
    name = resource.resource_name
    named_id = parse_integer(name)
    if named_id is None:
        return invalid_request(f"Node id must be an integer, but it is: {name}")
    if named_id != node_id:
        return invalid_request(f"Unexpected node id. Expected {node_id}, but received {named_id}")
    for change in resource.configs:
        if change.config_operation in (Operation.SET, Operation.DELETE):
            return invalid_config(f"Logger {change.name} does not exist!")
        if change.config_operation not in (Operation.APPEND, Operation.SUBTRACT):
            if not controller.has(Behaviour.LOGGER_OPERATIONS_ARE_NAMED):
                code = error_codes.UNKNOWN_SERVER_ERROR
                return ApiError(code, error_codes.message(code))
            operation = f"Unknown operation type {change.config_operation}"
        else:
            operation = f"{Operation(change.config_operation).name} operation"
        return invalid_request(f"{operation} is not allowed for the BROKER_LOGGER resource")
    return None


API = Api(
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    handle,
    error_responses.incremental_alter_configs,
    forwardable=True,
)
