"""A controller on a socket, its stubs, and a client that asks for heartbeats."""

import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from mockraft import Controller
from mockraft.server.apis.registry import APIS
from mockraft.server.stubs.stub_list import StubList
from mockraft.wire import client
from mockraft.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest


class Asker:
    """A client's connection."""

    def __init__(self, connection: client.KafkaConnection) -> None:
        self.connection = connection

    async def heartbeat(self, **fields: Any) -> Any:
        return await self.connection.send(BrokerHeartbeatRequest(**{"broker_id": 1, **fields}))

    async def code(self, **fields: Any) -> int:
        return int((await self.heartbeat(**fields)).error_code)


@pytest.fixture
async def controller() -> AsyncIterator[Controller]:
    async with Controller() as controller:
        controller.is_judged = True  # tests break functions on purpose
        yield controller


@pytest.fixture
def stubs(controller: Controller) -> StubList:
    return controller.script.stubs


@pytest.fixture
async def connect(controller: Controller) -> AsyncIterator[Callable[..., Any]]:
    async with contextlib.AsyncExitStack() as connections:

        async def connect(client_id: str = "test", request_timeout_ms: int = 20_000) -> Asker:
            made = client.KafkaConnection(client_id, request_timeout_ms)
            await made.open(controller.host, controller.port)
            connections.push_async_callback(made.close)
            return Asker(made)

        yield connect


@pytest.fixture
async def asker(connect: Callable[..., Any]) -> Any:
    return await connect()


@pytest.fixture
def rig(make_rig: Callable[..., Any], make_controller: Callable[..., Any]) -> Any:
    """Every API, in front of a controller without sockets."""
    return make_rig(*APIS.values(), controller=make_controller())
