"""The image of a cluster out of its records; against the controller's own image in its last test."""

from __future__ import annotations

from typing import Any

from mockraft import Controller
from mockraft.brokers.image import ClusterImage, Partition
from mockraft.brokers.image.cluster_image import APPLIED, NOT_MODELLED, Endpoint
from mockraft.wire import records
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.records.abort_transaction_record import AbortTransactionRecord
from mockraft.wire.records.begin_transaction_record import BeginTransactionRecord
from mockraft.wire.records.broker_registration_change_record import BrokerRegistrationChangeRecord
from mockraft.wire.records.clear_elr_record import ClearElrRecord
from mockraft.wire.records.config_record import ConfigRecord
from mockraft.wire.records.end_transaction_record import EndTransactionRecord
from mockraft.wire.records.fence_broker_record import FenceBrokerRecord
from mockraft.wire.records.partition_change_record import PartitionChangeRecord
from mockraft.wire.records.partition_record import PartitionRecord
from mockraft.wire.records.register_broker_record import BrokerEndpoint, RegisterBrokerRecord
from mockraft.wire.records.register_controller_record import ControllerEndpoint, RegisterControllerRecord
from mockraft.wire.records.remove_topic_record import RemoveTopicRecord
from mockraft.wire.records.topic_record import TopicRecord
from mockraft.wire.records.unfence_broker_record import UnfenceBrokerRecord
from mockraft.wire.records.unregister_broker_record import UnregisterBrokerRecord
from mockraft.wire.records.unregister_controller_record import UnregisterControllerRecord

from ...rows import each_row
from ...waiting import until
from ..conftest import running

TOPIC = b"t" * 16
TRANSACTIONS = {"BeginTransactionRecord", "EndTransactionRecord", "AbortTransactionRecord"}


def image_of(*applied: Any) -> ClusterImage:
    image = ClusterImage()
    tell(image, *applied)
    return image


def tell(image: ClusterImage, *applied: Any) -> None:
    for record in applied:
        image.apply(RecordAt(record, 0))


def created(name: str = "a", topic_id: bytes = TOPIC, **fields: Any) -> tuple[Any, ...]:
    usual = {"replicas": [1, 2], "isr": [1, 2], "leader": 1, "leader_epoch": 3, "partition_epoch": 5}
    return (
        TopicRecord(name=name, topic_id=topic_id),
        PartitionRecord(partition_id=0, topic_id=topic_id, **{**usual, **fields}),
    )


def changed(**fields: Any) -> PartitionChangeRecord:
    return PartitionChangeRecord(partition_id=0, topic_id=TOPIC, **fields)


def partition(image: ClusterImage) -> Partition:
    found = image.partition(TOPIC, 0)
    assert found is not None
    return found


def registered(broker_id: int = 1, **fields: Any) -> RegisterBrokerRecord:
    endpoint = BrokerEndpoint(name="PLAINTEXT", host="b", port=9092, security_protocol=0)
    return RegisterBrokerRecord(broker_id=broker_id, broker_epoch=7, end_points=[endpoint], **fields)


def test_every_metadata_record_is_applied_or_left_out_for_a_reason() -> None:
    kinds = {name for name in records.NAMES if records.by_name(name).api_key >= 0}
    assert sorted([*APPLIED, *NOT_MODELLED, *TRANSACTIONS]) == sorted(kinds)


def test_change_replaces_named_fields_and_counts_epochs() -> None:
    image = image_of(*created(), changed(isr=[1]))
    assert partition(image) == Partition(
        (1, 2), (bytes(16), bytes(16)), (1,), leader=1, leader_epoch=3, partition_epoch=6
    )
    tell(image, changed(leader=1))
    assert (partition(image).leader_epoch, partition(image).partition_epoch) == (4, 7)
    tell(image, changed(leader=-1, eligible_leader_replicas=[2], last_known_elr=[1], isr=[]))
    assert partition(image)[2:6] == ((), -1, 5, 8)
    assert (partition(image).elr, partition(image).last_known_elr) == ((2,), (1,))


def test_a_reassignment_is_seen_with_its_directories() -> None:
    there = b"d" * 16
    image = image_of(*created(), changed(replicas=[1, 2, 3], adding_replicas=[3], directories=[there] * 3))
    assert (partition(image).adding_replicas, partition(image).directory(3)) == ((3,), there)
    tell(image, changed(replicas=[2, 3], adding_replicas=[], directories=[there] * 2))
    assert (partition(image).replicas, partition(image).adding_replicas) == ((2, 3), ())


@each_row("name", ["a", ""])
def test_an_elr_is_cleared_of_one_topic_or_of_all(name: str) -> None:
    image = image_of(*created(eligible_leader_replicas=[2], last_known_elr=[2]))
    tell(image, ClearElrRecord(topic_name="other"))
    assert partition(image).elr == (2,)
    tell(image, ClearElrRecord(topic_name=name))
    assert (partition(image).elr, partition(image).last_known_elr, partition(image).partition_epoch) == ((), (), 6)


def test_a_topic_that_is_removed_takes_its_configs_along() -> None:
    image = image_of(*created(), ConfigRecord(resource_type=2, resource_name="a", name="retention.ms", value="1"))
    assert image.config(2, "a") == {"retention.ms": "1"}
    tell(image, RemoveTopicRecord(topic_id=TOPIC))
    assert (image.topics, image.topics_by_name, image.config(2, "a")) == ({}, {}, {})


def test_a_config_is_set_and_deleted() -> None:
    record = ConfigRecord(resource_type=4, resource_name="", name="k", value="v")
    image = image_of(record)
    assert image.config(4, "") == {"k": "v"}
    tell(image, ConfigRecord(resource_type=4, resource_name="", name="k", value=None))
    assert image.configs == {}


def test_a_broker_is_fenced_unfenced_shut_down_and_forgotten() -> None:
    image = image_of(registered(fenced=True, log_dirs=[b"d" * 16], rack="r"))
    assert image.alive() == []
    tell(image, BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=7, fenced=-1))
    assert [broker.broker_id for broker in image.alive()] == [1]
    tell(image, BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=7, in_controlled_shutdown=1))
    assert (image.brokers[1].in_controlled_shutdown, image.brokers[1].log_dirs) == (True, (b"d" * 16,))
    tell(image, FenceBrokerRecord(id=1, epoch=7))
    assert image.brokers[1].fenced
    tell(image, UnfenceBrokerRecord(id=1, epoch=7))
    assert not image.brokers[1].fenced
    tell(image, UnregisterBrokerRecord(broker_id=1, broker_epoch=7))
    assert image.brokers == {}


@each_row(
    ("directory", "is_online"),
    [(bytes(16), True), (bytes(15) + b"\1", True), (bytes(15) + b"\2", False), (b"d" * 16, True), (b"e" * 16, False)],
)
def test_a_directory_is_online_as_kafka_has_it(directory: bytes, is_online: bool) -> None:
    image = image_of(registered(log_dirs=[b"d" * 16]))
    assert image.brokers[1].has_online_dir(directory) is is_online


def test_a_transaction_is_taken_whole_or_not_at_all() -> None:
    image = image_of(BeginTransactionRecord(), *created())
    assert image.topics == {}
    tell(image, AbortTransactionRecord())
    assert image.topics == {}
    tell(image, BeginTransactionRecord(), *created(), EndTransactionRecord())
    assert list(image.topics_by_name) == ["a"]


def test_a_snapshot_starts_over() -> None:
    image = image_of(*created(), registered(), BeginTransactionRecord())
    before = image.version
    image.clear()
    assert (image.topics, image.topics_by_name, image.brokers) == ({}, {}, {})
    assert image.version > before
    tell(image, *created())
    assert list(image.topics_by_name) == ["a"]


async def test_image_equals_the_controllers_and_exists_only_with_a_client_listener() -> None:
    async with (
        Controller() as controller,
        running(controller, rack="r") as broker,
        running(controller, 2, serve_clients=False) as silent,
    ):
        assert (silent.image, silent.listener) == (None, None)
        assert broker.image is not None
        theirs = controller.running.controller.image
        await until(lambda: broker.observer.applied_offset >= controller.running.controller.log.high_watermark - 1)
        assert set(broker.image.brokers) == set(theirs.cluster.brokers) == {1, 2}
        assert broker.image.brokers[1].endpoints["PLAINTEXT"].port == broker.config.listeners[0].port != 0
        assert broker.image.features == theirs.features
        assert set(broker.image.controllers) == set(theirs.cluster.controllers)


def test_a_controller_is_known_by_the_endpoints_that_it_registered() -> None:
    endpoint = ControllerEndpoint(name="CONTROLLER", host="c", port=9093, security_protocol=1)
    image = image_of(RegisterControllerRecord(controller_id=3000, end_points=[endpoint]))
    (found,) = image.controllers.values()
    assert (found.controller_id, found.endpoints) == (3000, {"CONTROLLER": Endpoint("c", 9093, 1)})
    tell(image, UnregisterControllerRecord(controller_id=3000))
    assert image.controllers == {}


def test_a_name_is_free_once_its_topic_is_removed() -> None:
    image = image_of(*created("a"), RemoveTopicRecord(topic_id=TOPIC))
    assert (image.topics, image.topics_by_name) == ({}, {})
    tell(image, RemoveTopicRecord(topic_id=TOPIC), *created("a", b"u" * 16))
    assert image.topics_by_name["a"].topic_id == b"u" * 16
