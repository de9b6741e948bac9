"""DeleteAcls (31), versions 1-3: KIP-140 (the API), KIP-290 (pattern types, version 1).

A filter with UNKNOWN, 0, closes the connection (DeleteAclsRequest).
"""

from mockraft.kafka_api import error_responses
from mockraft.kafka_api.authorization.acl_filter import filter_of, validate_filter
from mockraft.kafka_api.authorization.acl_index import AccessControlEntry
from mockraft.kafka_api.authorization.acl_types import AclOperation
from mockraft.server.apis.acl_requests import check_has_authorizer
from mockraft.server.apis.api import Api, RequestContext
from mockraft.server.controller.controller import Controller
from mockraft.server.controller.result import ApiError, error_fields
from mockraft.server.controller.security.acls import delete_acls
from mockraft.wire.messages.delete_acls_request import DeleteAclsRequest
from mockraft.wire.messages.delete_acls_response import (
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsResponse,
)


def validate(request: DeleteAclsRequest) -> None:
    """Raise WireError for a filter with an UNKNOWN value."""
    for requested in request.filters:
        validate_filter(requested)


def handle(request: DeleteAclsRequest, ctx: RequestContext, controller: Controller) -> DeleteAclsResponse:
    """Delete the ACLs that match each filter and return them, or its error. ApiError SECURITY_DISABLED."""
    check_has_authorizer(controller, "No Authorizer is configured.")
    deleted = controller.commit(delete_acls(controller, [filter_of(each) for each in request.filters]), ctx.now_ms)
    return DeleteAclsResponse(filter_results=[_result(each) for each in deleted])


def _result(deleted: list[AccessControlEntry] | ApiError) -> DeleteAclsFilterResult:
    if isinstance(deleted, ApiError):
        return DeleteAclsFilterResult(**error_fields(deleted))
    matching = [
        DeleteAclsMatchingAcl(
            error_message=None,
            resource_type=acl.resource_type,
            resource_name=acl.resource_name,
            pattern_type=acl.pattern_type,
            principal=acl.principal,
            host=acl.host,
            operation=acl.operation,
            permission_type=acl.permission_type,
        )
        for acl in deleted
    ]
    return DeleteAclsFilterResult(error_message=None, matching_acls=matching)


API = Api(
    DeleteAclsRequest,
    DeleteAclsResponse,
    handle,
    error_responses.delete_acls,
    forwardable=True,
    operation=AclOperation.ALTER,
    validate=validate,
)
