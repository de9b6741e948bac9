"""DescribeAcls (29), versions 1-3: KIP-140 (the API), KIP-290 (pattern types, version 1).

A filter with UNKNOWN, 0, closes the connection (DescribeAclsRequest).
"""

from mockraft.server.apis.acl_requests import check_has_authorizer, filter_of, validate_filter
from mockraft.server.apis.api import Api, RequestContext
from mockraft.server.controller.controller import Controller
from mockraft.server.controller.security.acl_types import AclOperation
from mockraft.server.controller.security.acls import matching_acls
from mockraft.wire.messages.describe_acls_request import DescribeAclsRequest
from mockraft.wire.messages.describe_acls_response import AclDescription, DescribeAclsResource, DescribeAclsResponse


def handle(request: DescribeAclsRequest, ctx: RequestContext, controller: Controller) -> DescribeAclsResponse:
    """Return the ACLs that match the filter, by resource pattern. ApiError SECURITY_DISABLED."""
    check_has_authorizer(controller, "No Authorizer is configured on the broker")
    resources: dict[tuple[int, str, int], DescribeAclsResource] = {}
    for _, acl in matching_acls(controller, filter_of(request)):
        pattern = (acl.resource_type, acl.resource_name, acl.pattern_type)
        if pattern not in resources:
            resources[pattern] = DescribeAclsResource(
                resource_type=acl.resource_type, resource_name=acl.resource_name, pattern_type=acl.pattern_type
            )
        resources[pattern].acls.append(
            AclDescription(
                principal=acl.principal, host=acl.host, operation=acl.operation, permission_type=acl.permission_type
            )
        )
    return DescribeAclsResponse(resources=list(resources.values()))


API = Api(
    DescribeAclsRequest,
    DescribeAclsResponse,
    handle,
    active_only=False,
    reads_committed=True,
    operation=AclOperation.DESCRIBE,
    validate=validate_filter,
)
