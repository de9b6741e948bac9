"""AlterConfigs (33), versions 0-2: KIP-133. Keys that are not mentioned are deleted; hence KIP-339's other API."""

from mockraft.kafka_configs.config_keys import BROKER_LOGGER, RESOURCE_TYPES
from mockraft.server.apis.api import Api, RequestContext
from mockraft.server.apis.authorization import check_configs
from mockraft.server.controller.controller import Controller
from mockraft.server.controller.result import ApiError, ControllerResult, check_fits_one_batch
from mockraft.server.controller.security.acl_types import AclOperation
from mockraft.server.controller.settings import configs
from mockraft.serving import error_responses
from mockraft.wire import error_codes
from mockraft.wire.messages.alter_configs_request import AlterConfigsRequest
from mockraft.wire.messages.alter_configs_response import AlterConfigsResourceResponse, AlterConfigsResponse
from mockraft.wire.metadata_log_frame import RecordAt

Responses = list[AlterConfigsResourceResponse]
Resources = dict[tuple[int, str], dict[str, str | None]]


def handle(request: AlterConfigsRequest, ctx: RequestContext, controller: Controller) -> AlterConfigsResponse:
    """Replace each resource's configs, or return its error; all changes are one batch."""
    responses, resources = _requested(request)
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


def _requested(request: AlterConfigsRequest) -> tuple[Responses, Resources]:
    """Return early errors, and the values by resource and key."""
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


API = Api(AlterConfigsRequest, AlterConfigsResponse, handle, error_responses.alter_configs, forwardable=True)
