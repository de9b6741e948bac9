"""UpdateFeatures (57), versions 0-2: KIP-584, KIP-778 (metadata.version), KIP-853 (kraft.version), KIP-966 (ELR).

Version 0 can only upgrade: Kafka's controller ignores `allowDowngrade`. The timeout is ignored too.
"""

from collections.abc import Mapping

from mockraft.kafka_api.authorization.acl_types import AclOperation
from mockraft.releases import Behaviour
from mockraft.server.apis.api import Api, RequestContext
from mockraft.server.controller.controller import Controller
from mockraft.server.controller.result import ApiError, ControllerResult, error_fields
from mockraft.server.controller.settings import feature_updates
from mockraft.server.controller.settings.feature_updates import FeatureUpdate
from mockraft.server.raft import voter_changes
from mockraft.wire import error_codes
from mockraft.wire.messages.update_features_request import UpdateFeaturesRequest
from mockraft.wire.messages.update_features_response import UpdatableFeatureResult, UpdateFeaturesResponse


def handle(request: UpdateFeaturesRequest, ctx: RequestContext, controller: Controller) -> UpdateFeaturesResponse:
    """Update all features, or none and return the error; before Kafka 4.0 those that can be."""
    updates = {
        update.feature: FeatureUpdate(update.max_version_level, update.upgrade_type)
        for update in request.feature_updates
    }
    if not controller.has(Behaviour.FEATURES_FAIL_TOGETHER):
        return _one_by_one(request, ctx, controller, updates)
    try:
        result = feature_updates.update_features(controller, updates)
    except ApiError as refusal:
        failed = "The update failed for all features since the following feature had an error: "
        raise ApiError(refusal.error_code, failed + (refusal.message or "null")) from refusal
    if not request.validate_only:
        _commit(controller, result, ctx.now_ms)
    response = UpdateFeaturesResponse(error_message=None)
    if ctx.api_version <= 1:
        response.results = [
            UpdatableFeatureResult(feature=update.feature, error_message=error_codes.name(error_codes.NONE))
            for update in request.feature_updates
        ]
    return response


def _one_by_one(
    request: UpdateFeaturesRequest, ctx: RequestContext, controller: Controller, updates: Mapping[str, FeatureUpdate]
) -> UpdateFeaturesResponse:
    """Update each feature that can be, and return a result for each."""
    results = []
    for name, update in updates.items():
        try:
            result = feature_updates.update_features(controller, {name: update})
        except ApiError as refusal:
            results.append(UpdatableFeatureResult(feature=name, **error_fields(refusal)))
            continue
        if not request.validate_only:
            _commit(controller, result, ctx.now_ms)
        results.append(UpdatableFeatureResult(feature=name, error_message=None))
    return UpdateFeaturesResponse(error_message="", results=results)


def _commit(controller: Controller, result: ControllerResult[int], now_ms: int) -> None:
    if result.response != controller.log.kraft_version:
        voter_changes.upgrade_kraft_version(controller.raft, result.response, now_ms)
    controller.commit(result, now_ms)


API = Api(UpdateFeaturesRequest, UpdateFeaturesResponse, handle, forwardable=True, operation=AclOperation.ALTER)
