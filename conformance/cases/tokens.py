"""Delegation tokens at a controller (KIP-48, KIP-900); most cases need one with delegation.token.secret.key."""

from __future__ import annotations

from mockraft.conformance.case import Rank, case, cases
from mockraft.conformance.expectation import NOT_EMPTY, NotApplicableError, above, eventually, expect
from mockraft.conformance.forwarding import forward
from mockraft.conformance.records import record
from mockraft.conformance.requests import Tree
from mockraft.conformance.world import World
from mockraft.wire import error_codes as codes

SOURCE = "ControllerApis.allowTokenRequests"


REFUSALS: list[tuple[str, str, Tree, int]] = [
    ("given to", "CreateDelegationToken", {"maxLifetimeMs": -1}, 3),
    ("renewed for", "RenewDelegationToken", {"hmac": "AAAA", "renewPeriodMs": 1}, 2),
    ("ended for", "ExpireDelegationToken", {"hmac": "AAAA", "expiryTimePeriodMs": 1}, 2),
]


@cases("a token is not {} who asks on a PLAINTEXT listener", SOURCE, REFUSALS)
async def token_request_is_refused_on_plaintext_listener(world: World, api: str, request: Tree, newest: int) -> None:
    for version in range(1, newest + 1):
        answer = {"errorCode": codes.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED}
        await world.send(api, request, answer=answer, version=version)
    await world.wrote()


@case("the description of tokens has no handler on a controller", "ControllerApis", Rank.QUIRK)
async def description_of_tokens_has_no_handler_on_controller(world: World) -> None:
    await world.send("DescribeDelegationToken", {"owners": []}, answer={"errorCode": codes.UNKNOWN_SERVER_ERROR})


LEVEL = 14
MANAGER = "DelegationTokenControlManager"
HOUR_MS = 3_600_000
LATEST = -1


async def create(world: World, *, answer: Tree, **fields: object) -> Tree:
    """Create a token for alice through a broker; it is expired when the case is over."""
    response = await forward(world, "CreateDelegationToken", {"maxLifetimeMs": LATEST, **fields}, 3, "alice")
    if response["errorCode"] == codes.DELEGATION_TOKEN_AUTH_DISABLED:
        raise NotApplicableError("the controller has no delegation.token.secret.key")
    expect("the answer to CreateDelegationToken", answer, response)
    world.identities.tokens.add(response["tokenId"])
    return response


async def expect_eventually_as(world: World, api: str, tree: Tree, user: str, answer: Tree) -> None:
    """Repeat the request until the answer is as expected: tokens are found in the last published image."""
    await eventually(f"the answer to {api}", answer, lambda: forward(world, api, tree, 2, user))


async def end(world: World, token: Tree, user: str = "alice") -> None:
    request = {"hmac": token["hmac"], "expiryTimePeriodMs": -1}
    await expect_eventually_as(world, "ExpireDelegationToken", request, user, {"errorCode": 0})


ALICE = {"principalType": "User", "principalName": "alice"}
GIVEN: Tree = {"errorCode": 0, **ALICE, "tokenId": NOT_EMPTY, "hmac": NOT_EMPTY}


@case("a token that is asked for through a broker is given and written", MANAGER, since=LEVEL)
async def token_that_is_asked_for_through_broker_is_given_and_written(world: World) -> None:
    renewers = [{"principalType": "User", "principalName": "bob"}]
    answer = {**GIVEN, "issueTimestampMs": above(0), "maxTimestampMs": above(0)}
    token = await create(world, renewers=renewers, answer=answer)
    response = {"owner": "User:alice", "requester": "User:alice", "renewers": ["User:bob"], "tokenId": token["tokenId"]}
    times = {"issueTimestamp": token["issueTimestampMs"], "maxTimestamp": token["maxTimestampMs"]}
    await world.wrote(record("DelegationToken", expirationTimestamp=token["expiryTimestampMs"], **response, **times))
    await end(world, token)


@case("a token may be given to another owner", "KIP-373", since=LEVEL)
async def token_may_be_given_to_another_owner(world: World) -> None:
    owner = {"ownerPrincipalType": "User", "ownerPrincipalName": "carol"}
    answer = {**GIVEN, "principalName": "carol", "tokenRequesterPrincipalName": "alice"}
    await end(world, await create(world, **owner, answer=answer), "carol")


@case("a token lives no longer than was asked for", MANAGER, since=LEVEL)
async def token_lives_no_longer_than_was_asked(world: World) -> None:
    token = await create(world, maxLifetimeMs=HOUR_MS, answer=GIVEN)
    expect("its longest life", HOUR_MS, token["maxTimestampMs"] - token["issueTimestampMs"])
    expect("its first life", HOUR_MS, token["expiryTimestampMs"] - token["issueTimestampMs"])
    await end(world, token)


@case("a token is renewed by its owner", MANAGER, since=LEVEL)
async def token_is_renewed_by_its_owner(world: World) -> None:
    token = await create(world, answer=GIVEN)
    await world.records()
    request = {"hmac": token["hmac"], "renewPeriodMs": HOUR_MS}
    await expect_eventually_as(
        world, "RenewDelegationToken", request, "alice", {"errorCode": 0, "expiryTimestampMs": above(0)}
    )
    await world.wrote(record("DelegationToken", tokenId=token["tokenId"], owner="User:alice"))
    await end(world, token)


@case("a token is renewed and ended by nobody else", MANAGER, since=LEVEL)
async def token_is_not_renewed_or_expired_by_others(world: World) -> None:
    token = await create(world, answer=GIVEN)
    mismatch = {"errorCode": codes.DELEGATION_TOKEN_OWNER_MISMATCH}
    await expect_eventually_as(
        world, "RenewDelegationToken", {"hmac": token["hmac"], "renewPeriodMs": 1}, "mallory", mismatch
    )
    expiry = {"hmac": token["hmac"], "expiryTimePeriodMs": -1}
    await expect_eventually_as(world, "ExpireDelegationToken", expiry, "mallory", mismatch)
    await end(world, token)


@case("a token that is ended is gone", MANAGER, since=LEVEL)
async def token_that_is_ended_is_gone(world: World) -> None:
    token = await create(world, answer=GIVEN)
    await world.records()
    await end(world, token)
    await world.wrote(record("RemoveDelegationToken", tokenId=token["tokenId"]))
    # A token that is gone and still published could be renewed by its owner, and would be back.
    request = {"hmac": token["hmac"], "renewPeriodMs": HOUR_MS}
    await expect_eventually_as(
        world, "RenewDelegationToken", request, "mallory", {"errorCode": codes.DELEGATION_TOKEN_NOT_FOUND}
    )


@case("a token has renewers that are users", MANAGER, Rank.SHOULD, since=LEVEL)
async def token_has_renewers_that_are_users(world: World) -> None:
    renewers = [{"principalType": "Group", "principalName": "bob"}]
    await create(world, renewers=renewers, answer={"errorCode": codes.INVALID_PRINCIPAL_TYPE})
    await world.wrote()


@case("tokens are not there before metadata.version 14", "MetadataVersion.isDelegationTokenSupported", until=LEVEL - 1)
async def tokens_are_not_there_before_metadata_version_14(world: World) -> None:
    await create(world, answer={"errorCode": codes.UNSUPPORTED_VERSION})
    await world.wrote()
