"""Filters of ACLs in requests, and the response that describes what matches."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import NamedTuple, TypeVar

from mockraft.kafka_api.authorization.acl_index import AccessControlEntry
from mockraft.kafka_api.authorization.acl_types import WILDCARD, AclOperation, PatternType, PermissionType, ResourceType
from mockraft.wire.errors import WireError
from mockraft.wire.messages.delete_acls_request import DeleteAclsFilter
from mockraft.wire.messages.describe_acls_request import DescribeAclsRequest
from mockraft.wire.messages.describe_acls_response import AclDescription, DescribeAclsResource, DescribeAclsResponse

E = TypeVar("E", bound=IntEnum)


class AclFilter(NamedTuple):
    """Filter of ACLs (AclBindingFilter): null names, principals and hosts, and ANY, match all.

    The pattern type MATCH matches patterns, of either type, that would match the name.
    """

    resource_type: ResourceType
    resource_name: str | None
    pattern_type: PatternType
    principal: str | None
    host: str | None
    operation: AclOperation
    permission_type: PermissionType

    def matches(self, acl: AccessControlEntry) -> bool:
        """Return True if this ACL matches."""
        return (
            self.resource_type in (ResourceType.ANY, acl.resource_type)
            and self.principal in (None, acl.principal)
            and self.host in (None, acl.host)
            and self.operation in (AclOperation.ANY, acl.operation)
            and self.permission_type in (PermissionType.ANY, acl.permission_type)
            and self._matches_pattern(acl)
        )

    def _matches_pattern(self, acl: AccessControlEntry) -> bool:
        if self.pattern_type not in (PatternType.ANY, PatternType.MATCH, acl.pattern_type):
            return False
        if self.resource_name is None:
            return True
        if self.pattern_type != PatternType.MATCH:
            return self.resource_name == acl.resource_name
        if acl.pattern_type == PatternType.PREFIXED:
            return self.resource_name.startswith(acl.resource_name)
        return acl.resource_name in (self.resource_name, WILDCARD)


def known(kind: type[E], number: int) -> E:
    """Return the enum member of a number; that of 0, UNKNOWN, for an unknown one (fromCode)."""
    try:
        return kind(number)
    except ValueError:
        return kind(0)


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


def described(acls: Iterable[AccessControlEntry]) -> DescribeAclsResponse:
    """Return these ACLs by resource pattern."""
    resources: dict[tuple[int, str, int], DescribeAclsResource] = {}
    for acl in acls:
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
