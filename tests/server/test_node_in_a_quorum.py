"""The node in a quorum of several: its answers and their times, its own requests, and its connections over sockets."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from mockraft import Controller
from mockraft.kafka_api.journal import Failure
from mockraft.server.apis import describe_quorum, envelope
from mockraft.server.apis.api import Api
from mockraft.server.quorum_connections import QuorumConnections
from mockraft.server.raft.outgoing import Outgoing, SendToNode
from mockraft.wire import api_keys, error_codes
from mockraft.wire.connection import write_request
from mockraft.wire.messages.allocate_producer_ids_request import AllocateProducerIdsRequest
from mockraft.wire.messages.allocate_producer_ids_response import AllocateProducerIdsResponse
from mockraft.wire.messages.describe_cluster_request import DescribeClusterRequest
from mockraft.wire.messages.describe_quorum_request import DescribeQuorumRequest
from mockraft.wire.messages.describe_quorum_response import DescribeQuorumResponse, PartitionData, TopicData
from mockraft.wire.messages.envelope_request import EnvelopeRequest
from mockraft.wire.messages.envelope_response import EnvelopeResponse
from mockraft.wire.messages.list_transactions_request import ListTransactionsRequest
from mockraft.wire.messages.vote_request import VoteRequest

from .conftest import allocation_api

ANONYMOUS = b"\0\0\x05User\x0aANONYMOUS\0\0"


def allocate(request: Any, ctx: Any, controller: Any) -> Any:
    return AllocateProducerIdsResponse(producer_id_start=1000)


def write_a_record(request: Any, ctx: Any, controller: Any) -> Any:
    controller.log.end_offset += 1
    controller.pending_offset = controller.log.end_offset
    return AllocateProducerIdsResponse(producer_id_start=1000)


def not_the_leader(request: Any, ctx: Any, controller: Any) -> Any:
    refused = PartitionData(error_code=error_codes.NOT_LEADER_OR_FOLLOWER)
    return DescribeQuorumResponse(topics=[TopicData(partitions=[refused])])


def forwarded(message: Any, version: int) -> EnvelopeRequest:
    data = write_request(message, version, 77, "client")[4:]
    return EnvelopeRequest(request_data=data, request_principal=ANONYMOUS, client_host_address=b"\x7f\0\0\1")


@pytest.mark.parametrize(("active_only", "code"), [(True, error_codes.NOT_CONTROLLER), (False, error_codes.NONE)])
def test_standby_refuses_active_only_requests(make_rig: Any, active_only: bool, code: int) -> None:
    rig = make_rig(replace(allocation_api(allocate), active_only=active_only))
    rig.controller.epoch = -1
    response = rig.ask(rig.connect(), AllocateProducerIdsRequest(), 0)
    assert (response.error_code, response.producer_id_start) == (code, 0 if active_only else 1000)


def test_a_response_waits_until_its_records_are_committed(make_rig: Any) -> None:
    rig = make_rig(allocation_api(write_a_record))
    writer, other = rig.connect(), rig.connect()
    assert rig.send(writer, rig.frame(AllocateProducerIdsRequest(), 0)) == []
    rig.controller.log.high_watermark = 11
    rig.controller.pending_offset = 0
    rig.send(other, rig.frame(AllocateProducerIdsRequest(), 0))
    assert len(rig.sends(writer)) == 1
    assert rig.node.parked == 1, "the other one wrote too, and waits"


def test_response_without_records_waits_for_the_records_it_read(make_rig: Any) -> None:
    rig = make_rig(allocation_api(allocate))
    rig.controller.log.end_offset = rig.controller.pending_offset = 12
    connection = rig.connect()
    assert rig.send(connection, rig.frame(AllocateProducerIdsRequest(), 0)) == []
    rig.controller.log.high_watermark = 11
    rig.tick(rig.now_ms + 60_000)
    assert rig.sends() == []
    rig.controller.log.high_watermark = 12
    rig.tick(rig.now_ms + 60_000)
    assert len(rig.sends(connection)) == 1


def test_waiting_response_becomes_not_controller_on_lost_leadership(make_rig: Any) -> None:
    rig = make_rig(allocation_api(write_a_record))
    connection = rig.connect()
    rig.send(connection, rig.frame(AllocateProducerIdsRequest(), 0))
    rig.controller.epoch = -1
    rig.tick(rig.now_ms + 1)
    (exchange,) = rig.node.journal.exchanges()
    assert exchange.response.error_code == error_codes.NOT_CONTROLLER


def test_an_enveloped_response_waits_too(make_rig: Any) -> None:
    rig = make_rig(envelope.API, allocation_api(write_a_record))
    connection = rig.connect()
    assert rig.send(connection, rig.frame(forwarded(AllocateProducerIdsRequest(), 0), 0)) == []
    rig.controller.log.high_watermark = 11
    rig.tick(rig.now_ms + 1)
    (exchange,) = rig.node.journal.exchanges(api_keys.ENVELOPE)
    assert exchange.response.error_code == error_codes.NONE
    assert exchange.response.response_data is not None


@pytest.mark.parametrize("before_it_came", [True, False])
def test_not_controller_is_lifted_out_of_the_items_of_a_carried_response(make_rig: Any, before_it_came: bool) -> None:
    rig = make_rig(envelope.API, allocation_api(write_a_record))
    connection = rig.connect()
    rig.controller.epoch = -1 if before_it_came else 1
    rig.send(connection, rig.frame(forwarded(AllocateProducerIdsRequest(), 0), 0))
    rig.controller.epoch = -1
    rig.tick(rig.now_ms + 1)
    (exchange,) = rig.node.journal.exchanges(api_keys.ENVELOPE)
    assert exchange.response == EnvelopeResponse(error_code=error_codes.NOT_CONTROLLER)


def test_not_leader_of_a_carried_describe_quorum_is_lifted_as_not_controller(make_rig: Any) -> None:
    api = Api(
        DescribeQuorumRequest,
        DescribeQuorumResponse,
        not_the_leader,
        describe_quorum.API.error,
        forwardable=True,
        active_only=False,
    )
    rig = make_rig(envelope.API, api)
    response = rig.ask(rig.connect(), forwarded(DescribeQuorumRequest(), 2), 0)
    assert response == EnvelopeResponse(error_code=error_codes.NOT_CONTROLLER)


class AskingRaft:
    """Asks one thing, once."""

    leader_id = None
    leader_endpoint = None
    changes = 0

    def __init__(self) -> None:
        self.next_ms = 0
        self.heard: list[Any] = []

    def poll(self, now_ms: int) -> list[Outgoing]:
        if now_ms < self.next_ms:
            return []
        self.next_ms = 1 << 62
        return [Outgoing(5, 3001, "127.0.0.1", 1, VoteRequest(), 0, 2, 2000)]

    def received(self, outgoing_id: int, response: Any, now_ms: int) -> None:
        if response == "broken":
            raise ValueError("cannot be understood")
        self.heard.append((outgoing_id, response))
        self.next_ms = now_ms


def test_tick_returns_raft_requests_and_accepts_their_responses(make_rig: Any, still_controller: Any) -> None:
    raft = still_controller.raft = AskingRaft()
    rig = make_rig(controller=still_controller)
    assert rig.node.next_tick_ms(rig.now_ms) == 0
    (ask,) = rig.tick(rig.now_ms)
    assert isinstance(ask, SendToNode)
    assert (ask.outgoing.id, ask.outgoing.node_id) == (5, 3001)
    assert rig.node.next_tick_ms(rig.now_ms) == 1 << 62
    assert [type(effect) for effect in rig.node.answered(5, None, rig.now_ms)] == [SendToNode]
    assert raft.heard == [(5, None)]


def test_an_answer_that_breaks_the_raft_node_is_journalled(make_rig: Any, still_controller: Any) -> None:
    still_controller.raft = AskingRaft()
    rig = make_rig(controller=still_controller)
    rig.node.answered(5, "broken", rig.now_ms)
    (entry,) = rig.node.journal.entries
    assert isinstance(entry, Failure)
    assert "cannot be understood" in entry.failure


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
