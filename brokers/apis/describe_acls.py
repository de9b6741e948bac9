"""DescribeAcls (29), versions 1-3: KIP-140, KIP-290. From the image (AclApis.handleDescribeAcls)."""

from __future__ import annotations

from mockraft.brokers.apis.api import Api, ApiError, Need, RequestContext
from mockraft.kafka_api.authorization.acl_filter import described, filter_of, validate_filter
from mockraft.kafka_api.authorization.acl_types import AclOperation
from mockraft.wire import error_codes
from mockraft.wire.messages.describe_acls_request import DescribeAclsRequest
from mockraft.wire.messages.describe_acls_response import DescribeAclsResponse


def handle(request: DescribeAclsRequest, ctx: RequestContext) -> DescribeAclsResponse:
    """Return the ACLs that match the filter, by resource pattern."""
    if ctx.broker.config.authorizer is None:
        raise ApiError(error_codes.SECURITY_DISABLED, "No Authorizer is configured on the broker")
    acls, wanted = ctx.image.acls.values(), filter_of(request)
    return described(acl for acl in acls if wanted.matches(acl))


_NEEDS = (Need(AclOperation.DESCRIBE),)
API = Api(DescribeAclsRequest, DescribeAclsResponse, handle, validate=validate_filter, needs=_NEEDS)
