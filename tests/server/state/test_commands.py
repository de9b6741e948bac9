"""Commands write the records of Kafka's controller, and refuse what it would refuse."""

import asyncio
from typing import Any

import pytest
from mockraft import Controller
from mockraft.kafka_api.clock import VirtualClock
from mockraft.wire import uuids
from mockraft.wire.client import connect
from mockraft.wire.json_form import Json
from mockraft.wire.messages.fetch_request import ReplicaState
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.records.config_record import ConfigRecord
from mockraft.wire.records.partition_record import PartitionRecord
from mockraft.wire.records.topic_record import TopicRecord
from mockraft.wire.records.unregister_broker_record import UnregisterBrokerRecord

from ...fetches import fetch_request
from .conftest import directory


def types_since(controller: Controller, offset: int) -> list[str]:
    return [line.type for line in controller.state.metadata_log(offset)]


def end(controller: Controller) -> int:
    return controller.state.quorum().log_end_offset


async def test_fencing_takes_a_broker_out_of_its_isrs_and_unfencing_renews_the_session(
    controller: Controller, clock: VirtualClock
) -> None:
    state, before = controller.state, end(controller)
    state.fence(1)
    assert types_since(controller, before) == ["PartitionChangeRecord", "BrokerRegistrationChangeRecord"]
    assert state.broker(1).fenced
    assert state.topic("orders").partitions[0].leader == 2
    state.fence(1)
    assert len(types_since(controller, before)) == 2
    clock.advance(8_000)
    state.unfence(1)
    assert not state.broker(1).fenced
    assert state.broker(1).last_contact_ms == clock.now_ms()


async def test_an_expired_session_fences_as_its_timeout_would(controller: Controller) -> None:
    state = controller.state
    state.expire_session(2)
    assert [broker.fenced for broker in state.brokers()] == [False, True, False]
    assert state.broker(2).last_contact_ms is None


async def test_an_unregistered_broker_is_forgotten(controller: Controller) -> None:
    state = controller.state
    state.unregister(3)
    assert [broker.broker_id for broker in state.brokers()] == [1, 2]
    record = state.metadata_log(-1)[0].record
    assert isinstance(record, UnregisterBrokerRecord)
    assert record.broker_id == 3


async def test_a_failed_log_dir_moves_its_leaders(controller: Controller) -> None:
    state = controller.state
    state.fail_log_dir(1, uuids.text_of(directory(1)))
    assert state.topic("orders").partitions[0].leader == 2
    with pytest.raises(ValueError, match=r"broker 1 has no log directory .* online; it has: "):
        state.fail_log_dir(1, directory(1))


async def test_a_topic_is_created_by_number_or_by_replicas(controller: Controller) -> None:
    state, before = controller.state, end(controller)
    created = state.create_topic("payments", 2, 3, configs={"retention.ms": "5"})
    assert [sorted(partition.replicas) for partition in created.partitions] == [[1, 2, 3], [1, 2, 3]]
    assert types_since(controller, before) == ["TopicRecord", "ConfigRecord", "PartitionRecord", "PartitionRecord"]
    placed = state.create_topic("letters", replicas=[[3, 1], [2, 3]])
    assert [partition.replicas for partition in placed.partitions] == [(3, 1), (2, 3)]


async def test_topic_that_the_controller_refuses_is_not_created(controller: Controller) -> None:
    with pytest.raises(ValueError, match=r"topic 'orders' cannot be created: Topic 'orders' already exists\."):
        controller.state.create_topic("orders")
    with pytest.raises(ValueError, match="Unable to replicate the partition 4 time"):
        controller.state.create_topic("letters", replication_factor=4)
    assert [topic.name for topic in controller.state.topics()] == ["orders"]


async def test_a_leader_is_elected_by_name_and_the_preferred_one_without(controller: Controller) -> None:
    state = controller.state
    assert state.elect("orders", 0, 3).leader == 3
    assert state.elect("orders", 0).leader == 1
    assert state.metadata_log(-1)[0].type == "PartitionChangeRecord"
    before = end(controller)
    assert state.elect("orders", 0, 1).leader_epoch == 2
    assert end(controller) == before


async def test_out_of_sync_replica_leads_only_by_unclean_election(controller: Controller) -> None:
    state = controller.state
    state.fence(3)
    state.unfence(3)
    assert state.topic("orders").partitions[0].isr == (1, 2)
    with pytest.raises(ValueError, match=r"broker 3 cannot lead orders-0: replicas \[1, 2, 3\], ISR \[1, 2\]"):
        state.elect("orders", 0, 3)
    assert state.elect("orders", 0, 3, unclean=True).isr == (3,)


async def test_records_are_appended_as_objects_as_json_and_as_they_were_read(controller: Controller) -> None:
    state = controller.state
    config = ConfigRecord(resource_type=2, resource_name="orders", name="retention.ms", value="5")
    tree: dict[str, Json] = {
        "type": "CONFIG_RECORD",
        "data": {"resourceType": 2, "resourceName": "orders", "name": "retention.ms", "value": "7"},
    }
    first, second, third = state.append([config, tree, RecordAt(config, 0)])
    assert (first.record, first.version, third.offset) == (config, 0, first.offset + 2)
    assert isinstance(second.record, ConfigRecord)
    assert second.record.value == "7"
    (again,) = state.append([second])
    (and_again,) = state.append([second.to_json()])
    assert again.record == and_again.record == second.record
    assert state.configs()[0].values == {"retention.ms": "7"}


@pytest.mark.parametrize(
    ("record", "refusal"),
    [
        (
            {"type": "Nonsense"},
            r"^records\[1\]\.type='Nonsense': unknown metadata record; there are: AbortTransactionRecord",
        ),
        ({"type": "NoOpRecord", "version": 9, "record": {}}, "version=9: NoOpRecord has the versions 0 to 0"),
        ({"type": "NoOpRecord"}, "record=None: give the fields of NoOpRecord"),
        ({"type": "ConfigRecord", "record": {"nam": "x"}}, r"^records\[1\]\.record\.nam: .* did you mean name"),
        (
            UnregisterBrokerRecord(broker_id=8, broker_epoch=1),
            r"^records\[1\]: Unregister.* does not follow from the state",
        ),
        ("a text", r"^records\[1\]: str is no metadata record"),
    ],
)
async def test_invalid_record_is_refused_and_not_written(controller: Controller, record: Any, refusal: str) -> None:
    before = end(controller)
    with pytest.raises(ValueError, match=refusal):
        controller.state.append([ConfigRecord(resource_type=2, resource_name="t", name="a", value="b"), record])
    assert end(controller) == before


async def test_partition_of_a_negative_number_is_refused(controller: Controller) -> None:
    topic = TopicRecord(name="payments", topic_id=bytes(15) + b"\x07")
    partition = PartitionRecord(partition_id=-1, topic_id=topic.topic_id, replicas=[1], isr=[1], leader=1)
    with pytest.raises(ValueError, match=r"^records\[1\]: <?PartitionRecord.* does not follow from the state"):
        controller.state.append([topic, partition])


async def test_a_snapshot_covers_all_there_is_and_a_second_one_is_the_same(controller: Controller) -> None:
    state = controller.state
    taken = state.snapshot()
    assert taken.end_offset == end(controller)
    assert state.snapshot() == taken
    assert state.snapshots() == [taken]
    assert taken.to_json()["fileName"] == f"{taken.end_offset:020d}-0000000001.checkpoint"


async def test_command_completes_a_parked_fetch(controller: Controller) -> None:
    client = await connect(controller.host, controller.port)
    try:
        request = fetch_request(end(controller), replica_state=ReplicaState(replica_id=9), max_wait_ms=60_000)
        waiting = asyncio.create_task(client.send(request, version=17))
        while not controller.running.node.parked:
            await asyncio.sleep(0)
        controller.state.fence(1)
        response = await waiting
    finally:
        await client.close()
    assert response.responses[0].partitions[0].records


@pytest.mark.parametrize("command", ["fence", "unfence", "expire_session", "unregister", "broker"])
async def test_command_on_an_unknown_broker_lists_the_known_ones(controller: Controller, command: str) -> None:
    with pytest.raises(ValueError, match=r"broker 7 is not registered; there are \[1, 2, 3\]"):
        getattr(controller.state, command)(7)


async def test_a_topic_or_partition_that_is_not_there_is_named(controller: Controller) -> None:
    with pytest.raises(ValueError, match=r"there is no topic 'nobody'; there are: orders"):
        controller.state.elect("nobody", 0)
    with pytest.raises(ValueError, match="topic orders has no partition 4; it has 0 to 0"):
        controller.state.elect("orders", 4)


async def test_a_controller_that_resigned_leads_again_later(controller: Controller, clock: VirtualClock) -> None:
    state = controller.state
    state.resign()
    with pytest.raises(RuntimeError, match="no controller is active"):
        state.fence(1)
    clock.advance(2_000)
    assert state.quorum().epoch > 1
    state.fence(1)
    assert state.broker(1).fenced
