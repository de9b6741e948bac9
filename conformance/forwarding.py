"""Requests as brokers forward them for their clients: in an Envelope, with the client's principal (KIP-590)."""

from __future__ import annotations

import base64

from mockraft.conformance.expectation import NotApplicableError
from mockraft.conformance.raw_bytes import answered, written
from mockraft.conformance.requests import Tree, in_base64
from mockraft.conformance.world import World
from mockraft.wire import api_keys
from mockraft.wire.principals import write_principal

LOOPBACK = b"\x7f\0\0\1"


async def send_envelope(
    world: World, data: bytes, principal: bytes | None, address: bytes = LOOPBACK, *, answer: Tree | None = None
) -> Tree:
    """Send a request's bytes in an Envelope; without `answer`, expect success. Return the envelope's response.

    NotApplicableError if the controller does not offer the API of the request.
    """
    api_key = int.from_bytes(data[:2])
    if data and api_key in api_keys.NAMES and api_key not in world.target.api_versions:
        raise NotApplicableError(f"the controller does not offer {api_keys.NAMES[api_key]}")
    request = {
        "requestData": in_base64(data),
        "requestPrincipal": None if principal is None else in_base64(principal),
        "clientHostAddress": in_base64(address),
    }
    return await world.send("Envelope", request, answer=answer or {"errorCode": 0})


async def forward(world: World, api: str, tree: Tree, version: int, user: str = "ANONYMOUS") -> Tree:
    """Forward a request for this user and return its own response. NotAsExpectedError if the envelope is refused."""
    response = await send_envelope(world, written(api, tree, version)[4:], write_principal(f"User:{user}"))
    return answered(api, version, base64.b64decode(response["responseData"]))
