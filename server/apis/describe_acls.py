"""DescribeAcls (29), versions 1-3: KIP-140 (the API), KIP-290 (pattern types, version 1).

A filter with UNKNOWN, 0, closes the connection (DescribeAclsRequest).
"""

from mockraft.kafka_api.authorization.acl_filter import described, filter_of, validate_filter
from mockraft.kafka_api.authorization.acl_types import AclOperation
from mockraft.server.apis.acl_requests import check_has_authorizer
from mockraft.server.apis.api import Api, RequestContext
from mockraft.server.controller.controller import Controller
from mockraft.server.controller.security.acls import matching_acls
from mockraft.wire.messages.describe_acls_request import DescribeAclsRequest
from mockraft.wire.messages.describe_acls_response import DescribeAclsResponse


def handle(request: DescribeAclsRequest, ctx: RequestContext, controller: Controller) -> DescribeAclsResponse:
    """Return the ACLs that match the filter, by resource pattern. ApiError SECURITY_DISABLED."""
    check_has_authorizer(controller, "No Authorizer is configured on the broker")
    return described(acl for _, acl in matching_acls(controller, filter_of(request)))


API = Api(
    DescribeAclsRequest,
    DescribeAclsResponse,
    handle,
    active_only=False,
    reads_committed=True,
    operation=AclOperation.DESCRIBE,
    validate=validate_filter,
)
