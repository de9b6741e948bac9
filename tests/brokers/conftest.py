"""Answers of a controller, made by hand, and observers and brokers to give them to."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from mockraft import BrokerState, Controller, SimulatedBroker
from mockraft.brokers.config import BrokerConfig
from mockraft.brokers.disks.disk import Disk
from mockraft.brokers.disks.memory_disk import MemoryDisk
from mockraft.brokers.metadata.metadata_view import MetadataView
from mockraft.brokers.metadata.observer import Observer
from mockraft.releases import DEFAULT
from mockraft.wire import api_keys, error_codes, metadata_log_frame, record_batch
from mockraft.wire.directory_ids import UNASSIGNED
from mockraft.wire.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from mockraft.wire.messages.fetch_response import (
    FetchableTopicResponse,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from mockraft.wire.messages.unregister_broker_request import UnregisterBrokerRequest
from mockraft.wire.records.feature_level_record import FeatureLevelRecord
from mockraft.wire.records.no_op_record import NoOpRecord
from mockraft.wire.records.voters_record import Endpoint, Voter, VotersRecord
from mockraft.wire.topic_names import CLUSTER_METADATA_ID

from ..topics import ask, assigned, create_topics
from ..waiting import until

LEADER_ID = 3000
ENDPOINT = ("127.0.0.1", 9093)


def fetched(
    records: bytes = b"",
    *,
    high_watermark: int = 0,
    leader: tuple[int, int] = (LEADER_ID, 1),
    endpoints: Sequence[tuple[int, str, int]] = ((LEADER_ID, *ENDPOINT),),
    topic_id: bytes = CLUSTER_METADATA_ID,
    error_code: int = 0,
    top_error_code: int = 0,
    **partition: Any,
) -> FetchResponse:
    """A Fetch response as the leader gives it."""
    data = PartitionData(
        partition_index=partition.pop("partition_index", 0),
        error_code=error_code,
        high_watermark=high_watermark,
        current_leader=LeaderIdAndEpoch(leader_id=leader[0], leader_epoch=leader[1]),
        records=records,
        **partition,
    )
    return FetchResponse(
        error_code=top_error_code,
        responses=[FetchableTopicResponse(topic_id=topic_id, partitions=[data])],
        node_endpoints=[NodeEndpoint(node_id=n, host=host, port=port) for n, host, port in endpoints],
    )


def batch(offset: int, *records: Any, epoch: int = 1) -> bytes:
    """One data batch; NoOp records when none are given."""
    values = [metadata_log_frame.encode(record, 0) for record in records or (NoOpRecord(),)]
    return record_batch.encode(values, base_offset=offset, leader_epoch=epoch, timestamp_ms=1)


def voters_batch(offset: int, *voters: tuple[int, str, int], epoch: int = 1) -> bytes:
    """A control batch with a VotersRecord."""
    record = VotersRecord(
        voters=[
            Voter(voter_id=n, endpoints=[Endpoint(name="CONTROLLER", host=host, port=port)]) for n, host, port in voters
        ]
    )
    pair = (record_batch.control_key(record_batch.KRAFT_VOTERS), record.write(0))
    return record_batch.encode_control([pair], base_offset=offset, leader_epoch=epoch, timestamp_ms=1)


def metadata_version(level: int) -> FeatureLevelRecord:
    return FeatureLevelRecord(name="metadata.version", feature_level=level)


@pytest.fixture
def observer() -> Observer:
    return Observer(1, "cluster", b"d" * 16, MetadataView(1))


@pytest.fixture
def led(observer: Observer) -> Observer:
    """An observer that knows its leader, node 3000 in epoch 1, and has nothing yet."""
    observer.receive(fetched(error_code=error_codes.FENCED_LEADER_EPOCH))
    return observer


@pytest.fixture
def following(led: Observer) -> Observer:
    """An observer that knows its leader and has records 0 to 4, of which 0 to 2 are committed."""
    led.receive(fetched(batch(0) + batch(1) + batch(2) + batch(3, NoOpRecord(), NoOpRecord()), high_watermark=3))
    return led


PATHS = ("/simulated/d0", "/simulated/d1", "/simulated/d2")
HURRIED = {"heartbeat_interval_ms": 50}


def ids(broker: SimulatedBroker) -> list[bytes]:
    return [log_dir.directory_id for log_dir in broker.config.log_dirs]


def joining(controller: Controller, broker_id: int = 1, **options: Any) -> SimulatedBroker:
    return SimulatedBroker.joining(
        controller.bootstrap, controller.cluster_id, broker_id, **{"seed": broker_id, **options}
    )


async def started(controller: Controller, broker_id: int = 1, **options: Any) -> SimulatedBroker:
    broker = joining(controller, broker_id, **options)
    broker.start()
    await broker.wait_until(BrokerState.RUNNING)
    return broker


@asynccontextmanager
async def running(controller: Controller, broker_id: int = 1, **options: Any) -> AsyncIterator[SimulatedBroker]:
    """A broker that runs for as long as the block does."""
    async with joining(controller, broker_id, **options) as broker:
        await broker.wait_until(BrokerState.RUNNING)
        yield broker


class Cluster:
    """A controller, and brokers with directories `paths` whose disks outlive them."""

    paths = PATHS

    def __init__(self, controller: Controller) -> None:
        self.controller = controller
        self.brokers: dict[int, SimulatedBroker] = {}
        self.disks: dict[tuple[int, str], Disk] = {}

    def joining(self, broker_id: int = 1, dirs: int = 2, **options: Any) -> SimulatedBroker:
        broker = SimulatedBroker.joining(
            self.controller.bootstrap,
            self.controller.cluster_id,
            broker_id,
            seed=broker_id,
            log_dir_paths=PATHS[:dirs],
            open_disk=lambda path: self._disk(broker_id, path),
            **{**HURRIED, **options},
        )
        self.brokers[broker_id] = broker
        return broker

    async def start(self, *arguments: Any, **options: Any) -> SimulatedBroker:
        return await self._begin(self.joining(*arguments, **options))

    async def restart(self, broker: SimulatedBroker, **changes: Any) -> SimulatedBroker:
        """The same broker again, with some of its config otherwise, and unregistered meanwhile."""
        await self.stop(broker)
        return await self.start_with(self.again(broker.config, **changes))

    async def start_with(self, config: BrokerConfig) -> SimulatedBroker:
        """A broker of this config, in the place of an earlier one with its id."""
        broker = self.brokers[config.broker_id] = SimulatedBroker(config)
        return await self._begin(broker)

    async def _begin(self, broker: SimulatedBroker) -> SimulatedBroker:
        broker.start()
        await broker.wait_until(BrokerState.RUNNING)
        return broker

    async def stop(self, broker: SimulatedBroker) -> None:
        """It leaves, and can register again at once: its session is not waited for."""
        await broker.shut_down()
        await ask(self.controller.bootstrap, UnregisterBrokerRequest(broker_id=broker.config.broker_id))

    def again(self, config: BrokerConfig, **changes: Any) -> BrokerConfig:
        fresh = bytes([config.incarnation_id[0] ^ 1]) + config.incarnation_id[1:]
        return replace(config, incarnation_id=fresh, previous_broker_epoch=-1, **changes)

    def _disk(self, broker_id: int, path: str) -> Disk:
        return self.disks.setdefault((broker_id, path), MemoryDisk(path))

    async def create(self, topic: str, *replicas: list[int]) -> bytes:
        """Create a topic with these replicas by partition."""
        return (await create_topics(self.controller.bootstrap, assigned(topic, *replicas)))[0]

    async def delete(self, topic: str) -> None:
        request = DeleteTopicsRequest(topics=[DeleteTopicState(name=topic)], timeout_ms=5000)
        await ask(self.controller.bootstrap, request)

    @property
    def image(self) -> Any:
        return self.controller.running.controller.image

    def partition(self, topic_id: bytes, index: int = 0) -> Any:
        return self.image.topics.by_id[topic_id].partitions[index]

    def directories(self, topic_id: bytes) -> list[bytes]:
        """The directory of each partition's first replica by the metadata."""
        partitions = self.image.topics.by_id[topic_id].partitions
        return [partition.directories[0] for _, partition in sorted(partitions.items())]

    async def placed(self, topic_id: bytes) -> list[bytes]:
        await until(lambda: (d := self.directories(topic_id)) and UNASSIGNED not in d)
        return self.directories(topic_id)

    def asked(self, api_key: int, broker_id: int = 1) -> list[Any]:
        requests = [exchange.request for exchange in self.controller.journal.exchanges(api_key)]
        return [request for request in requests if request.broker_id == broker_id]

    async def heartbeats(self, count: int = 3) -> None:
        """Let some more heartbeats come: what was to be said is said."""
        seen = len(self.asked(api_keys.BROKER_HEARTBEAT))
        await until(lambda: len(self.asked(api_keys.BROKER_HEARTBEAT)) >= seen + count)


@pytest.fixture
def release() -> str:
    return DEFAULT


@pytest.fixture
async def cluster(release: str) -> Any:
    async with Controller(release=release, session_timeout_ms=2000) as controller:
        made = Cluster(controller)
        yield made
        for broker in made.brokers.values():
            await broker.kill()
