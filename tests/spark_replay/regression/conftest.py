"""A capture of Kafka's controller; one of mockraft: a broker starts, a topic is made and deleted, the broker leaves."""

import asyncio
from pathlib import Path

import pytest
from mockraft import Controller, SimulatedBroker
from mockraft.brokers.lifecycle import BrokerState
from mockraft.spark_replay.endpoints import Endpoint
from mockraft.spark_replay.exchanges import read_exchanges
from mockraft.spark_replay.recording import Recording
from mockraft.spark_replay.recording_proxy import RecordingProxy
from mockraft.spark_replay.regression.captured import Captured
from mockraft.wire import uuids
from mockraft.wire.client import connect
from mockraft.wire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from mockraft.wire.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState

CAPTURE = Path(__file__).parents[2] / "captures" / "controller-4.3.1.pcap"


@pytest.fixture(scope="session")
def own_capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("own") / "run.pcapng"
    asyncio.run(_record(path))
    return path


@pytest.fixture
def exchanges(own_capture: Path) -> list[Captured]:
    return read_exchanges(own_capture)


async def _record(path: Path) -> None:
    async with (
        Controller() as controller,
        RecordingProxy(Recording(path), [Endpoint(controller.host, controller.port)]) as proxy,
    ):
        broker = SimulatedBroker.joining(proxy.bootstrap, controller.cluster_id, 1, seed=1, serve_clients=False)
        async with broker:
            await broker.wait_until(BrokerState.RUNNING)
            client = await connect("127.0.0.1", int(proxy.bootstrap.rpartition(":")[2]), client_id="tester")
            topics = [CreatableTopic(name="t", num_partitions=2, replication_factor=1)]
            # Version 6 does not tell the id.
            created = await client.send(CreateTopicsRequest(topics=topics, timeout_ms=1000), version=6)
            assert [each.error_code for each in created.topics] == [0]
            topic_id = controller.state.topic("t").topic_id
            deleted = [DeleteTopicState(name=None, topic_id=uuids.read_text(topic_id))]
            answer = await client.send(DeleteTopicsRequest(topics=deleted, timeout_ms=1000))
            assert answer.responses[0].error_code == 0
            await client.close()
            await broker.shut_down()
