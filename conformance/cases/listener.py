"""The listener: frames, headers, ApiVersions, and the errors that close a connection."""

from __future__ import annotations

import struct
from collections.abc import Callable

from mockraft.conformance.case import Rank, case, cases
from mockraft.conformance.expectation import ANYTHING, InAnyOrder, Only, expect
from mockraft.conformance.raw_bytes import CORRELATION_ID, Fate, answered, fate, framed, header, written
from mockraft.conformance.requests import Tree
from mockraft.conformance.world import World
from mockraft.releases import Behaviour
from mockraft.wire import api_keys
from mockraft.wire import error_codes as codes

SOCKETS = "SocketServer, NetworkReceive"
PARSING = "RequestContext.parseRequest"
KIP_511 = "KIP-511, ApiVersionsRequest.isValid"
HEARTBEAT = written("BrokerHeartbeat", {"brokerId": 99, "brokerEpoch": 5}, 1)[4:]
STALE = {"correlationId": CORRELATION_ID, "errorCode": codes.STALE_BROKER_EPOCH}


def closed(frames: int = 0) -> Callable[[Fate], None]:
    def check(found: Fate) -> None:
        expect("whether the connection lives", False, found.is_open)
        expect("the number of answers", frames, len(found.frames))

    return check


def answers(api: str, version: int, *expected: Tree) -> Callable[[Fate], None]:
    def check(found: Fate) -> None:
        expect("whether the connection lives", True, found.is_open)
        expect("the answers", list(expected), [answered(api, version, frame) for frame in found.frames])

    return check


def beat(*more: Tree) -> Callable[[Fate], None]:
    return answers("BrokerHeartbeat", 1, STALE, *more)


FATES: list[tuple[str, str, bytes, Callable[[Fate], None]]] = [
    ("a frame of a negative length closes the connection", SOCKETS, struct.pack(">i", -1), closed()),
    ("a frame over the limit closes the connection", SOCKETS, struct.pack(">i", 104_857_601), closed()),
    ("HTTP closes the connection", SOCKETS, b"GET / HTTP/1.1\r\nHost: kafka\r\n\r\n", closed()),
    ("an empty frame closes the connection", PARSING, framed(b""), closed()),
    ("a frame of one byte closes the connection", PARSING, framed(b"\0"), closed()),
    ("a key without a version closes the connection", PARSING, framed(b"\0\x3f"), closed()),
    ("a header without a correlation id closes the connection", PARSING, framed(struct.pack(">hh", 63, 1)), closed()),
    ("a header without a client id closes the connection", PARSING, framed(struct.pack(">hhi", 63, 1, 77)), closed()),
    ("a header without its tags closes the connection", PARSING, framed(header(63, 1)), closed()),
    ("an unknown API closes the connection", PARSING, framed(header(999, 0)), closed()),
    ("a negative API key closes the connection", PARSING, framed(header(-1, 0)), closed()),
    ("an API of the broker's listener closes the connection", PARSING, framed(header(3, 12) + b"\0\1\0\0\0"), closed()),
    ("Produce closes the connection", PARSING, framed(header(0, 9) + b"\0"), closed()),
    ("a version of the future closes the connection", PARSING, framed(HEARTBEAT[:2] + b"\0\3" + HEARTBEAT[4:]), closed()),
    ("a negative version closes the connection", PARSING, framed(header(63, -1) + bytes(30)), closed()),
    ("a request that is cut short closes the connection", PARSING, framed(HEARTBEAT[:-3]), closed()),
    ("a client id of a negative length closes the connection", PARSING, framed(struct.pack(">hhih", 63, 1, 77, -7) + HEARTBEAT[10:]), closed()),
    ("a request is answered with its correlation id", PARSING, framed(HEARTBEAT), beat()),
    ("a request is answered whatever comes behind it in its frame", PARSING, framed(HEARTBEAT + b"abcdef"), beat()),
    ("a request without a client id is answered", PARSING, framed(header(63, 1, None) + b"\0" + HEARTBEAT[12:]), beat()),
    ("an unknown tag in the header is not minded", PARSING, framed(header(63, 1) + b"\1\5\2ab" + HEARTBEAT[12:]), beat()),
    ("requests of one connection are answered in order", SOCKETS, framed(HEARTBEAT) * 3, beat(STALE, STALE)),
    ("what came before garbage is answered", SOCKETS, framed(HEARTBEAT) + framed(b"\1\2\3\4\5\6\7\x08\x09"), closed(1)),
]  # fmt: skip


@cases("{}", "{1}", FATES)
async def connection_answers_or_closes(world: World, _source: str, data: bytes, check: Callable[[Fate], None]) -> None:
    check(await fate(world.target, data))


@case("a request may come byte by byte, or with others in one segment", SOCKETS)
async def request_may_come_byte_by_byte_or_with_others_in_one_segment(world: World) -> None:
    found = await fate(world.target, framed(HEARTBEAT) * 20)
    expect("the number of answers", 20, len(found.frames))


@case("a version of ApiVersions of the future is answered in version 0", "KIP-511")
async def version_of_apiversions_of_future_is_answered_in_version_0(world: World) -> None:
    newest = world.target.api_versions[api_keys.API_VERSIONS][1]
    for version, body in ((newest + 1, b"\0\1\1\0"), (32767, b"\0what a later client might say")):
        found = await fate(world.target, framed(header(18, version) + body))
        expect("whether the connection lives", True, found.is_open)
        offered = [{"apiKey": 18, "minVersion": 0, "maxVersion": newest}]
        refused = {"errorCode": codes.UNSUPPORTED_VERSION, "apiKeys": offered}
        expect("the answer", refused, answered("ApiVersions", 0, found.frames[0]))


SOFTWARE: list[tuple[str, str, str]] = [
    ("an empty name", "", "1"),
    ("an empty version", "a", ""),
    ("a blank in its name", "a b", "1"),
    ("a dash before its name", "-a", "1"),
    ("a dot behind its version", "a", "1."),
    ("a newline in its name", "a\n", "1"),
    ("an umlaut in its name", "ä", "1"),
]


@cases("client software with {} is refused", KIP_511, SOFTWARE, Rank.SHOULD)
async def invalid_client_software_is_refused(world: World, name: str, version: str) -> None:
    request = {"clientSoftwareName": name, "clientSoftwareVersion": version}
    await world.send("ApiVersions", request, answer={"errorCode": codes.INVALID_REQUEST, "apiKeys": []}, version=3)


async def api_versions(world: World, version: int) -> Tree:
    request = {"clientSoftwareName": "c", "clientSoftwareVersion": "1"} if version >= 3 else {}
    return await world.send("ApiVersions", request, answer={"errorCode": 0}, version=version)


@case("the APIs of the controller listener are offered in Kafka's versions", "ApiKeys.controllerApis")
async def apis_of_controller_listener_are_offered_in_kafkas_versions(world: World) -> None:
    response = await api_versions(world, 3)
    offered = {each["apiKey"]: (each["minVersion"], each["maxVersion"]) for each in response["apiKeys"]}
    release = world.target.release
    expected = {api_keys.name(key): f"{low}-{high}" for key, (low, high) in release.api_versions.items()}
    expect(
        f"the APIs of Kafka {release.name}",
        Only(expected),
        {api_keys.name(key): f"{low}-{high}" for key, (low, high) in offered.items()},
    )


@case("every version of ApiVersions offers the same APIs", "ApiVersionsResponse.json")
async def every_version_of_apiversions_offers_same_apis(world: World) -> None:
    newest = (await api_versions(world, 4))["apiKeys"]
    for version in range(4):
        expect(f"the APIs in version {version}", InAnyOrder(newest), (await api_versions(world, version))["apiKeys"])


@case("features that start at level 0 are told from version 4 on", "KIP-1022, ApiVersionsResponse v4")
async def features_starting_at_level_0_are_returned_from_version_4(world: World) -> None:
    for version, known in ((3, {"metadata.version"}), (4, {"metadata.version", "kraft.version"})):
        response = await api_versions(world, version)
        names = {each["name"]: each for each in response["supportedFeatures"]}
        expect("what is missing", [], sorted(known - set(names)))
        expect("whether kraft.version is there", "kraft.version" in known, "kraft.version" in names)


@case("the finalized features are told with their epoch", "KIP-584, ApiVersionsResponse v3")
async def finalized_features_are_returned_with_their_epoch(world: World) -> None:
    response = await api_versions(world, 3)
    finalized = {each["name"]: each["maxVersionLevel"] for each in response["finalizedFeatures"]}
    expect("metadata.version", world.level, finalized["metadata.version"])
    expect("whether there is an epoch", True, response["finalizedFeaturesEpoch"] >= 0)


@case("SASL is refused where there is none", "KafkaApis.handleSaslHandshakeRequest", Rank.SHOULD)
async def sasl_is_refused_where_there_is_none(world: World) -> None:
    for version in (0, 1):
        refused = {"errorCode": codes.ILLEGAL_SASL_STATE, "mechanisms": ANYTHING}
        await world.send("SaslHandshake", {"mechanism": "PLAIN"}, answer=refused, version=version)
    await world.send("SaslAuthenticate", {"authBytes": "AGEAYg=="}, answer={"errorCode": codes.ILLEGAL_SASL_STATE})


def uvarint(number: int) -> bytes:
    low, rest = number & 0x7F, number >> 7
    return bytes([low | 0x80]) + uvarint(rest) if rest else bytes([low])


def reassignments(partitions: int) -> bytes:
    """Encode ListPartitionReassignments 0 for so many partitions of one topic."""
    topic = b"\2t" + uvarint(partitions + 1) + bytes(4 * partitions) + b"\0"
    return framed(header(api_keys.LIST_PARTITION_REASSIGNMENTS, 0) + b"\0" + bytes(4) + b"\2" + topic + b"\0")


def tagged(fields: int) -> bytes:
    """Encode ApiVersions 3 with so many unknown tagged fields."""
    unknown = b"".join(uvarint(100 + each) + b"\0" for each in range(fields))
    return framed(header(api_keys.API_VERSIONS, 3) + b"\0" + b"\2a\2b" + uvarint(fields) + unknown)


OVER: list[tuple[str, bytes]] = [
    ("an array of more than a million elements", reassignments(1_000_001)),
    ("more than 10,000 tagged fields", tagged(10_001)),
]


@cases("a request with {} closes the connection", "MessageUtil", OVER, has=Behaviour.READERS_ARE_BOUNDED)
async def request_over_the_limits_of_readers_closes_connection(world: World, sent: bytes) -> None:
    closed()(await fate(world.target, sent))


@case("10,000 tagged fields are read", "MessageUtil", Rank.QUIRK)
async def ten_thousand_tagged_fields_are_read(world: World) -> None:
    found = await fate(world.target, tagged(10_000))
    expect("whether the connection lives", True, found.is_open)


@case("10,001 tagged fields are read, too", "ApiVersionsRequestData", Rank.QUIRK, lacks=Behaviour.READERS_ARE_BOUNDED)
async def more_tagged_fields_are_read(world: World) -> None:
    found = await fate(world.target, tagged(10_001))
    expect("whether the connection lives", True, found.is_open)
