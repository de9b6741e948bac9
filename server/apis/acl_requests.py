"""What the requests about ACLs have in common: filters, and that there must be an authorizer."""

from typing import Any

from mockraft.server.controller.acl_types import AclOperation, PatternType, PermissionType, ResourceType
from mockraft.server.controller.acls import AclFilter, known
from mockraft.server.controller.controller import Controller
from mockraft.server.controller.result import ApiError
from mockraft.wire import error_codes
from mockraft.wire.errors import WireError


def check_has_authorizer(controller: Controller, message: str) -> None:
    """ApiError SECURITY_DISABLED where nobody is ever refused anything."""
    if controller.authorizer is None:
        raise ApiError(error_codes.SECURITY_DISABLED, message)


def filter_of(asked: Any) -> AclFilter:
    """The filter of a DescribeAclsRequest, or of one filter in a DeleteAclsRequest."""
    return AclFilter(
        known(ResourceType, asked.resource_type_filter),
        asked.resource_name_filter,
        known(PatternType, asked.pattern_type_filter),
        asked.principal_filter,
        asked.host_filter,
        known(AclOperation, asked.operation),
        known(PermissionType, asked.permission_type),
    )


def validate_filter(asked: Any) -> None:
    """WireError for what Kafka's request classes refuse to be made of: a part that says UNKNOWN, which is 0."""
    if 0 in (asked.resource_type_filter, asked.pattern_type_filter, asked.operation, asked.permission_type):
        raise WireError("a filter of ACLs with UNKNOWN elements")
