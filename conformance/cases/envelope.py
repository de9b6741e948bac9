"""Envelope: requests that brokers forward for their clients (KIP-590)."""

from __future__ import annotations

from mockraft.conformance.case import Rank, case, cases
from mockraft.conformance.expectation import expect
from mockraft.conformance.forwarding import LOOPBACK, forward, send_envelope
from mockraft.conformance.raw_bytes import CORRELATION_ID, written
from mockraft.conformance.records import record
from mockraft.conformance.requests import Tree
from mockraft.conformance.world import TIMEOUT_MS, World
from mockraft.wire import error_codes as codes
from mockraft.wire.principals import write_principal

SOURCE = "EnvelopeUtils.handleEnvelopeRequest"
ANONYMOUS = write_principal("User:ANONYMOUS")
DELETE_VERSION = 6


def deletion(name: str) -> Tree:
    return {"topics": [{"name": name}], "timeoutMs": TIMEOUT_MS}


@case("a forwarded request is carried out, and its response comes with its own header", SOURCE)
async def forwarded_request_is_carried_out_and_its_response_comes_with_its_own_header(world: World) -> None:
    topic, _ = await world.replicated(1)
    inner = await forward(world, "DeleteTopics", deletion(topic.name), DELETE_VERSION)
    results = [{"name": topic.name, "errorCode": 0}]
    expect("the inner answer", {"correlationId": CORRELATION_ID, "responses": results}, inner)
    await world.wrote(record("RemoveTopic", topicId=topic.id))


@case("a refusal of the forwarded request is in its own response", SOURCE)
async def refusal_of_forwarded_request_is_in_its_own_response(world: World) -> None:
    inner = await forward(world, "DeleteTopics", deletion(world.name("none")), DELETE_VERSION)
    expect("the inner answer", {"responses": [{"errorCode": codes.UNKNOWN_TOPIC_OR_PARTITION}]}, inner)


@case("a client's address may have four or sixteen bytes", SOURCE, Rank.SHOULD)
async def clients_address_may_have_four_or_sixteen_bytes(world: World) -> None:
    await send_envelope(world, NONE, ANONYMOUS, bytes(15) + b"\1")


@case("a token may be asked for through a broker", "ControllerApis.allowTokenRequests", Rank.SHOULD)
async def token_may_be_asked_for_through_broker(world: World) -> None:
    inner = await forward(world, "CreateDelegationToken", {"maxLifetimeMs": 1}, 3)
    allowed = inner["errorCode"] in (0, codes.DELEGATION_TOKEN_AUTH_DISABLED, codes.UNSUPPORTED_VERSION)
    expect("whether it was looked at", True, allowed)


BEAT = written("BrokerHeartbeat", {}, 1)[4:]
NONE = written("DeleteTopics", deletion("none"), DELETE_VERSION)[4:]
BAD_PRINCIPAL = codes.PRINCIPAL_DESERIALIZATION_FAILURE
REFUSALS: list[tuple[str, bytes, bytes | None, bytes, int]] = [
    ("no principal", NONE, None, LOOPBACK, BAD_PRINCIPAL),
    ("an empty principal", NONE, b"", LOOPBACK, BAD_PRINCIPAL),
    ("a principal of another version", NONE, b"\0\1" + ANONYMOUS[2:], LOOPBACK, BAD_PRINCIPAL),
    ("a principal that is cut short", NONE, ANONYMOUS[:6], LOOPBACK, BAD_PRINCIPAL),
    ("no address", NONE, ANONYMOUS, b"", codes.INVALID_REQUEST),
    ("an address of three bytes", NONE, ANONYMOUS, b"\x7f\0\0", codes.INVALID_REQUEST),
    ("a heartbeat inside", BEAT, ANONYMOUS, LOOPBACK, codes.INVALID_REQUEST),
    ("an unknown API inside", b"\x03\xe7" + NONE[2:], ANONYMOUS, LOOPBACK, codes.UNSUPPORTED_VERSION),
    ("an unknown version inside", NONE[:2] + b"\0\x63" + NONE[4:], ANONYMOUS, LOOPBACK, codes.UNSUPPORTED_VERSION),
    ("a body that is cut short", NONE[:-2], ANONYMOUS, LOOPBACK, codes.UNSUPPORTED_VERSION),
    ("a header that is cut short", NONE[:9], ANONYMOUS, LOOPBACK, codes.UNSUPPORTED_VERSION),
    ("nothing inside", b"", ANONYMOUS, LOOPBACK, codes.UNSUPPORTED_VERSION),
]


@cases("an envelope with {} is refused", SOURCE, REFUSALS)
async def malformed_envelope_is_refused(
    world: World, data: bytes, principal: bytes | None, address: bytes, code: int
) -> None:
    await send_envelope(world, data, principal, address, answer={"errorCode": code, "responseData": None})
