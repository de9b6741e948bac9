"""AlterConfigs (33), versions 0-2: KIP-133. Keys that are not mentioned are deleted; hence KIP-339's other API."""

from collections.abc import Callable, Mapping

from mockraft.kafka_api import error_responses
from mockraft.kafka_api.authorization.acl_types import AclOperation
from mockraft.kafka_configs.config_keys import BROKER_LOGGER, resource_types
from mockraft.releases import Release
from mockraft.server.apis.api import Api, RequestContext
from mockraft.server.apis.authorization import check_configs
from mockraft.server.controller.controller import Controller
from mockraft.server.controller.result import (
    ApiError,
    ControllerResult,
    check_fits_one_batch,
    error_fields,
    invalid_request,
)
from mockraft.server.controller.settings import configs
from mockraft.wire import error_codes
from mockraft.wire.messages.alter_configs_request import AlterConfigsRequest
from mockraft.wire.messages.alter_configs_response import AlterConfigsResourceResponse, AlterConfigsResponse
from mockraft.wire.metadata_log_frame import RecordAt

Resource = tuple[int, str]
"""Type and name of a resource."""

Outcomes = list[tuple[Resource, ApiError | None]]


def handle(request: AlterConfigsRequest, ctx: RequestContext, controller: Controller) -> AlterConfigsResponse:
    """Replace each resource's configs, or return its error; all changes are one batch."""
    outcomes, resources = _requested(request, controller.release)
    change = configs.replace_resource
    outcomes += changed(controller, ctx, resources, change, "configs replaced", validate_only=request.validate_only)
    responses = [
        AlterConfigsResourceResponse(**error_fields(refusal), resource_type=resource_type, resource_name=name)
        for (resource_type, name), refusal in outcomes
    ]
    return AlterConfigsResponse(responses=responses)


def changed(
    controller: Controller,
    ctx: RequestContext,
    resources: Mapping[Resource, object],
    change: Callable[..., list[RecordAt]],
    reason: str,
    *,
    validate_only: bool,
) -> Outcomes:
    """Change the configs of resources in one batch; `change` makes the records of one with its values or changes."""
    outcomes: Outcomes = []
    records: list[RecordAt] = []
    node = configs.validating_node(controller)
    for resource, wanted in resources.items():
        try:
            check_configs(controller, ctx, AclOperation.ALTER_CONFIGS, *resource)
            records += change(controller, resource, wanted, node, forwarded=ctx.forwarded)
            outcomes.append((resource, None))
        except configs.BrokenOperationError:
            raise
        except ApiError as refusal:
            outcomes.append((resource, refusal.kept()))
    records += configs.clear_elr_records(controller, records)
    check_fits_one_batch(records)
    if not validate_only:
        controller.commit(ControllerResult(records, None, reason if records else ""), ctx.now_ms)
    return outcomes


def _requested(request: AlterConfigsRequest, of: Release) -> tuple[Outcomes, dict[Resource, dict[str, str | None]]]:
    """Return early errors, and the values by resource and key."""
    refused: Outcomes = []
    resources: dict[Resource, dict[str, str | None]] = {}
    seen: set[Resource] = set()
    for requested in request.resources:
        resource = (requested.resource_type, requested.resource_name)
        if requested.resource_type not in resource_types(of):
            message = f"Unknown resource type {requested.resource_type}."
            refused.append((resource, ApiError(error_codes.UNSUPPORTED_VERSION, message)))
        elif resource not in seen:
            seen.add(resource)
            resources[resource] = {each.name: each.value for each in requested.configs}
        elif resources.pop(resource, None) is not None:
            refused.append((resource, invalid_request("Duplicate resource.")))
    for resource in [each for each in resources if each[0] == BROKER_LOGGER]:
        del resources[resource]
        refused.append((resource, invalid_request("Unexpected resource type BROKER_LOGGER.")))
    return refused, resources


API = Api(AlterConfigsRequest, AlterConfigsResponse, handle, error_responses.alter_configs, forwardable=True)
