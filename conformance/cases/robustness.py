"""Requests that make Kafka's controller resign, run only with --disruptive. The response is the same; it may fail over."""

from __future__ import annotations

import asyncio

from mockraft.conformance.case import Options, Rank, case, cases
from mockraft.conformance.cases.configs import TOPIC, alter, resource
from mockraft.conformance.requests import Tree
from mockraft.conformance.world import World
from mockraft.wire import error_codes as codes

BROKEN = {"errorCode": codes.UNKNOWN_SERVER_ERROR}
RESIGNING: Options = {"disruptive": True, "alone": True}
LISTENERS: list[tuple[str, Tree]] = [
    ("without a host", {"host": ""}),
    ("on port 0", {"port": 0}),
    ("of an unknown security protocol", {"securityProtocol": 99}),
]


@cases("a broker with a listener {} is refused", "BrokerRegistration", LISTENERS, Rank.QUIRK, **RESIGNING)
async def invalid_listener_is_refused(world: World, fields: Tree) -> None:
    listener = {"name": "PLAINTEXT", "host": "localhost", "port": 9092, "securityProtocol": 0, **fields}
    await world.register(listeners=[listener], answer=BROKEN)


@case("an operation on a config that nobody knows is refused", "ConfigurationControlManager", Rank.QUIRK, **RESIGNING)
async def unknown_config_operation_is_refused(world: World) -> None:
    topic = await world.topic([await world.broker()])
    await alter(world, resource(TOPIC, topic.name, (9, "flush.ms", "1")), answer=[BROKEN])


@case("a connection that goes away in the middle of a request harms nobody", "SocketServer")
async def connection_lost_inside_a_request_has_no_effect_on_others(world: World) -> None:
    for size in (0, 3, 4, 9):
        _source, sink = await asyncio.open_connection(world.target.host, world.target.port)
        sink.write((b"\0\0\0\x40" + bytes(60))[:size])
        await sink.drain()
        sink.close()
    await world.heartbeat(await world.register(), answer={"errorCode": 0, "isFenced": False})


@case("forty connections at once are answered", "SocketServer", Rank.SHOULD)
async def forty_connections_at_once_are_answered(world: World) -> None:
    async def one() -> None:
        connection = await world.target.open()
        try:
            await connection.handshake()
        finally:
            await connection.close()

    await asyncio.gather(*(one() for _ in range(40)))
