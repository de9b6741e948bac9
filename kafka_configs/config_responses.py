"""DescribeConfigs responses out of described configs, the same on controllers and brokers."""

from collections.abc import Iterable
from typing import Any

from mockraft.kafka_configs.described_configs import DescribedConfig
from mockraft.wire import error_codes
from mockraft.wire.messages.describe_configs_response import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)


def result(asked: Any, found: Iterable[DescribedConfig], *, include_synonyms: bool) -> DescribeConfigsResult:
    """The configs of one resource, those alone that were asked for."""
    return DescribeConfigsResult(
        resource_type=asked.resource_type,
        resource_name=asked.resource_name,
        configs=[
            _entry(config, include_synonyms=include_synonyms)
            for config in found
            if not asked.configuration_keys or config.name in asked.configuration_keys
        ],
    )


def refused(asked: Any, error_code: int, message: str | None) -> DescribeConfigsResult:
    """Why one resource has no configs to tell."""
    return DescribeConfigsResult(
        error_code=error_code,
        error_message=message,
        resource_type=asked.resource_type,
        resource_name=asked.resource_name,
    )


def error(request: Any, error_code: int, _message: str | None) -> DescribeConfigsResponse:
    """The error for each resource of the request, in the code's own words."""
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
