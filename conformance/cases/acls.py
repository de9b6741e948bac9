"""ACLs without an authorizer."""

from __future__ import annotations

from mockraft.conformance.case import cases
from mockraft.conformance.expectation import NotApplicableError
from mockraft.conformance.requests import Tree
from mockraft.conformance.world import World
from mockraft.wire import error_codes as codes

SOURCE = "AclApis"
MESSAGE = "No Authorizer is configured."
DESCRIBE_MESSAGE = "No Authorizer is configured on the broker"
FILTER: Tree = {"resourceTypeFilter": 1, "patternTypeFilter": 1, "operation": 1, "permissionType": 1}


RESOURCE: Tree = {"resourceType": 2, "resourceName": "t", "resourcePatternType": 3}
CREATION: Tree = {**RESOURCE, "principal": "User:a", "host": "*", "operation": 3, "permissionType": 3}
REFUSED: Tree = {"errorCode": codes.SECURITY_DISABLED, "errorMessage": MESSAGE}
NEWEST: tuple[int, ...] = (-1,)
REQUESTS: list[tuple[str, str, Tree, Tree, tuple[int, ...]]] = [
    ("described", "DescribeAcls", FILTER, {**REFUSED, "errorMessage": DESCRIBE_MESSAGE, "resources": []}, (1, 2, 3)),
    ("created", "CreateAcls", {"creations": [CREATION] * 2}, {"results": [REFUSED] * 2}, NEWEST),
    ("deleted", "DeleteAcls", {"filters": [FILTER]}, {"filterResults": [{**REFUSED, "matchingAcls": []}]}, NEWEST),
]
"""End of the name, request, response, versions of the request."""


@cases("ACLs are not {} without an authorizer", SOURCE, REQUESTS)
async def acls_need_an_authorizer(
    world: World, api: str, request: Tree, answer: Tree, versions: tuple[int, ...]
) -> None:
    response = await world.send("DescribeAcls", FILTER)
    if response["errorCode"] != codes.SECURITY_DISABLED:
        raise NotApplicableError("the controller has an authorizer")
    for version in versions:
        await world.send(api, request, answer=answer, version=version)
    await world.wrote()
