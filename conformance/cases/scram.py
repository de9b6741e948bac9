"""AlterUserScramCredentials (KIP-554)."""

from __future__ import annotations

import hashlib
import hmac

from mockraft.conformance.case import Rank, case, cases
from mockraft.conformance.expectation import InAnyOrder
from mockraft.conformance.records import record
from mockraft.conformance.requests import Tree, in_base64
from mockraft.conformance.world import World
from mockraft.wire import error_codes as codes

SOURCE = "ScramControlManager"
LEVEL = 11
SHA_256, SHA_512 = 1, 2
SALT, PASSWORD = b"some salt", b"p" * 32


def upsertion(user: str, mechanism: int = SHA_256, iterations: int = 4096) -> Tree:
    salted = {"salt": in_base64(SALT), "saltedPassword": in_base64(PASSWORD)}
    return {"name": user, "mechanism": mechanism, "iterations": iterations, **salted}


async def alter(
    world: World, *, set_: list[Tree] | None = None, gone: list[tuple[str, int]] | None = None, answer: list[Tree]
) -> None:
    request = {
        "upsertions": set_ or [],
        "deletions": [{"name": name, "mechanism": mechanism} for name, mechanism in gone or []],
    }
    await world.send("AlterUserScramCredentials", request, answer={"results": InAnyOrder(answer)})


async def with_credential(world: World) -> str:
    """Create a user with a credential and return its name."""
    user = world.name("alice")
    await alter(world, set_=[upsertion(user)], answer=[result(user)])
    await world.records()
    return user


def result(user: str, code: int = 0, **fields: object) -> Tree:
    return {"user": user, "errorCode": code, **fields}


@case("a user's credential is written with its keys, not its password", SOURCE, since=LEVEL)
async def credential_is_written_with_keys_instead_of_password(world: World) -> None:
    user = world.name("alice")
    await alter(world, set_=[upsertion(user)], answer=[result(user)])
    client_key = hmac.digest(PASSWORD, b"Client Key", "sha256")
    await world.wrote(
        record(
            "UserScramCredential",
            name=user,
            mechanism=SHA_256,
            iterations=4096,
            salt=in_base64(SALT),
            storedKey=in_base64(hashlib.sha256(client_key).digest()),
            serverKey=in_base64(hmac.digest(PASSWORD, b"Server Key", "sha256")),
        )
    )


@case("a credential of SHA-512 is made with SHA-512", SOURCE, since=LEVEL)
async def credential_of_sha_512_is_made_with_sha_512(world: World) -> None:
    user = world.name("alice")
    await alter(world, set_=[upsertion(user, SHA_512, 16384)], answer=[result(user)])
    server_key = in_base64(hmac.digest(PASSWORD, b"Server Key", "sha512"))
    await world.wrote(record("UserScramCredential", mechanism=SHA_512, iterations=16384, serverKey=server_key))


@case("a credential that is set again is written again", SOURCE, Rank.SHOULD, since=LEVEL)
async def credential_that_is_set_again_is_written_again(world: World) -> None:
    user = world.name("alice")
    for _ in range(2):
        await alter(world, set_=[upsertion(user)], answer=[result(user)])
        await world.wrote(record("UserScramCredential"))


@case("a user may have both mechanisms", SOURCE, since=LEVEL)
async def user_may_have_both_mechanisms(world: World) -> None:
    user = await with_credential(world)
    await alter(world, set_=[upsertion(user, SHA_512)], answer=[result(user)])
    await alter(world, gone=[(user, SHA_256)], answer=[result(user)])
    await alter(world, gone=[(user, SHA_512)], answer=[result(user)])


@case("a credential is removed with one record", SOURCE, since=LEVEL)
async def credential_is_removed_with_one_record(world: World) -> None:
    user = await with_credential(world)
    await alter(world, gone=[(user, SHA_256)], answer=[result(user)])
    await world.wrote(record("RemoveUserScramCredential", name=user, mechanism=SHA_256))


@case("a credential that is not there cannot be removed", SOURCE, since=LEVEL)
async def credential_that_is_not_there_cannot_be_removed(world: World) -> None:
    user = world.name("nobody")
    answer = [
        result(user, codes.RESOURCE_NOT_FOUND, errorMessage="Attempt to delete a user credential that does not exist")
    ]
    await alter(world, gone=[(user, SHA_256)], answer=answer)
    await world.wrote()


@case("a user that is named twice is refused, others are not", SOURCE, since=LEVEL)
async def user_that_is_named_twice_is_refused_others_are(world: World) -> None:
    twice, once = world.name("twice"), world.name("once")
    message = "A user credential cannot be altered twice in the same request"
    answer = [result(twice, codes.DUPLICATE_RESOURCE, errorMessage=message), result(once)]
    await alter(world, set_=[upsertion(twice), upsertion(twice, SHA_512), upsertion(once)], answer=answer)
    await world.wrote(record("UserScramCredential", name=once))


@case("removal and setting of one user's credentials are refused together", SOURCE, since=LEVEL)
async def removal_and_setting_of_one_users_credentials_are_refused_together(world: World) -> None:
    user = await with_credential(world)
    answer = [result(user, codes.DUPLICATE_RESOURCE)]
    await alter(world, set_=[upsertion(user, SHA_512)], gone=[(user, SHA_256)], answer=answer)
    await world.wrote()


@case("no changes are no trouble", SOURCE)
async def no_changes_are_no_trouble(world: World) -> None:
    await alter(world, answer=[])


REFUSALS: list[tuple[str, Tree, int, str]] = [
    ("too few iterations", {"iterations": 4095}, codes.UNACCEPTABLE_CREDENTIAL, "Too few iterations"),
    ("too many iterations", {"iterations": 16385}, codes.UNACCEPTABLE_CREDENTIAL, "Too many iterations"),
    ("an unknown mechanism", {"mechanism": 3}, codes.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism"),
]


@cases("a credential with {} is refused", SOURCE, REFUSALS, since=LEVEL)
async def invalid_credential_is_refused(world: World, fields: Tree, code: int, message: str) -> None:
    user = world.name("alice")
    await alter(world, set_=[{**upsertion(user), **fields}], answer=[result(user, code, errorMessage=message)])
    await world.wrote()


@case("a credential without a user is refused", SOURCE, since=LEVEL)
async def credential_without_user_is_refused(world: World) -> None:
    answer = [result("", codes.UNACCEPTABLE_CREDENTIAL, errorMessage="Username must not be empty")]
    await alter(world, set_=[upsertion("")], answer=answer)
    await alter(world, gone=[("", SHA_256)], answer=answer)


@case("credentials are not there before metadata.version 11", "MetadataVersion.isScramSupported", until=LEVEL - 1)
async def credentials_are_not_there_before_metadata_version_11(world: World) -> None:
    user = world.name("alice")
    message = "The current metadata.version does not support SCRAM"
    await alter(world, set_=[upsertion(user)], answer=[result(user, codes.UNSUPPORTED_VERSION, errorMessage=message)])
    await world.wrote()


@case("the description of credentials has no handler on a controller", "ControllerApis", Rank.QUIRK)
async def description_of_credentials_has_no_handler_on_controller(world: World) -> None:
    request = {"users": [{"name": world.name("alice")}]}
    await world.send("DescribeUserScramCredentials", request, answer={"errorCode": codes.UNKNOWN_SERVER_ERROR})
