"""ApiVersions (18): KIP-35, KIP-511 (client software), KIP-584 (features).

Answered from the registry, so it never promises more than is served. Of APIs that a controller answers only the
versions that it has, too, are offered, once the broker has asked it for something (DefaultApiVersionManager); an API
that it has not is left out. A version that nobody knows is answered in version 0 with UNSUPPORTED_VERSION and the
versions of ApiVersions alone. Below version 4 features that may be at level 0 are left out (KAFKA-17492).
"""

from __future__ import annotations

import re
from typing import Any

from mockraft.brokers.apis.api import Api, RequestContext
from mockraft.wire import error_codes
from mockraft.wire.messages.api_versions_request import ApiVersionsRequest
from mockraft.wire.messages.api_versions_response import (
    ApiVersion,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

KRAFT_VERSION = "kraft.version"

_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
"""ApiVersionsRequest.SOFTWARE_NAME_VERSION_PATTERN."""


async def handle(request: Any, ctx: RequestContext) -> Any:
    """The APIs and features of this broker, or what is wrong with the question."""
    low, high = API.versions
    if not low <= ctx.api_version <= high:
        return error(request, error_codes.UNSUPPORTED_VERSION, None)
    names = (request.client_software_name, request.client_software_version)
    if ctx.api_version >= 3 and not all(_SOFTWARE.fullmatch(name) for name in names):
        return error(request, error_codes.INVALID_REQUEST, None)
    return ApiVersionsResponse(
        api_keys=_served(ctx),
        supported_features=[
            SupportedFeatureKey(name=name, min_version=low, max_version=high)
            for name, (low, high) in ctx.broker.config.features.items()
            if ctx.api_version >= 4 or low > 0
        ],
        finalized_features=[
            FinalizedFeatureKey(name=name, min_version_level=level, max_version_level=level)
            for name, level in (*ctx.image.features.items(), (KRAFT_VERSION, _kraft_version(ctx)))
            if level
        ],
        finalized_features_epoch=ctx.broker.observer.applied_offset,
    )


def error(_request: Any, error_code: int, _message: str | None) -> Any:
    """The error with no APIs; UNSUPPORTED_VERSION names the versions of ApiVersions (KIP-511)."""
    low, high = API.versions
    only_this = error_code == error_codes.UNSUPPORTED_VERSION
    this = ApiVersion(api_key=API.api_key, min_version=low, max_version=high)
    return ApiVersionsResponse(error_code=error_code, api_keys=[this] if only_this else [])


def _served(ctx: RequestContext) -> list[ApiVersion]:
    from mockraft.brokers.apis.registry import APIS

    theirs = ctx.forwarding.api_versions
    served = []
    for api_key, api in APIS.items():
        low, high = api.versions
        if api.forwarded and theirs is not None:
            their_low, their_high = theirs.get(api_key, (0, -1))
            low, high = max(low, their_low), min(high, their_high)
        if low <= high:
            served.append(ApiVersion(api_key=api_key, min_version=low, max_version=high))
    return served


def _kraft_version(ctx: RequestContext) -> int:
    """Voters are in the log from kraft.version 1 on."""
    return 1 if ctx.broker.observer.voters else 0


API = Api(ApiVersionsRequest, ApiVersionsResponse, handle, error)
