"""Authorization decisions of Kafka's StandardAuthorizer, from the ACLs of the log."""

from collections.abc import Iterable

from mockraft.server.controller.image.acl_index import WILDCARD_PRINCIPAL, AclIndex
from mockraft.server.controller.result import ApiError
from mockraft.wire import error_codes


class Authorizer:
    """Decides from super users and ACLs; a denial takes precedence, and without a matching allowance access is denied.

    With `allow_everyone_if_no_acl_found`, resources without any ACL are accessible to all. Kafka's authorizer knows
    only its super users until it has loaded its ACLs; this one has them from the start. `ranges` says whether hosts of
    ACLs may be ranges of addresses.
    """

    def __init__(
        self, super_users: Iterable[str], *, allow_everyone_if_no_acl_found: bool, ranges: bool = True
    ) -> None:
        self.super_users = frozenset(super_users)
        self._allow_everyone_if_no_acl_found = allow_everyone_if_no_acl_found
        self._ranges = ranges

    def allows(
        self, acls: AclIndex, principal: str, host: str, operation: int, resource_type: int, resource_name: str
    ) -> bool:
        """Return True if the principal (`Type:name`) may do this from this host, an address in Java's text form.

        ApiError UNKNOWN_SERVER_ERROR for a principal called `User:*`.
        """
        if principal in self.super_users:
            return True
        if principal == WILDCARD_PRINCIPAL:
            # Kafka's authorizer fails on a client whose name is the wildcard: Set.of rejects duplicates.
            raise ApiError(error_codes.UNKNOWN_SERVER_ERROR)
        verdict = acls.verdict(principal, host, operation, resource_type, resource_name, ranges=self._ranges)
        if verdict.denied or verdict.allowed:
            return verdict.allowed
        return self._allow_everyone_if_no_acl_found and not verdict.has_acls
