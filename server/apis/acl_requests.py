"""Shared parts of the ACL requests: filters, and the check that an authorizer is configured."""

from mockraft.server.controller.controller import Controller
from mockraft.server.controller.result import ApiError
from mockraft.server.controller.security.acl_types import AclOperation, PatternType, PermissionType, ResourceType
from mockraft.server.controller.security.acls import AclFilter, known
from mockraft.wire import error_codes
from mockraft.wire.errors import WireError
from mockraft.wire.messages.delete_acls_request import DeleteAclsFilter
from mockraft.wire.messages.describe_acls_request import DescribeAclsRequest


def check_has_authorizer(controller: Controller, message: str) -> None:
    """Raise ApiError SECURITY_DISABLED if there is no authorizer."""
    if controller.authorizer is None:
        raise ApiError(error_codes.SECURITY_DISABLED, message)


def filter_of(requested: DescribeAclsRequest | DeleteAclsFilter) -> AclFilter:
    """Return the filter of a DescribeAclsRequest, or of one filter in a DeleteAclsRequest."""
    return AclFilter(
        known(ResourceType, requested.resource_type_filter),
        requested.resource_name_filter,
        known(PatternType, requested.pattern_type_filter),
        requested.principal_filter,
        requested.host_filter,
        known(AclOperation, requested.operation),
        known(PermissionType, requested.permission_type),
    )


def validate_filter(requested: DescribeAclsRequest | DeleteAclsFilter) -> None:
    """Raise WireError for values that Kafka's request classes reject: UNKNOWN, which is 0."""
    if 0 in (
        requested.resource_type_filter,
        requested.pattern_type_filter,
        requested.operation,
        requested.permission_type,
    ):
        raise WireError("a filter of ACLs with UNKNOWN elements")
