"""A controller on a clock that stands still, and a small cluster in its log."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from mockraft import Controller
from mockraft.kafka_api.clock import VirtualClock
from mockraft.wire.records.partition_record import PartitionRecord
from mockraft.wire.records.register_broker_record import BrokerEndpoint, RegisterBrokerRecord
from mockraft.wire.records.topic_record import TopicRecord

TOPIC_ID = bytes(15) + b"\x07"


def directory(broker_id: int, number: int = 1) -> bytes:
    return bytes(14) + bytes((broker_id, 100 + number))


def registered(broker_id: int, epoch: int) -> RegisterBrokerRecord:
    return RegisterBrokerRecord(
        broker_id=broker_id,
        broker_epoch=epoch,
        incarnation_id=bytes(15) + bytes((broker_id,)),
        end_points=[BrokerEndpoint(name="PLAINTEXT", host="127.0.0.1", port=9092 + broker_id, security_protocol=0)],
        features=[],
        rack=f"rack-{broker_id}",
        fenced=True,
        log_dirs=[directory(broker_id), directory(broker_id, 2)],
    )


def cluster(controller: Controller) -> Controller:
    """Brokers 1 to 3, unfenced, and partition 0 of the topic `orders` on all of them, led by broker 1."""
    state = controller.state
    offset = state.quorum().log_end_offset
    state.append([registered(broker_id, offset + broker_id) for broker_id in (1, 2, 3)])
    for broker_id in (1, 2, 3):
        state.unfence(broker_id)
    partition = PartitionRecord(
        partition_id=0,
        topic_id=TOPIC_ID,
        replicas=[1, 2, 3],
        isr=[1, 2, 3],
        leader=1,
        leader_epoch=0,
        partition_epoch=0,
        directories=[directory(broker_id) for broker_id in (1, 2, 3)],
    )
    state.append([TopicRecord(name="orders", topic_id=TOPIC_ID), partition])
    return controller


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
async def controller(clock: VirtualClock) -> AsyncIterator[Controller]:
    async with Controller(clock=clock) as controller:
        yield cluster(controller)


@pytest.fixture
def saved(tmp_path: Path, controller: Controller) -> Callable[[], Path]:
    def save() -> Path:
        controller.state.save(tmp_path / "three-brokers")
        return tmp_path / "three-brokers"

    return save
