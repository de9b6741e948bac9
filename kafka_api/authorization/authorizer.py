"""Decisions by super users and ACLs (StandardAuthorizerData)."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from functools import lru_cache

from mockraft.kafka_api.authorization.acl_index import WILDCARD_PRINCIPAL, AclIndex
from mockraft.wire import error_codes
from mockraft.wire.errors import ApiError


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


@lru_cache(maxsize=4096)
def host_text(text: str) -> str:
    """Return an address as InetAddress.getHostAddress does.

    A value that is no address (a socket whose peer is gone) is kept: only ACLs for every host match it.
    """
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return text
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return ":".join(f"{int(group, 16):x}" for group in address.exploded.split(":"))
