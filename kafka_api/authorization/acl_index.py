"""ACLs indexed by resource, so that a decision costs the same with a hundred ACLs and a hundred thousand."""

from collections import Counter
from dataclasses import dataclass
from itertools import product
from typing import Final, NamedTuple, Self

from mockraft.kafka_api.authorization.acl_types import WILDCARD, AclOperation, PatternType, PermissionType
from mockraft.kafka_api.authorization.host_ranges import is_in_range, is_range
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.records.access_control_entry_record import AccessControlEntryRecord

WILDCARD_PRINCIPAL: Final = "User:*"

_IMPLIED_BY: Final[dict[int, tuple[AclOperation, ...]]] = {
    AclOperation.DESCRIBE: (AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE, AclOperation.ALTER),
    AclOperation.DESCRIBE_CONFIGS: (AclOperation.ALTER_CONFIGS,),
}
"""Operations whose permission implies the key; a denial implies nothing (StandardAuthorizerData.findResult)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessControlEntry:
    """One ACL; types, patterns and operations are Kafka's numbers."""

    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission_type: int

    @classmethod
    def from_record(cls, record: AccessControlEntryRecord) -> Self:
        """Return the ACL of a record."""
        return cls(
            resource_type=record.resource_type,
            resource_name=record.resource_name,
            pattern_type=record.pattern_type,
            principal=record.principal,
            host=record.host,
            operation=record.operation,
            permission_type=record.permission_type,
        )

    def to_record(self, acl_id: bytes) -> RecordAt:
        """Return the record of this ACL."""
        return RecordAt(
            AccessControlEntryRecord(
                id=acl_id,
                resource_type=self.resource_type,
                resource_name=self.resource_name,
                pattern_type=self.pattern_type,
                principal=self.principal,
                host=self.host,
                operation=self.operation,
                permission_type=self.permission_type,
            ),
            0,
        )


class MatchingAcls(NamedTuple):
    """Result of a look-up of a resource's ACLs; `has_acls` is True if any ACL matches, of any principal."""

    denied: bool
    allowed: bool
    has_acls: bool


class _Rules(dict[tuple[str, str], tuple[int, int]]):
    """Bits of the denied and of the allowed operations, by (principal, host); `ranges` counts hosts that are ranges."""

    def __init__(self) -> None:
        self.ranges: Counter[str] = Counter()


class _Patterns:
    """The patterns of one resource type; `lengths` counts the prefixes of each length."""

    def __init__(self) -> None:
        self.literal: dict[str, _Rules] = {}
        self.prefixed: dict[str, _Rules] = {}
        self.lengths: Counter[int] = Counter()

    def of(self, acl: AccessControlEntry) -> dict[str, _Rules]:
        """Return the patterns of the ACL's type, by name."""
        return self.prefixed if acl.pattern_type == PatternType.PREFIXED else self.literal

    def matching(self, name: str) -> list[_Rules]:
        """Return the rules of each pattern that matches this name."""
        found = [self.literal[each] for each in {name, WILDCARD} if each in self.literal]
        for length in self.lengths:
            if length <= len(name):
                rules = self.prefixed.get(name[:length])
                if rules is not None:
                    found.append(rules)
        return found


class AclIndex:
    """Kafka's AclCache, by resource type, pattern, principal and host."""

    def __init__(self) -> None:
        self._by_type: dict[int, _Patterns] = {}

    def __contains__(self, acl: AccessControlEntry) -> bool:
        patterns = self._by_type.get(acl.resource_type)
        if patterns is None:
            return False
        rules = patterns.of(acl).get(acl.resource_name, _Rules())
        denied, allowed = rules.get((acl.principal, acl.host), (0, 0))
        asked_denied, asked_allowed = _bits(acl)
        return bool(denied & asked_denied | allowed & asked_allowed)

    def add(self, acl: AccessControlEntry) -> None:
        """Add an ACL; one that is there already changes nothing."""
        patterns = self._by_type.setdefault(acl.resource_type, _Patterns())
        by_name = patterns.of(acl)
        if acl.resource_name not in by_name and by_name is patterns.prefixed:
            patterns.lengths[len(acl.resource_name)] += 1
        rules = by_name.setdefault(acl.resource_name, _Rules())
        whose, denied, allowed = (acl.principal, acl.host), *_bits(acl)
        if is_range(acl.host) and whose not in rules:
            rules.ranges[acl.host] += 1
        old_denied, old_allowed = rules.get(whose, (0, 0))
        rules[whose] = old_denied | denied, old_allowed | allowed

    def remove(self, acl: AccessControlEntry) -> None:
        """Remove an ACL that was added."""
        patterns = self._by_type[acl.resource_type]
        by_name = patterns.of(acl)
        rules = by_name[acl.resource_name]
        whose, denied, allowed = (acl.principal, acl.host), *_bits(acl)
        old_denied, old_allowed = rules[whose]
        rules[whose] = old_denied & ~denied, old_allowed & ~allowed
        if rules[whose] != (0, 0):
            return
        del rules[whose]
        rules.ranges = rules.ranges - Counter((acl.host,))
        if rules:
            return
        del by_name[acl.resource_name]
        if by_name is patterns.prefixed:
            patterns.lengths[len(acl.resource_name)] -= 1
            patterns.lengths = +patterns.lengths

    def examples(self, resource_type: int) -> list[str]:
        """Return names of which one is allowed if any name is: a name without ACLs, and one of each pattern.

        That of a prefix has no literal pattern of its own (Authorizer.authorizeByResourceType).
        """
        patterns = self._by_type.get(resource_type, _Patterns())
        return ["hardcode", *patterns.literal, *(f"{prefix}\0" for prefix in patterns.prefixed)]

    def verdict(
        self, principal: str, host: str, operation: int, resource_type: int, resource_name: str, *, ranges: bool
    ) -> MatchingAcls:
        """Return the decision on an operation of the principal from this address on one resource.

        `ranges` is False for releases whose authorizer compares an ACL's host with the address only.
        """
        patterns = self._by_type.get(resource_type)
        matching = () if patterns is None else patterns.matching(resource_name)
        denied_by = 1 << operation | 1 << AclOperation.ALL
        allowed_by = denied_by
        for implying in _IMPLIED_BY.get(operation, ()):
            allowed_by |= 1 << implying
        allowed = False
        for rules in matching:
            hosts = [host, WILDCARD]
            if ranges:
                hosts += [each for each in rules.ranges if is_in_range(host, each)]
            for each in product((principal, WILDCARD_PRINCIPAL), hosts):
                denied_bits, allowed_bits = rules.get(each, (0, 0))
                if denied_bits & denied_by:
                    return MatchingAcls(denied=True, allowed=False, has_acls=True)
                allowed = allowed or bool(allowed_bits & allowed_by)
        return MatchingAcls(denied=False, allowed=allowed, has_acls=bool(matching))


def _bits(acl: AccessControlEntry) -> tuple[int, int]:
    bit = 1 << acl.operation
    return (0, bit) if acl.permission_type == PermissionType.ALLOW else (bit, 0)
