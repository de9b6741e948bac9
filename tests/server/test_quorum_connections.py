"""A node's connections to the others of its quorum, over real sockets."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from mockraft import Controller
from mockraft.server.quorum_connections import QuorumConnections
from mockraft.server.raft.outgoing import Outgoing
from mockraft.wire import error_codes
from mockraft.wire.messages.describe_cluster_request import DescribeClusterRequest
from mockraft.wire.messages.list_transactions_request import ListTransactionsRequest

CONTROLLERS = 2


class Asker:
    """QuorumConnections, and what they were failure."""

    def __init__(self) -> None:
        self.connections = QuorumConnections("raft-client-1", self.received)
        self.answers: asyncio.Queue[tuple[int, Any]] = asyncio.Queue()

    def received(self, outgoing_id: int, response: Any) -> None:
        self.answers.put_nowait((outgoing_id, response))

    def send(self, address: tuple[str, int], message: Any = None, *, number: int = 7, timeout_ms: int = 5_000) -> None:
        message = message or DescribeClusterRequest(endpoint_type=CONTROLLERS)
        self.connections.send(Outgoing(number, None, *address, message, 0, message.max_version, timeout_ms))

    async def answer(self) -> tuple[int, Any]:
        async with asyncio.timeout(60):
            return await self.answers.get()


@pytest.fixture
async def asker() -> AsyncIterator[Asker]:
    asker = Asker()
    yield asker
    await asker.connections.close()


@pytest.fixture
async def silent_port(unused_tcp_port: int) -> AsyncIterator[int]:
    """A port where somebody listens who never says anything."""
    open_ones = []
    server = await asyncio.start_server(lambda _, writer: open_ones.append(writer), "127.0.0.1", unused_tcp_port)
    yield unused_tcp_port
    server.close()
    for writer in open_ones:
        writer.close()


async def test_response_is_returned_and_the_connection_kept(asker: Asker) -> None:
    async with Controller() as controller:
        for number in (1, 2):
            asker.send((controller.host, controller.port), number=number)
            failure, response = await asker.answer()
            assert (failure, response.cluster_id) == (number, controller.cluster_id)
        assert {exchange.connection_id for exchange in controller.journal.exchanges()} == {1}
        assert controller.journal.exchanges()[0].client_id == "raft-client-1"


async def test_a_request_that_is_not_answered_in_time_has_no_answer(asker: Asker, silent_port: int) -> None:
    asker.send(("127.0.0.1", silent_port), timeout_ms=50)
    assert await asker.answer() == (7, None)
    asker.send(("127.0.0.1", silent_port))
    asker.connections.cut(frozenset({("127.0.0.1", silent_port)}))
    assert await asker.answer() == (7, None), "one in flight is broken off by a partition"


async def test_an_api_that_is_not_offered_is_answered_as_an_unsupported_version(asker: Asker) -> None:
    async with Controller() as controller:
        asker.send((controller.host, controller.port), ListTransactionsRequest())
        failure, response = await asker.answer()
        assert (failure, response.error_code) == (7, error_codes.UNSUPPORTED_VERSION)


async def test_a_new_request_takes_the_place_of_one_that_waits(asker: Asker, silent_port: int) -> None:
    asker.send(("127.0.0.1", silent_port), number=1)
    asker.send(("127.0.0.1", silent_port), number=2, timeout_ms=50)
    assert await asker.answer() == (2, None)
    assert asker.answers.empty()


async def test_partition_suppresses_responses_until_healed(asker: Asker) -> None:
    async with Controller() as controller:
        address = (controller.host, controller.port)
        asker.connections.cut(frozenset({address}))
        asker.send(address, timeout_ms=20)
        assert await asker.answer() == (7, None)
        asker.connections.cut(frozenset())
        asker.send(address)
        _, response = await asker.answer()
        assert response.cluster_id == controller.cluster_id


async def test_logs_an_unreachable_node_once(
    asker: Asker, unused_tcp_port: int, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(3):
        asker.send(("127.0.0.1", unused_tcp_port), number=number)
        assert await asker.answer() == (number, None)
    (said,) = [record.message for record in caplog.records if record.name == "mockraft.quorum"]
    assert said.startswith(f"127.0.0.1:{unused_tcp_port} does not answer: cannot connect")


async def test_request_after_close_leaves_no_task(asker: Asker, silent_port: int) -> None:
    asker.send(("127.0.0.1", silent_port))
    await asker.connections.close()
    before = asyncio.all_tasks()
    asker.send(("127.0.0.1", silent_port))
    assert asyncio.all_tasks() == before
