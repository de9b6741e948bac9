"""Requests that a broker hands on to the controller, and topics that come into being by being asked for."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from mockraft import Controller, SimulatedBroker
from mockraft.brokers.apis import forwarded
from mockraft.brokers.channel import NotSentError
from mockraft.brokers.forwarding import principal_bytes
from mockraft.brokers.kernel import Kernel
from mockraft.brokers.lifecycle import BrokerState
from mockraft.brokers.topic_creation import creatable
from mockraft.wire import api_keys, client, error_codes
from mockraft.wire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from mockraft.wire.messages.default_principal_data import DefaultPrincipalData
from mockraft.wire.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from mockraft.wire.messages.describe_quorum_request import DescribeQuorumRequest, PartitionData, TopicData
from mockraft.wire.messages.elect_leaders_request import ElectLeadersRequest
from mockraft.wire.messages.envelope_request import EnvelopeRequest
from mockraft.wire.messages.envelope_response import EnvelopeResponse
from mockraft.wire.messages.metadata_request import MetadataRequest, MetadataRequestTopic

from ..topics import topic
from ..waiting import until


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
    async with (
        Controller() as controller,
        SimulatedBroker.joining(controller.bootstrap, controller.cluster_id, 1, serve_clients=True) as broker,
    ):
        await broker.wait_until(BrokerState.RUNNING)
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
    assert envelope.request_principal == principal_bytes("User:ANONYMOUS")
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
    told = None if code == error_codes.REQUEST_TIMED_OUT else error_codes.message(code)
    assert (topic.name, topic.error_code, topic.error_message) == ("a", code, told)


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
    assert creatable("a", {}) == CreatableTopic(name="a", num_partitions=-1, replication_factor=-1)
    said = creatable("a", {"num.partitions": "4", "default.replication.factor": "2"})
    assert (said.num_partitions, said.replication_factor) == (4, 2)
    offsets = creatable("__consumer_offsets", {"offsets.topic.replication.factor": "1"})
    assert (offsets.num_partitions, offsets.replication_factor) == (50, 1)
    assert {each.name: each.value for each in offsets.configs} == {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": "104857600",
    }


def test_a_principal_is_written_as_the_default_builder_writes_it() -> None:
    data = principal_bytes("User:a:b")
    principal = DefaultPrincipalData.read(data[2:], int.from_bytes(data[:2]))
    assert (principal.type, principal.name, principal.token_authenticated) == ("User", "a:b", False)


@pytest.mark.parametrize("api", forwarded.APIS, ids=lambda api: api.request.__name__)
def test_every_forwarded_api_has_an_error_response_in_every_version(api: Any) -> None:
    for version in range(api.request.min_version, api.request.max_version + 1):
        error = api.error(api.request(), error_codes.REQUEST_TIMED_OUT, None)
        assert api.response.read(error.write(version), version) is not None
