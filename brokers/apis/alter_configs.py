"""AlterConfigs (33) and IncrementalAlterConfigs (44): KIP-133, KIP-339. Validated here, then forwarded.

Resources that this broker rejects are answered here; the others are forwarded to the controller in a new request. Both
answers are merged in the order of the request (ConfigAdminManager.reassembleIncrementalResponse).
"""

from __future__ import annotations

from typing import Any

from mockraft.brokers.apis import config_changes
from mockraft.brokers.apis.api import AnyApi, Api, ApiError, Parked, RequestContext
from mockraft.brokers.forwarding import frame_of
from mockraft.kafka_configs.config_keys import BROKER_LOGGER
from mockraft.wire import error_codes, messages


def _api(name: str, *, incremental: bool) -> AnyApi:
    request_class: Any = messages.by_name(f"{name}Request")
    response_class: Any = messages.by_name(f"{name}Response")
    module: Any = __import__(response_class.__module__, fromlist=["AlterConfigsResourceResponse"])
    said_of_resource = module.AlterConfigsResourceResponse

    def response_for(resource: Any, code: int, message: str | None) -> Any:
        return said_of_resource(
            error_code=code,
            error_message=message,
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
        )

    def handle(request: Any, ctx: RequestContext) -> Any:
        results: dict[config_changes.Key, tuple[int, str | None]] = {}
        for key, refusal in config_changes.refused_twice(request.resources).items():
            results[key] = (refusal.error_code, refusal.message)
        rest = []
        for resource in request.resources:
            key = (resource.resource_type, resource.resource_name)
            if key in results:
                continue
            try:
                config_changes.check(resource, ctx, incremental=incremental)
            except ApiError as refusal:
                results[key] = (refusal.error_code, refusal.message)
            else:
                if resource.resource_type == BROKER_LOGGER:
                    results[key] = (error_codes.NONE, None)
                else:
                    rest.append(resource)
        if not rest:
            return merged(request, results)
        remaining = request_class(resources=rest, validate_only=request.validate_only)
        parked = ctx.broker.forwarding.forward(api, ctx, frame_of(remaining, ctx))

        def retry(now_ms: int, expired: bool) -> Any:
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

    def merged(request: Any, results: dict[config_changes.Key, tuple[int, str | None]]) -> Any:
        missing = (error_codes.UNKNOWN_SERVER_ERROR, None)
        keys = [(each.resource_type, each.resource_name) for each in request.resources]
        return response_class(
            responses=[
                response_for(each, *results.get(key, missing))
                for key, each in zip(keys, request.resources, strict=True)
            ]
        )

    def error(request: Any, error_code: int, message: str | None) -> Any:
        return response_class(responses=[response_for(each, error_code, message) for each in request.resources])

    api = Api(request_class, response_class, handle, error, forwarded=True)
    return api


APIS = [_api("AlterConfigs", incremental=False), _api("IncrementalAlterConfigs", incremental=True)]
