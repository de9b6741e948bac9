"""Requests as brokers forward them for their clients: in an Envelope, with the client's principal (KIP-590)."""

from __future__ import annotations

import base64

from mockraft.conformance.raw_bytes import answered, written
from mockraft.conformance.requests import Tree, in_base64
from mockraft.conformance.world import World
from mockraft.wire.messages.default_principal_data import DefaultPrincipalData

LOOPBACK = b"\x7f\0\0\1"
_PRINCIPAL_VERSION = 0


def principal_bytes(name: str, kind: str = "User") -> bytes:
    """Encode a principal as Kafka's default builder does."""
    return _PRINCIPAL_VERSION.to_bytes(2, "big") + DefaultPrincipalData(type=kind, name=name).write(_PRINCIPAL_VERSION)


async def forward(world: World, api: str, tree: Tree, version: int, user: str = "ANONYMOUS") -> Tree:
    """Forward a request for this user and return its own response. NotAsExpectedError if the envelope is refused."""
    request = {
        "requestData": in_base64(written(api, tree, version)[4:]),
        "requestPrincipal": in_base64(principal_bytes(user)),
        "clientHostAddress": in_base64(LOOPBACK),
    }
    response = await world.send("Envelope", request, answer={"errorCode": 0})
    return answered(api, version, base64.b64decode(response["responseData"]))
