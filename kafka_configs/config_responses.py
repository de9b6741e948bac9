"""DescribeConfigs responses from described configs, the same on controllers and brokers."""

from collections.abc import Iterable

from mockraft.kafka_configs.described_configs import DescribedConfig
from mockraft.wire import error_codes
from mockraft.wire.messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from mockraft.wire.messages.describe_configs_response import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)


def result(
    resource: DescribeConfigsResource, found: Iterable[DescribedConfig], *, include_synonyms: bool
) -> DescribeConfigsResult:
    """Return the result for one resource, with the requested configs only."""
    return DescribeConfigsResult(
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=[
            _entry(config, include_synonyms=include_synonyms)
            for config in found
            if not resource.configuration_keys or config.name in resource.configuration_keys
        ],
    )


def refused(resource: DescribeConfigsResource, error_code: int, message: str | None) -> DescribeConfigsResult:
    """Return an error result for one resource."""
    return DescribeConfigsResult(
        error_code=error_code,
        error_message=message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


def error(request: DescribeConfigsRequest, error_code: int, _message: str | None) -> DescribeConfigsResponse:
    """Return the error for each resource of the request, with the code's default message."""
    message = error_codes.message(error_code)
    return DescribeConfigsResponse(results=[refused(each, error_code, message) for each in request.resources])


def _entry(config: DescribedConfig, *, include_synonyms: bool) -> DescribeConfigsResourceResult:
    synonyms = [
        DescribeConfigsSynonym(name=each.name, value=each.value, source=each.source) for each in config.synonyms
    ]
    return DescribeConfigsResourceResult(
        name=config.name,
        value=config.value,
        read_only=config.is_read_only,
        config_source=config.source,
        is_sensitive=config.is_sensitive,
        synonyms=synonyms if include_synonyms else [],
        config_type=config.type,
        documentation=None,
    )
