"""ACLs: the records that add and remove them, and filters (AclControlManager).

Types, patterns, operations and permissions that Kafka does not know count as UNKNOWN, as they do in its enums.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from mockraft.kafka_api.authorization.acl_filter import AclFilter
from mockraft.kafka_api.authorization.acl_index import AccessControlEntry
from mockraft.kafka_api.authorization.acl_types import AclOperation, PatternType, PermissionType, ResourceType
from mockraft.kafka_api.authorization.host_ranges import is_range, parse_range
from mockraft.releases import Behaviour
from mockraft.server.controller.result import (
    RECORDS_PER_BATCH_MAX,
    ApiError,
    ControllerResult,
    check_fits_one_batch,
    invalid_request,
)
from mockraft.wire import error_codes
from mockraft.wire.directory_ids import draw_uuid
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.records.remove_access_control_entry_record import RemoveAccessControlEntryRecord

if TYPE_CHECKING:
    from mockraft.server.controller.context import ControllerContext


def matching_acls(controller: ControllerContext, acl_filter: AclFilter) -> Iterator[tuple[bytes, AccessControlEntry]]:
    """Return the matching ACLs with their ids, in the order of their creation."""
    return ((acl_id, acl) for acl_id, acl in controller.image.security.acls.items() if acl_filter.matches(acl))


def create_acls(
    controller: ControllerContext, requested: Sequence[AccessControlEntry]
) -> ControllerResult[list[ApiError | None]]:
    """Generate records of new ACLs, one batch, and for each ACL None or an error.

    ApiError POLICY_VIOLATION for all of them when they are too much for one batch.
    """
    security = controller.image.security
    records: dict[AccessControlEntry, RecordAt] = {}
    results: list[ApiError | None] = []
    for acl in requested:
        refusal = _refusal(acl) or _host_refusal(controller, acl.host)
        results.append(refusal)
        if refusal is None and acl not in security.acl_index and acl not in records:
            acl_id = draw_uuid(controller.rng)
            while acl_id in security.acls:
                acl_id = draw_uuid(controller.rng)
            records[acl] = acl.to_record(acl_id)
    check_fits_one_batch(records)
    return ControllerResult(list(records.values()), results, "ACLs created" if records else "")


def delete_acls(
    controller: ControllerContext, filters: Sequence[AclFilter]
) -> ControllerResult[list[list[AccessControlEntry] | ApiError]]:
    """Generate records that remove all matching ACLs, one batch, and for each filter its matches.

    ApiError INVALID_REQUEST for all of them when they are too much for one batch.
    """
    removed: dict[bytes, RecordAt] = {}
    results: list[list[AccessControlEntry] | ApiError] = []
    for acl_filter in filters:
        if not acl_filter.resource_type or not acl_filter.pattern_type:
            results.append(invalid_request("Unknown patternFilter."))
            continue
        if not acl_filter.operation or not acl_filter.permission_type:
            results.append(invalid_request("Unknown entryFilter."))
            continue
        found = []
        for acl_id, acl in matching_acls(controller, acl_filter):
            if len(removed) >= RECORDS_PER_BATCH_MAX:
                raise invalid_request(
                    f"Cannot remove more than {RECORDS_PER_BATCH_MAX} acls in a single delete operation."
                )
            removed[acl_id] = RecordAt(RemoveAccessControlEntryRecord(id=acl_id), 0)
            found.append(acl)
        results.append(found)
    return ControllerResult(list(removed.values()), results, "ACLs deleted" if removed else "")


def _host_refusal(controller: ControllerContext, host: str) -> ApiError | None:
    """Return the error in the host of a new ACL, if any (AclControlManager.validateHostPattern)."""
    if not controller.has(Behaviour.ACL_HOSTS_ARE_RANGES):
        return None
    if not host:
        return invalid_request("Host pattern cannot be null or empty")
    if not is_range(host):
        return None
    if not controller.has(Behaviour.ACL_RANGES):
        versions = controller.release.metadata_versions.values()
        since = next(each.name for each in versions if each.has(Behaviour.ACL_RANGES))
        message = f"CIDR-based ACL host patterns require metadata version {since} or higher."
        return ApiError(error_codes.UNSUPPORTED_VERSION, message)
    try:
        parse_range(host)
    except ValueError as error:
        return invalid_request(f"Invalid CIDR notation '{host}': {error}")
    return None


def _refusal(acl: AccessControlEntry) -> ApiError | None:
    """Return the error in a new ACL, if any (AclControlManager.validateNewAcl)."""
    if acl.resource_type in (ResourceType.UNKNOWN, ResourceType.ANY):
        return invalid_request(f"Invalid resourceType {ResourceType(acl.resource_type).name}")
    if acl.pattern_type not in (PatternType.LITERAL, PatternType.PREFIXED):
        return invalid_request(f"Invalid patternType {PatternType(acl.pattern_type).name}")
    if acl.operation in (AclOperation.UNKNOWN, AclOperation.ANY):
        return invalid_request(f"Invalid operation {AclOperation(acl.operation).name}")
    if acl.permission_type not in (PermissionType.DENY, PermissionType.ALLOW):
        return invalid_request(f"Invalid permissionType {PermissionType(acl.permission_type).name}")
    if not acl.resource_name:
        return invalid_request("Resource name should not be empty")
    if ":" not in acl.principal:
        return invalid_request(
            f"Could not parse principal from `{acl.principal}` "
            "(no colon is present separating the principal type from the principal name)"
        )
    return None
