"""AlterConfigs (33), versions 0-2: KIP-133. What is not mentioned is deleted; KIP-339 therefore made another API."""

from typing import Any

from mockraft.kafka_configs.config_keys import BROKER_LOGGER, RESOURCE_TYPES
from mockraft.server.apis.api import Api, RequestContext
from mockraft.server.apis.authorization import check_configs
from mockraft.server.controller import configs
from mockraft.server.controller.acl_types import AclOperation
from mockraft.server.controller.controller import Controller
from mockraft.server.controller.result import ApiError, ControllerResult, check_fits_one_batch
from mockraft.wire import error_codes
from mockraft.wire.messages.alter_configs_request import AlterConfigsRequest
from mockraft.wire.messages.alter_configs_response import AlterConfigsResourceResponse, AlterConfigsResponse
from mockraft.wire.metadata_log_frame import RecordAt

Responses = list[AlterConfigsResourceResponse]
Resources = dict[tuple[int, str], dict[str, str | None]]


def handle(request: Any, ctx: RequestContext, controller: Controller) -> AlterConfigsResponse:
    """Each resource changed as a whole, or why not; all changes are one batch."""
    responses, resources = _asked(request)
    records: list[RecordAt] = []
    for resource, values in resources.items():
        try:
            check_configs(controller, ctx, AclOperation.ALTER_CONFIGS, *resource)
            records += configs.replace_resource(controller, *resource, values, forwarded=ctx.forwarded)
            responses.append(_response(*resource))
        except ApiError as refusal:
            responses.append(_response(*resource, refusal))
    records += configs.clear_elr_records(controller, records)
    check_fits_one_batch(records)
    if not request.validate_only:
        controller.commit(ControllerResult(records, None, "configs replaced" if records else ""), ctx.now_ms)
    return AlterConfigsResponse(responses=responses)


def error(request: Any, error_code: int, message: str | None) -> AlterConfigsResponse:
    """The error for each resource of the request."""
    refusal = ApiError(error_code, message)
    return AlterConfigsResponse(
        responses=[_response(each.resource_type, each.resource_name, refusal) for each in request.resources]
    )


def _asked(request: Any) -> tuple[Responses, Resources]:
    """What is refused at once, and the values by resource and key."""
    refused: Responses = []
    resources: Resources = {}
    seen: set[tuple[int, str]] = set()
    for asked in request.resources:
        resource = (asked.resource_type, asked.resource_name)
        if asked.resource_type not in RESOURCE_TYPES:
            message = f"Unknown resource type {asked.resource_type}."
            refused.append(_response(*resource, ApiError(error_codes.UNSUPPORTED_VERSION, message)))
        elif resource not in seen:
            seen.add(resource)
            resources[resource] = {each.name: each.value for each in asked.configs}
        elif resources.pop(resource, None) is not None:
            refused.append(_response(*resource, ApiError(error_codes.INVALID_REQUEST, "Duplicate resource.")))
    for resource in [each for each in resources if each[0] == BROKER_LOGGER]:
        del resources[resource]
        message = "Unexpected resource type BROKER_LOGGER."
        refused.append(_response(*resource, ApiError(error_codes.INVALID_REQUEST, message)))
    return refused, resources


def _response(resource_type: int, name: str, refusal: ApiError | None = None) -> AlterConfigsResourceResponse:
    return AlterConfigsResourceResponse(
        error_code=error_codes.NONE if refusal is None else refusal.error_code,
        error_message=None if refusal is None else refusal.message,
        resource_type=resource_type,
        resource_name=name,
    )


API = Api(
    request=AlterConfigsRequest,
    response=AlterConfigsResponse,
    handle=handle,
    min_version=0,
    max_version=2,
    error=error,
    forwardable=True,
)
