"""ApiVersions (18): KIP-35, KIP-511 (client software), KIP-584 (features), KIP-1242 (cluster id and node id).

Answered from the registry, so it offers exactly what is served. Of APIs that the controller answers only the versions
that the controller has too are offered, once the forwarding channel has been opened (DefaultApiVersionManager); an API
that the controller lacks is left out. An unknown version of ApiVersions is answered in version 0 with
UNSUPPORTED_VERSION and the versions of ApiVersions alone. Below version 4 features whose range starts at level 0 are
left out (KAFKA-17492). A client that means another broker or cluster gets REBOOTSTRAP_REQUIRED (version 5).
"""

from __future__ import annotations

from mockraft.brokers.apis.api import Api, RequestContext
from mockraft.kafka_api.api import is_valid
from mockraft.releases import KRAFT_VERSION
from mockraft.wire import error_codes
from mockraft.wire.messages.api_versions_request import ApiVersionsRequest
from mockraft.wire.messages.api_versions_response import (
    ApiVersion,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)


def handle(request: ApiVersionsRequest, ctx: RequestContext) -> ApiVersionsResponse:
    """Return the APIs and features of this broker, or the error of an invalid request."""
    low, high = API.versions
    if not low <= ctx.api_version <= high:
        return error(request, error_codes.UNSUPPORTED_VERSION, None)
    if not is_valid(request, ctx.api_version):
        return error(request, error_codes.INVALID_REQUEST, None)
    config = ctx.broker.config
    meant = (request.cluster_id, request.node_id)
    if request.cluster_id is not None and meant != (config.cluster_id, config.broker_id):
        return error(request, error_codes.REBOOTSTRAP_REQUIRED, None)
    return ApiVersionsResponse(
        api_keys=_served(ctx),
        supported_features=[
            SupportedFeatureKey(name=name, min_version=low, max_version=high)
            for name, (low, high) in config.features.items()
            if ctx.api_version >= 4 or low > 0
        ],
        finalized_features=[
            FinalizedFeatureKey(name=name, min_version_level=level, max_version_level=level)
            for name, level in (ctx.image.features | {KRAFT_VERSION: _kraft_version(ctx)}).items()
            if level
        ],
        finalized_features_epoch=ctx.broker.observer.applied_offset,
    )


def error(_request: ApiVersionsRequest, error_code: int, _message: str | None) -> ApiVersionsResponse:
    """Return the error with no APIs; UNSUPPORTED_VERSION includes the versions of ApiVersions (KIP-511)."""
    low, high = API.versions
    only_this = error_code == error_codes.UNSUPPORTED_VERSION
    this = ApiVersion(api_key=API.api_key, min_version=low, max_version=high)
    return ApiVersionsResponse(error_code=error_code, api_keys=[this] if only_this else [])


def _served(ctx: RequestContext) -> list[ApiVersion]:
    theirs = ctx.broker.forwarding.api_versions
    served = []
    for api_key, api in ctx.broker.apis.items():
        low, high = api.versions
        if api.forwarded and theirs is not None:
            their_low, their_high = theirs.get(api_key, (0, -1))
            low, high = max(low, their_low), min(high, their_high)
        if low <= high:
            served.append(ApiVersion(api_key=api_key, min_version=low, max_version=high))
    return served


def _kraft_version(ctx: RequestContext) -> int:
    """Return the finalized kraft.version: the log holds the voters from level 1 on."""
    return 1 if ctx.broker.observer.voters else 0


API = Api(ApiVersionsRequest, ApiVersionsResponse, handle, error)
