"""Waits until a controller serves the tokens and ACLs that it wrote.

Kafka's controller looks tokens up, and its authorizer ACLs, in an image that follows the log (DelegationTokenPublisher,
AclPublisher), some time after the response.
"""

import time
from collections.abc import Callable, Iterable

from mockraft.conformance.fuzz.names import NamedRecord
from mockraft.conformance.fuzz.side import Side
from mockraft.conformance.fuzz.steps import FuzzStep
from mockraft.conformance.requests import Tree

EVERY_ACL: Tree = {
    **dict.fromkeys(("resourceTypeFilter", "patternTypeFilter", "operation", "permissionType"), 1),
    **dict.fromkeys(("resourceNameFilter", "principalFilter", "hostFilter")),
}
NOBODY = "User:owns-no-token"
"""This user may not renew a token: the error shows whether there is one, and nothing changes."""
NOT_FOUND = 62
PUBLISHED_S = 20
PUBLISHED_POLL_S = 0.005


def wait_until_published(side: Side, records: Iterable[NamedRecord]) -> None:
    """Wait until the side serves what these records changed; a lasting difference shows in later steps."""
    kinds = {record.kind for record in records}
    if kinds & {"DelegationTokenRecord", "RemoveDelegationTokenRecord"}:
        _wait(lambda: _tokens(side) == len(side.model.tokens))
    if kinds & {"AccessControlEntryRecord", "RemoveAccessControlEntryRecord"}:
        _wait(lambda: _acls(side) == len(side.model.acls))


def _wait(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PUBLISHED_S
    while not holds() and time.monotonic() < deadline:
        time.sleep(PUBLISHED_POLL_S)


def _tokens(side: Side) -> int:
    """Return how many of the tokens that were created since the beginning are found."""
    bodies: list[Tree] = [{"hmac": hmac, "renewPeriodMs": -1} for hmac in side.hmacs]
    answers = [side.answer(FuzzStep("RenewDelegationToken", 2, body, NOBODY)) for body in bodies]
    return sum(answer["errorCode"] != NOT_FOUND for answer in answers)


def _acls(side: Side) -> int:
    return sum(len(resource["acls"]) for resource in side.answer(FuzzStep("DescribeAcls", 3, EVERY_ACL))["resources"])
