"""What makes Kafka's controller resign: asked only with --disruptive. The answer is the same, a failover may follow."""

from __future__ import annotations

import asyncio
from typing import Any

from mockraft.conformance.case import Rank, case
from mockraft.conformance.world import World
from mockraft.wire import error_codes as codes

AREA = "robustness"
BROKEN = {"errorCode": codes.UNKNOWN_SERVER_ERROR}
LISTENERS: list[tuple[str, dict[str, Any]]] = [
    ("without a host", {"host": ""}),
    ("on port 0", {"port": 0}),
    ("of an unknown security protocol", {"securityProtocol": 99}),
]


def refuse_listener(what: str, fields: dict[str, Any]) -> None:
    @case(
        f"a broker with a listener {what} is refused",
        AREA,
        "BrokerRegistration",
        Rank.QUIRK,
        disruptive=True,
        alone=True,
    )
    async def _(world: World) -> None:
        listener = {"name": "PLAINTEXT", "host": "localhost", "port": 9092, "securityProtocol": 0, **fields}
        await world.register(listeners=[listener], answer=BROKEN)


for row in LISTENERS:
    refuse_listener(*row)


@case(
    "an operation on a config that nobody knows is refused",
    AREA,
    "ConfigurationControlManager",
    Rank.QUIRK,
    disruptive=True,
    alone=True,
)
async def _(world: World) -> None:
    topic = await world.topic([await world.broker()])
    config = {"name": "flush.ms", "configOperation": 9, "value": "1"}
    resource = {"resourceType": 2, "resourceName": topic.name, "configs": [config]}
    await world.ask("IncrementalAlterConfigs", {"resources": [resource]}, answer={"responses": [BROKEN]})


@case("a connection that goes away in the middle of a request harms nobody", AREA, "SocketServer")
async def _(world: World) -> None:
    for size in (0, 3, 4, 9):
        _source, sink = await asyncio.open_connection(world.target.host, world.target.port)
        sink.write((b"\0\0\0\x40" + bytes(60))[:size])
        await sink.drain()
        sink.close()
    await world.heartbeat(await world.register(), answer={"errorCode": 0, "isFenced": False})


@case("forty connections at once are answered", AREA, "SocketServer", Rank.SHOULD)
async def _(world: World) -> None:
    async def one() -> None:
        connection = await world.target.open()
        try:
            await connection.handshake()
        finally:
            await connection.close()

    await asyncio.gather(*(one() for _ in range(40)))
