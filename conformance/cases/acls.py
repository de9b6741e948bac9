"""ACLs without an authorizer."""

from __future__ import annotations

from mockraft.conformance.case import case
from mockraft.conformance.expectation import NotApplicableError
from mockraft.conformance.requests import Tree
from mockraft.conformance.world import World
from mockraft.wire import error_codes as codes

SOURCE = "AclApis"
MESSAGE = "No Authorizer is configured."
DESCRIBE_MESSAGE = "No Authorizer is configured on the broker"
FILTER: Tree = {"resourceTypeFilter": 1, "patternTypeFilter": 1, "operation": 1, "permissionType": 1}


async def without_authorizer(world: World) -> None:
    response = await world.send("DescribeAcls", FILTER)
    if response["errorCode"] != codes.SECURITY_DISABLED:
        raise NotApplicableError("the controller has an authorizer")


@case("ACLs are not described without an authorizer", SOURCE)
async def acls_are_not_described_without_authorizer(world: World) -> None:
    await without_authorizer(world)
    answer = {"errorCode": codes.SECURITY_DISABLED, "errorMessage": DESCRIBE_MESSAGE, "resources": []}
    for version in (1, 2, 3):
        await world.send("DescribeAcls", FILTER, answer=answer, version=version)


@case("ACLs are not created without an authorizer", SOURCE)
async def acls_are_not_created_without_authorizer(world: World) -> None:
    await without_authorizer(world)
    creation = {
        "resourceType": 2,
        "resourceName": world.name("t"),
        "resourcePatternType": 3,
        "principal": "User:a",
        "host": "*",
        "operation": 3,
        "permissionType": 3,
    }
    answer = {"results": [{"errorCode": codes.SECURITY_DISABLED, "errorMessage": MESSAGE}] * 2}
    await world.send("CreateAcls", {"creations": [creation, creation]}, answer=answer)
    await world.wrote()


@case("ACLs are not deleted without an authorizer", SOURCE)
async def acls_are_not_deleted_without_authorizer(world: World) -> None:
    await without_authorizer(world)
    answer = {"filterResults": [{"errorCode": codes.SECURITY_DISABLED, "errorMessage": MESSAGE, "matchingAcls": []}]}
    await world.send("DeleteAcls", {"filters": [FILTER]}, answer=answer)
