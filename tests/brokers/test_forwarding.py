"""Requests that a broker forwards to the controller, the channel that carries them, and its handshake."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from mockraft import Controller, SimulatedBroker
from mockraft.brokers.apis import forwarded
from mockraft.brokers.channel import ControllerChannel, NotSentError
from mockraft.brokers.effects import Link, Opened
from mockraft.brokers.framed_link import FramedLink
from mockraft.brokers.kernel import Kernel
from mockraft.brokers.shell.shell import Shell
from mockraft.brokers.shell.socket_links import SocketLinks
from mockraft.brokers.topic_creation import creatable
from mockraft.wire import api_keys, client, error_codes
from mockraft.wire.client import UnsupportedVersionError
from mockraft.wire.connection import API_VERSIONS_MAX, FrameReader, Request, parse_request, write_response
from mockraft.wire.errors import WireError
from mockraft.wire.messages.allocate_producer_ids_request import AllocateProducerIdsRequest
from mockraft.wire.messages.api_versions_response import ApiVersion, ApiVersionsResponse
from mockraft.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from mockraft.wire.messages.broker_heartbeat_response import BrokerHeartbeatResponse
from mockraft.wire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from mockraft.wire.messages.default_principal_data import DefaultPrincipalData
from mockraft.wire.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from mockraft.wire.messages.describe_quorum_request import DescribeQuorumRequest, PartitionData, TopicData
from mockraft.wire.messages.elect_leaders_request import ElectLeadersRequest
from mockraft.wire.messages.envelope_request import EnvelopeRequest
from mockraft.wire.messages.envelope_response import EnvelopeResponse
from mockraft.wire.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from mockraft.wire.principals import write_principal

from ..rows import each_row
from ..topics import topic
from ..waiting import until
from .conftest import running


class Asking:
    """A controller, a broker on it and a client of the broker."""

    def __init__(self, controller: Controller, broker: SimulatedBroker, connection: client.KafkaConnection) -> None:
        self.controller = controller
        self.broker = broker
        self.send = connection.send

    def asked(self, api_key: int) -> list[Any]:
        return [exchange.request for exchange in self.controller.journal.exchanges(api_key)]

    @property
    def forwarding(self) -> Any:
        return self.broker.node.forwarding

    @property
    def topics(self) -> dict[str, Any]:
        return dict(self.controller.running.controller.image.topics.by_name)


@pytest.fixture
async def asking() -> AsyncIterator[Asking]:
    async with Controller() as controller, running(controller, serve_clients=True) as broker:
        host, port = broker.bootstrap_servers.split(":")
        connection = await client.connect(host, int(port), client_id="asker")
        try:
            yield Asking(controller, broker, connection)
        finally:
            await connection.close()


def create(*names: str) -> CreateTopicsRequest:
    return CreateTopicsRequest(topics=[topic(name, 2, 1) for name in names], timeout_ms=5000)


async def test_request_is_forwarded_with_principal_and_client_address(asking: Asking) -> None:
    response = await asking.send(create("a"))
    assert [(topic.name, topic.error_code) for topic in response.topics] == [("a", 0)]
    (envelope,) = asking.asked(api_keys.ENVELOPE)
    assert envelope.client_host_address == bytes([127, 0, 0, 1])
    assert envelope.request_principal == write_principal("User:ANONYMOUS")
    assert b"asker" in envelope.request_data
    assert "a" in asking.topics


async def test_a_refusal_of_the_controller_reaches_the_client(asking: Asking) -> None:
    await asking.send(create("a"))
    (topic,) = (await asking.send(create("a"))).topics
    assert (topic.error_code, topic.error_message) == (error_codes.TOPIC_ALREADY_EXISTS, "Topic 'a' already exists.")


@pytest.mark.parametrize("version", range(2, 8))
async def test_every_version_is_unwrapped(asking: Asking, version: int) -> None:
    response = await asking.send(create("a", "b"), version=version)
    assert {topic.name: topic.error_code for topic in response.topics} == {"a": 0, "b": 0}


async def test_other_forwarded_requests_are_answered_by_the_controller(asking: Asking) -> None:
    await asking.send(create("a"))
    elected = await asking.send(ElectLeadersRequest(election_type=0, topic_partitions=None, timeout_ms=1000))
    assert elected.error_code == 0
    partition = PartitionData(partition_index=0)
    quorum = await asking.send(
        DescribeQuorumRequest(topics=[TopicData(topic_name="__cluster_metadata", partitions=[partition])])
    )
    assert quorum.topics[0].partitions[0].leader_id == asking.controller.running.config.node_id
    deleted = await asking.send(DeleteTopicsRequest(topics=[DeleteTopicState(name="a")], timeout_ms=1000))
    assert [each.error_code for each in deleted.responses] == [0]
    assert asking.topics == {}


class Scripted:
    """A channel whose controller says what it is told to say."""

    api_versions = None

    def __init__(self, kernel: Kernel, said: EnvelopeResponse | None) -> None:
        self.kernel = kernel
        self.said = said

    def send(self, _make: Any, on_answer: Callable[[Any], None], on_failure: Callable[[Exception], None]) -> None:
        failure = NotSentError("nobody is there")
        self.kernel.after("scripted", 0, lambda: on_answer(self.said) if self.said else on_failure(failure))

    def controller_moved(self) -> None:
        """Nobody waits."""

    def close(self) -> None:
        """Nothing is open."""


@pytest.mark.parametrize(
    ("said", "code"),
    [
        (None, error_codes.REQUEST_TIMED_OUT),
        (EnvelopeResponse(error_code=error_codes.CLUSTER_AUTHORIZATION_FAILED), error_codes.UNKNOWN_SERVER_ERROR),
        (EnvelopeResponse(error_code=error_codes.PRINCIPAL_DESERIALIZATION_FAILURE), error_codes.UNKNOWN_SERVER_ERROR),
        (EnvelopeResponse(response_data=None), error_codes.UNKNOWN_SERVER_ERROR),
        (EnvelopeResponse(response_data=b"\xff" * 5), error_codes.UNKNOWN_SERVER_ERROR),
        (EnvelopeResponse(response_data=b"\0\0\0\1\0nonsense"), error_codes.UNKNOWN_SERVER_ERROR),
    ],
)
async def test_missing_and_undecodable_responses_become_kafkas_errors(
    asking: Asking, said: EnvelopeResponse | None, code: int
) -> None:
    asking.forwarding.channel = Scripted(asking.broker.node.kernel, said)
    (topic,) = (await asking.send(create("a"))).topics
    message = None if code == error_codes.REQUEST_TIMED_OUT else error_codes.message(code)
    assert (topic.name, topic.error_code, topic.error_message) == ("a", code, message)


async def test_request_queued_too_long_times_out(asking: Asking) -> None:
    channel = asking.forwarding.channel
    timeout_ms, channel.retry_timeout_ms = channel.retry_timeout_ms, 50
    answers: list[Any] = []
    silent = asking.controller.stub("Envelope").times(2).drop()
    asking.forwarding.send(EnvelopeRequest(request_data=b"first"), answers.append)
    (topic,) = (await asking.send(create("a"))).topics
    asking.controller.remove(silent)
    assert (answers[0].error_code, topic.error_code) == (error_codes.REQUEST_TIMED_OUT, error_codes.REQUEST_TIMED_OUT)
    channel.retry_timeout_ms = timeout_ms
    assert (await asking.send(create("a"))).topics[0].error_code == 0


async def test_version_unsupported_by_the_controller_closes_the_client_connection(asking: Asking) -> None:
    asking.forwarding.channel = Scripted(
        asking.broker.node.kernel, EnvelopeResponse(error_code=error_codes.UNSUPPORTED_VERSION)
    )
    with pytest.raises(client.DisconnectedError):
        await asking.send(create("a"))
    assert "does not know this version" in asking.broker.node.clients.closings[-1]  # type: ignore[union-attr]


async def test_metadata_request_creates_the_topic(asking: Asking) -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in ("wanted", "no/name")])
    (first, second) = (await asking.send(request)).topics
    assert (first.error_code, second.error_code) == (
        error_codes.UNKNOWN_TOPIC_OR_PARTITION,
        error_codes.INVALID_TOPIC_EXCEPTION,
    )
    await until(lambda: "wanted" in asking.broker.image.topics_by_name)  # type: ignore[union-attr]
    (first, _) = (await asking.send(request)).topics
    assert (first.error_code, len(first.partitions)) == (0, 1)
    assert list(asking.topics) == ["wanted"]


async def test_topic_is_not_created_without_permission_to_do_so(asking: Asking) -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(name="a")], allow_auto_topic_creation=False)
    assert (await asking.send(request)).topics[0].error_code == error_codes.UNKNOWN_TOPIC_OR_PARTITION
    asking.broker.config.properties["auto.create.topics.enable"] = "false"  # type: ignore[index]
    request = MetadataRequest(topics=[MetadataRequestTopic(name="a")])
    assert (await asking.send(request)).topics[0].error_code == error_codes.UNKNOWN_TOPIC_OR_PARTITION
    assert (asking.asked(api_keys.ENVELOPE), asking.topics) == ([], {})


def test_created_topic_uses_the_brokers_defaults() -> None:
    assert creatable("a", {}, 1) == CreatableTopic(name="a", num_partitions=-1, replication_factor=-1)
    said = creatable("a", {"num.partitions": "4", "default.replication.factor": "2"}, 1)
    assert (said.num_partitions, said.replication_factor) == (4, 2)
    offsets = creatable("__consumer_offsets", {"offsets.topic.replication.factor": "1"}, 5)
    assert (offsets.num_partitions, offsets.replication_factor) == (50, 1)
    assert {each.name: each.value for each in offsets.configs} == {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": "104857600",
    }


def test_a_principal_is_written_as_the_default_builder_writes_it() -> None:
    data = write_principal("User:a:b")
    principal = DefaultPrincipalData.read(data[2:], int.from_bytes(data[:2]))
    assert (principal.type, principal.name, principal.token_authenticated) == ("User", "a:b", False)


@each_row("api", forwarded.APIS)
def test_every_forwarded_api_has_an_error_response_in_every_version(api: Any) -> None:
    for version in range(api.request.min_version, api.request.max_version + 1):
        error = api.error(api.request(), error_codes.REQUEST_TIMED_OUT, None)
        assert api.response.read(error.write(version), version) is not None


HEARTBEAT = BrokerHeartbeatRequest(broker_id=1)


def answered(error_code: int = 0) -> Callable[[Request], bytes]:
    def reply(request: Request) -> bytes:
        body = BrokerHeartbeatResponse(error_code=error_code).write(request.api_version)
        return write_response(body, request.correlation_id, 1)

    return reply


def hang_up(request: Request) -> bytes:
    raise ConnectionAbortedError


@asynccontextmanager
async def controller(*replies: Callable[[Request], bytes]) -> AsyncIterator[tuple[tuple[str, int], list[int]]]:
    """A controller that gives these replies to heartbeats, one after the other and the last for ever.

    Gives its endpoint and a list with the connection number of every heartbeat.
    """
    heartbeats: list[int] = []
    connections = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        number, frames = connections, FrameReader()
        while data := await reader.read(65536):
            for frame in frames.receive_data(data):
                request = parse_request(frame)
                if request.api_key == api_keys.API_VERSIONS:
                    offered = [ApiVersion(api_key=api_keys.BROKER_HEARTBEAT, min_version=0, max_version=2)]
                    body = ApiVersionsResponse(api_keys=offered).write(request.api_version)
                    writer.write(write_response(body, request.correlation_id, 0))
                    continue
                heartbeats.append(number)
                try:
                    writer.write(replies[min(len(heartbeats), len(replies)) - 1](request))
                except ConnectionAbortedError:
                    writer.close()
                    return
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[:2], heartbeats
    finally:
        server.close()


class Channel:
    """A channel over sockets whose requests can be awaited."""

    def __init__(self, find: Callable[[], Any], retry_timeout_ms: int) -> None:
        self.kernel = Kernel(self._failed)
        self.shell = Shell(self.kernel, SocketLinks)
        self.channel = ControllerChannel(self.kernel, "heartbeat", "1", find, retry_timeout_ms)

    async def send(self, request: Any = HEARTBEAT) -> Any:
        answer = asyncio.get_running_loop().create_future()
        self.channel.send(lambda _: request, answer.set_result, answer.set_exception)
        return await answer

    def _failed(self, error: Exception) -> None:
        raise error


@asynccontextmanager
async def channel_to(find: Callable[[], Any], retry_timeout_ms: int = 5000) -> AsyncIterator[Channel]:
    channel = Channel(find, retry_timeout_ms)
    try:
        yield channel
    finally:
        await channel.shell.close()


async def test_one_connection_carries_every_request() -> None:
    async with controller(answered()) as (endpoint, heartbeats), channel_to(lambda: endpoint) as channel:
        for _ in range(3):
            await channel.send()
        assert heartbeats == [1, 1, 1]


@pytest.mark.parametrize("trouble", [answered(error_codes.NOT_CONTROLLER), hang_up], ids=["NOT_CONTROLLER", "hang up"])
async def test_the_request_is_sent_again_on_a_new_connection(trouble: Callable[[Request], bytes]) -> None:
    replies = (trouble, trouble, answered())
    async with controller(*replies) as (endpoint, heartbeats), channel_to(lambda: endpoint) as channel:
        response = await channel.send()
        assert response.error_code == 0
        assert heartbeats == [1, 2, 3]


async def test_follows_the_controller_to_where_it_moved() -> None:
    async with (
        controller(answered(error_codes.NOT_CONTROLLER)) as (old, asked_old),
        controller(answered()) as (new, asked_new),
    ):
        async with channel_to(lambda: new if asked_old else old) as channel:
            await channel.send()
        assert (len(asked_old), len(asked_new)) == (1, 1)


async def test_waits_until_a_controller_is_active() -> None:
    known: list[tuple[str, int]] = []
    async with controller(answered()) as (endpoint, _), channel_to(lambda: known[0] if known else None) as channel:
        sending = asyncio.ensure_future(channel.send())
        await asyncio.sleep(0)
        assert not sending.done()
        known.append(endpoint)
        channel.channel.controller_moved()
        assert (await sending).error_code == 0


async def test_other_errors_come_out_as_they_are() -> None:
    async with (
        controller(answered(error_codes.STALE_BROKER_EPOCH)) as (endpoint, heartbeats),
        channel_to(lambda: endpoint) as channel,
    ):
        response = await channel.send()
        assert response.error_code == error_codes.STALE_BROKER_EPOCH
        assert heartbeats == [1]


async def test_silent_controller_is_left_for_a_new_one() -> None:
    async with controller(lambda _: b"") as (silent, asked), controller(answered()) as (new, asked_new):
        async with channel_to(lambda: new if asked else silent, retry_timeout_ms=1_000) as channel:
            with pytest.raises(NotSentError):
                await channel.send()
            await channel.send()
        assert (asked, asked_new) == ([1], [1])


@pytest.mark.parametrize("known", [True, False], ids=["nobody answers", "nobody known"])
async def test_gives_up_when_the_time_is_over(known: bool) -> None:
    async with controller(answered()) as (endpoint, _):
        pass
    async with channel_to(lambda: endpoint if known else None, retry_timeout_ms=120) as channel:
        with pytest.raises(NotSentError, match="within 120 ms"):
            await channel.send()


async def test_unsupported_api_is_reported_at_once() -> None:
    async with controller(answered()) as (endpoint, _), channel_to(lambda: endpoint) as channel:
        with pytest.raises(UnsupportedVersionError):
            await channel.send(AllocateProducerIdsRequest())


async def test_undecodable_response_is_reported_and_closes_the_connection() -> None:
    replies = (lambda _: b"\0\0\0\x04nope", answered())
    async with controller(*replies) as (endpoint, heartbeats), channel_to(lambda: endpoint) as channel:
        with pytest.raises(WireError):
            await channel.send()
        await channel.send()
        assert heartbeats == [1, 2]


def test_handshake_is_repeated_in_the_newest_version_that_the_controller_has() -> None:
    link = Link("heartbeats", "1", "h", 1, 1_000)
    framed = FramedLink(link)
    assert framed.open()[4:8] == bytes([0, api_keys.API_VERSIONS, 0, API_VERSIONS_MAX])
    offered = [ApiVersion(api_key=api_keys.API_VERSIONS, min_version=0, max_version=3)]
    refused = ApiVersionsResponse(error_code=error_codes.UNSUPPORTED_VERSION, api_keys=offered)
    assert framed.receive(write_response(refused.write(0), 0, 0)) == []
    assert framed.data_to_send()[4:12] == bytes([0, api_keys.API_VERSIONS, 0, 3, 0, 0, 0, 1])
    assert framed.data_to_send() == b""
    accepted = ApiVersionsResponse(api_keys=offered)
    assert framed.receive(write_response(accepted.write(3), 1, 0)) == [Opened(link, {api_keys.API_VERSIONS: (0, 3)})]
