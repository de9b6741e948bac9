"""ApiVersions (18), versions 0-5: KIP-35, KIP-511 (client software), KIP-584 (features), KIP-1242 (cluster, node).

Answered from the table of the offered APIs. An unknown version is read as version 0 and answered in version 0 with
UNSUPPORTED_VERSION and the versions of ApiVersions alone (KIP-511). Below version 4 supported features that may be at
level 0 are left out (KAFKA-17492). A controller does not compare the cluster id and node id of version 5: only brokers
answer REBOOTSTRAP_REQUIRED. Not implemented: throttling.
"""

from mockraft.kafka_api.api import is_valid
from mockraft.releases import KRAFT_VERSION
from mockraft.server.apis.api import AnyApi, Api, RequestContext
from mockraft.server.controller.controller import Controller
from mockraft.wire import error_codes
from mockraft.wire.messages.api_versions_request import ApiVersionsRequest
from mockraft.wire.messages.api_versions_response import (
    ApiVersion,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

_CONTROLLED_SHUTDOWN = 7


def handle(request: ApiVersionsRequest, ctx: RequestContext, controller: Controller) -> ApiVersionsResponse:
    """Return the APIs and features of this controller, or an error for an invalid request."""
    own = ctx.apis[API.api_key]
    if not own.min_version <= ctx.api_version <= own.max_version:
        return ApiVersionsResponse(error_code=error_codes.UNSUPPORTED_VERSION, api_keys=[_versions(API.api_key, own)])
    if not is_valid(request, ctx.api_version):
        return ApiVersionsResponse(error_code=error_codes.INVALID_REQUEST)
    finalized = controller.image.features | {KRAFT_VERSION: controller.log.kraft_version}
    # SimpleApiVersionManager takes the features by this option, not by unstable.feature.versions.enable.
    features = controller.release.feature_ranges(unstable=controller.config.unstable_api_versions_enable)
    return ApiVersionsResponse(
        api_keys=_listed(ctx, controller),
        supported_features=[
            SupportedFeatureKey(name=name, min_version=low, max_version=high)
            for name, (low, high) in features.items()
            if ctx.api_version >= 4 or low > 0
        ],
        finalized_features=[
            FinalizedFeatureKey(name=name, min_version_level=level, max_version_level=level)
            for name, level in finalized.items()
            if level != 0 and name in features
        ],
        finalized_features_epoch=controller.features_epoch,
    )


def _listed(ctx: RequestContext, controller: Controller) -> list[ApiVersion]:
    """Return the offered APIs in order; before 4.0 also the one that Kafka lists and no controller handles."""
    listed = [_versions(api_key, api) for api_key, api in ctx.apis.items()]
    never_handled = controller.release.api_versions.get(_CONTROLLED_SHUTDOWN)
    if never_handled is not None:
        low, high = never_handled
        listed.append(ApiVersion(api_key=_CONTROLLED_SHUTDOWN, min_version=low, max_version=high))
    return sorted(listed, key=lambda each: each.api_key)


def _versions(api_key: int, api: AnyApi) -> ApiVersion:
    return ApiVersion(api_key=api_key, min_version=api.min_version, max_version=api.max_version)


API = Api(ApiVersionsRequest, ApiVersionsResponse, handle, active_only=False)
