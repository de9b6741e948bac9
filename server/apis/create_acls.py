"""CreateAcls (30), versions 1-3: KIP-140 (the API), KIP-290 (prefixes, version 1).

An existing ACL is a success without a record. ANY and MATCH are for filters: one of them in any ACL fails the whole
request, and UNKNOWN, 0, closes the connection (AclApis, CreateAclsRequest).
"""

from mockraft.kafka_api import error_responses
from mockraft.kafka_api.authorization.acl_filter import known
from mockraft.kafka_api.authorization.acl_index import AccessControlEntry
from mockraft.kafka_api.authorization.acl_types import (
    CLUSTER_NAME,
    AclOperation,
    PatternType,
    PermissionType,
    ResourceType,
)
from mockraft.server.apis.acl_requests import check_has_authorizer
from mockraft.server.apis.api import Api, RequestContext
from mockraft.server.controller.controller import Controller
from mockraft.server.controller.result import ApiError, error_fields, invalid_request
from mockraft.server.controller.security.acls import create_acls
from mockraft.wire import error_codes
from mockraft.wire.errors import WireError
from mockraft.wire.messages.create_acls_request import AclCreation, CreateAclsRequest
from mockraft.wire.messages.create_acls_response import AclCreationResult, CreateAclsResponse


def validate(request: CreateAclsRequest) -> None:
    """Raise WireError for an ACL with an UNKNOWN value."""
    for requested in request.creations:
        if 0 in (
            requested.resource_type,
            requested.resource_pattern_type,
            requested.operation,
            requested.permission_type,
        ):
            raise WireError("an ACL with UNKNOWN elements")


def handle(request: CreateAclsRequest, ctx: RequestContext, controller: Controller) -> CreateAclsResponse:
    """Create each ACL, or return its error. ApiError SECURITY_DISABLED, UNKNOWN_SERVER_ERROR."""
    check_has_authorizer(controller, "No Authorizer is configured.")
    requested = [_entry(each) for each in request.creations]
    refusals = [_refusal(acl) for acl in requested]
    good = [acl for acl, refusal in zip(requested, refusals, strict=True) if refusal is None]
    created: list[ApiError | None]
    try:
        created = controller.commit(create_acls(controller, good), ctx.now_ms)
    except ApiError as too_many:
        created = [too_many] * len(good)
    answers = iter(created)
    return CreateAclsResponse(results=[_result(refusal or next(answers)) for refusal in refusals])


def _entry(requested: AclCreation) -> AccessControlEntry:
    acl = AccessControlEntry(
        resource_type=known(ResourceType, requested.resource_type),
        resource_name=requested.resource_name,
        pattern_type=known(PatternType, requested.resource_pattern_type),
        principal=requested.principal,
        host=requested.host,
        operation=known(AclOperation, requested.operation),
        permission_type=known(PermissionType, requested.permission_type),
    )
    if (
        acl.resource_type == ResourceType.ANY
        or acl.pattern_type in (PatternType.ANY, PatternType.MATCH)
        or acl.operation == AclOperation.ANY
        or acl.permission_type == PermissionType.ANY
    ):
        raise ApiError(error_codes.UNKNOWN_SERVER_ERROR)
    return acl


def _refusal(acl: AccessControlEntry) -> ApiError | None:
    if acl.resource_type == ResourceType.CLUSTER and acl.resource_name != CLUSTER_NAME:
        return invalid_request(f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}")
    if not acl.resource_name:
        return invalid_request("Invalid empty resource name")
    return None


def _result(refusal: ApiError | None) -> AclCreationResult:
    if refusal is None:
        return AclCreationResult()
    return AclCreationResult(**error_fields(refusal))


API = Api(
    CreateAclsRequest,
    CreateAclsResponse,
    handle,
    error_responses.create_acls,
    forwardable=True,
    operation=AclOperation.ALTER,
    validate=validate,
)
