"""AlterConfigs (33) and IncrementalAlterConfigs (44): KIP-133, KIP-339. Validated here, then forwarded.

Resources that this broker rejects are answered here; the others are forwarded to the controller in a new request. Both
answers are merged in the order of the request (ConfigAdminManager.reassembleIncrementalResponse).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from mockraft.brokers.apis import config_changes
from mockraft.brokers.apis.api import AnyApi, Api, ApiError, Parked, RequestContext
from mockraft.brokers.forwarding import frame_of
from mockraft.kafka_api import error_responses
from mockraft.kafka_configs.config_keys import BROKER_LOGGER
from mockraft.wire import error_codes
from mockraft.wire.messages.alter_configs_request import AlterConfigsRequest
from mockraft.wire.messages.alter_configs_response import AlterConfigsResponse
from mockraft.wire.messages.incremental_alter_configs_request import IncrementalAlterConfigsRequest
from mockraft.wire.messages.incremental_alter_configs_response import IncrementalAlterConfigsResponse

RequestT = TypeVar("RequestT", AlterConfigsRequest, IncrementalAlterConfigsRequest)
ResponseT = TypeVar("ResponseT", AlterConfigsResponse, IncrementalAlterConfigsResponse)


def _api(
    request_class: type[RequestT],
    response_class: type[ResponseT],
    error: Callable[[RequestT, int, str | None], ResponseT],
) -> Api[RequestT, ResponseT]:
    def handle(request: RequestT, ctx: RequestContext) -> ResponseT | Parked[ResponseT]:
        results: dict[config_changes.Key, tuple[int, str | None]] = {}
        for key, refusal in config_changes.refused_twice(request.resources).items():
            results[key] = (refusal.error_code, refusal.message)
        for resource in request.resources:
            key = (resource.resource_type, resource.resource_name)
            if key in results:
                continue
            try:
                config_changes.check(resource, ctx, validate_only=request.validate_only)
            except ApiError as refusal:
                results[key] = (refusal.error_code, refusal.message)
            else:
                if resource.resource_type == BROKER_LOGGER:
                    results[key] = (error_codes.NONE, None)
        rest = [each for each in request.resources if (each.resource_type, each.resource_name) not in results]
        if not rest:
            return merged(request, results)
        remaining = request_class(resources=rest, validate_only=request.validate_only)
        parked = ctx.broker.forwarding.forward(api, ctx, frame_of(remaining, ctx))

        def retry(now_ms: int, expired: bool) -> ResponseT | None:
            try:
                body = parked.retry(now_ms, expired)
            except ApiError as refusal:
                answer = error(remaining, refusal.error_code, refusal.message)
            else:
                if body is None:
                    return None
                answer = response_class.read(body, ctx.api_version)
            for each in answer.responses:
                results[each.resource_type, each.resource_name] = (each.error_code, each.error_message)
            return merged(request, results)

        return Parked(parked.deadline_ms, retry)

    def merged(request: RequestT, results: dict[config_changes.Key, tuple[int, str | None]]) -> ResponseT:
        response = error(request, error_codes.UNKNOWN_SERVER_ERROR, None)
        for each in response.responses:
            if (result := results.get((each.resource_type, each.resource_name))) is not None:
                each.error_code, each.error_message = result
        return response

    api: Api[RequestT, ResponseT] = Api(request_class, response_class, handle, error, forwarded=True)
    return api


APIS: Final[tuple[AnyApi, ...]] = (
    _api(AlterConfigsRequest, AlterConfigsResponse, error_responses.alter_configs),
    _api(IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse, error_responses.incremental_alter_configs),
)
