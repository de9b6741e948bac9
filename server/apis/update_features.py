"""UpdateFeatures (57), versions 0-2: KIP-584, KIP-778 (metadata.version), KIP-853 (kraft.version), KIP-966 (ELR).

Version 0 can only upgrade: Kafka's controller ignores `allowDowngrade`. The timeout is ignored too.
"""

from mockraft.server.apis.api import Api, RequestContext
from mockraft.server.controller.controller import Controller
from mockraft.server.controller.result import ApiError
from mockraft.server.controller.security.acl_types import AclOperation
from mockraft.server.controller.settings import feature_updates
from mockraft.server.controller.settings.feature_updates import FeatureUpdate
from mockraft.server.raft import voter_changes
from mockraft.wire import error_codes
from mockraft.wire.messages.update_features_request import UpdateFeaturesRequest
from mockraft.wire.messages.update_features_response import UpdatableFeatureResult, UpdateFeaturesResponse


def handle(request: UpdateFeaturesRequest, ctx: RequestContext, controller: Controller) -> UpdateFeaturesResponse:
    """Update all features, or none and return the error."""
    updates = {
        update.feature: FeatureUpdate(update.max_version_level, update.upgrade_type)
        for update in request.feature_updates
    }
    try:
        result = feature_updates.update_features(controller, updates)
    except ApiError as refusal:
        failed = "The update failed for all features since the following feature had an error: "
        raise ApiError(refusal.error_code, failed + (refusal.message or "null")) from refusal
    if not request.validate_only:
        if result.response != controller.log.kraft_version:
            voter_changes.upgrade_kraft_version(controller.raft, result.response, ctx.now_ms)
        controller.commit(result, ctx.now_ms)
    response = UpdateFeaturesResponse(error_message=None)
    if ctx.api_version <= 1:
        response.results = [
            UpdatableFeatureResult(feature=update.feature, error_message=error_codes.name(error_codes.NONE))
            for update in request.feature_updates
        ]
    return response


API = Api(UpdateFeaturesRequest, UpdateFeaturesResponse, handle, forwardable=True, operation=AclOperation.ALTER)
