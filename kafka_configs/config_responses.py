"""DescribeConfigs responses from described configs, the same on controllers and brokers."""

from collections.abc import Iterable
from typing import Final

from mockraft.kafka_configs.config_values import ConfigSource
from mockraft.kafka_configs.described_configs import DescribedConfig
from mockraft.wire import error_codes
from mockraft.wire.messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from mockraft.wire.messages.describe_configs_response import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from mockraft.wire.primitives import write_uvarint

SHARED_MIN: Final = 100
"""Number of results above which equal lists of configs are encoded once."""


class _SharedConfigs(DescribeConfigsResponse):
    """A response in which many results have the same list of configs, which is encoded once.

    Ten thousand topics have the same defaults, and a client may name one resource as often as a request has room.
    """

    __slots__ = ()

    def write(self, version: int) -> bytes:
        """Encode in a version: throttle time, results, each with its configs last, and tagged fields."""
        is_flexible = version >= self.flexible_from
        tags = b"\0" if is_flexible else b""
        no_configs = b"\1" if is_flexible else bytes(4)
        count = write_uvarint(len(self.results) + 1) if is_flexible else len(self.results).to_bytes(4, "big")
        encoded: dict[int, bytes] = {}
        parts = [self.throttle_time_ms.to_bytes(4, "big", signed=True), count]
        for each in self.results:
            alone = DescribeConfigsResult(
                error_code=each.error_code,
                error_message=each.error_message,
                resource_type=each.resource_type,
                resource_name=each.resource_name,
            )
            one = DescribeConfigsResponse(results=[alone]).write(version)
            head = one[4 + len(no_configs) : len(one) - len(no_configs) - 2 * len(tags)]
            configs = encoded.get(id(each.configs)) if each.configs else no_configs
            if configs is None:
                whole = DescribeConfigsResponse(results=[each]).write(version)
                start = len(one) - len(no_configs) - 2 * len(tags)
                configs = encoded[id(each.configs)] = whole[start : len(whole) - 2 * len(tags)]
            parts += (head, configs, tags)
        return b"".join((*parts, tags))


def response(results: list[DescribeConfigsResult]) -> DescribeConfigsResponse:
    """Return the response with these results, of which many may have the same list of configs."""
    kind = _SharedConfigs if len(results) > SHARED_MIN else DescribeConfigsResponse
    return kind(results=results)


def entries(found: Iterable[DescribedConfig], *, include_synonyms: bool) -> list[DescribeConfigsResourceResult]:
    """Return configs as they are in a result."""
    return [_entry(config, include_synonyms=include_synonyms) for config in found]


def result(resource: DescribeConfigsResource, described: list[DescribeConfigsResourceResult]) -> DescribeConfigsResult:
    """Return the result for one resource, with the requested configs only."""
    if resource.configuration_keys:
        wanted = frozenset(resource.configuration_keys)
        described = [config for config in described if config.name in wanted]
    return DescribeConfigsResult(
        resource_type=resource.resource_type, resource_name=resource.resource_name, configs=described
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
        DescribeConfigsSynonym(name=each.name, value=each.value, source=each.source)
        for each in config.synonyms
        if include_synonyms and each.source != ConfigSource.DYNAMIC_BROKER_LOGGER  # Kafka's loggers have none
    ]
    return DescribeConfigsResourceResult(
        name=config.name,
        value=config.value,
        read_only=config.is_read_only,
        config_source=config.source,
        is_sensitive=config.is_sensitive,
        synonyms=synonyms,
        config_type=config.type,
        documentation=None,
    )
