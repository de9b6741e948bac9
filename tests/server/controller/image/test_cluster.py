"""Brokers and topics in the image."""

import tracemalloc
from typing import Any

import pytest
from mockraft.releases import metadata_version
from mockraft.server.controller.image import Image
from mockraft.server.controller.image.cluster import FEATURES_KEPT, SETS_KEPT, Levels, ReplayError, kept_by_features
from mockraft.server.controller.image.topics import Partition
from mockraft.wire import directory_ids
from mockraft.wire.records.begin_transaction_record import BeginTransactionRecord
from mockraft.wire.records.broker_registration_change_record import BrokerRegistrationChangeRecord
from mockraft.wire.records.clear_elr_record import ClearElrRecord
from mockraft.wire.records.config_record import ConfigRecord
from mockraft.wire.records.end_transaction_record import EndTransactionRecord
from mockraft.wire.records.partition_change_record import PartitionChangeRecord
from mockraft.wire.records.partition_record import PartitionRecord
from mockraft.wire.records.register_broker_record import BrokerFeature, RegisterBrokerRecord
from mockraft.wire.records.remove_access_control_entry_record import RemoveAccessControlEntryRecord
from mockraft.wire.records.remove_topic_record import RemoveTopicRecord
from mockraft.wire.records.topic_record import TopicRecord
from mockraft.wire.records.unregister_broker_record import UnregisterBrokerRecord

from ....conftest import uuid
from ....rows import each_row

A, B, C = uuid(1), uuid(2), uuid(3)


def image_with_broker(**fields: Any) -> Image:
    image = Image()
    values = {"broker_id": 1, "broker_epoch": 5, "fenced": True, "log_dirs": [A, B], **fields}
    image.apply(RegisterBrokerRecord(**values), 17)
    return image


def changed(**fields: Any) -> Any:
    image = image_with_broker(cordoned_log_dirs=[A])
    record = BrokerRegistrationChangeRecord(**{"broker_id": 1, "broker_epoch": 5, **fields})
    image.apply(record, 18)
    return image.cluster.brokers[1]


def test_the_registration_offset_is_the_registration_records_own() -> None:
    assert image_with_broker().cluster.brokers[1].registration_offset == 17
    assert changed(fenced=-1).registration_offset == 17


def test_directories_are_sorted_as_java_does_with_the_top_bit_first() -> None:
    high, low = b"\x80" + bytes(15), b"\x7f" + bytes(15)
    assert image_with_broker(log_dirs=[low, high]).cluster.brokers[1].log_dirs == (high, low)


@each_row(("fenced", "is_fenced"), [(1, True), (-1, False), (0, True)])
def test_fencing_changes_only_on_request(fenced: int, is_fenced: bool) -> None:
    assert changed(fenced=fenced).fenced is is_fenced


def test_controlled_shutdown_is_entered_and_outlives_fencing() -> None:
    assert changed(in_controlled_shutdown=1).in_controlled_shutdown is True
    assert changed(in_controlled_shutdown=1, fenced=1).is_active is False


@each_row(
    ("fields", "log_dirs", "cordoned"),
    {
        "no directories: no change": ({"log_dirs": []}, (A, B), (A,)),
        "directories": ({"log_dirs": [B]}, (B,), (A,)),
        "null: no change": ({"cordoned_log_dirs": None}, (A, B), (A,)),
        "nothing cordoned": ({"cordoned_log_dirs": []}, (A, B), ()),
    },
)
def test_directories_after_a_change(fields: Any, log_dirs: tuple[bytes, ...], cordoned: tuple[bytes, ...]) -> None:
    broker = changed(**fields)
    assert (broker.log_dirs, broker.cordoned_log_dirs) == (log_dirs, cordoned)


def test_a_change_of_another_epoch_is_a_bug_in_the_log() -> None:
    with pytest.raises(ReplayError, match="another epoch"):
        changed(broker_epoch=4)


def test_directories_belong_to_the_broker_that_registered_them_last() -> None:
    image = image_with_broker()
    image.apply(RegisterBrokerRecord(broker_id=1, broker_epoch=9, log_dirs=[B, C]), 30)
    assert image.cluster.broker_by_directory == {B: 1, C: 1}
    image.apply(UnregisterBrokerRecord(broker_id=1, broker_epoch=9), 31)
    assert image == Image()


@each_row(
    ("log_dirs", "cordoned", "usable"),
    [([], [A], True), ([A, B], None, True), ([A, B], [], True), ([A, B], [A], True), ([A, B], [B, A, C], False)],
)
def test_a_broker_with_all_directories_cordoned_takes_no_new_replicas(
    log_dirs: list[bytes], cordoned: list[bytes] | None, usable: bool
) -> None:
    broker = image_with_broker(log_dirs=log_dirs, cordoned_log_dirs=cordoned).cluster.brokers[1]
    assert broker.has_uncordoned_log_dirs is usable


@each_row(("log_dirs", "directory"), [([], directory_ids.MIGRATING), ([A], A), ([A, B], directory_ids.UNASSIGNED)])
def test_new_replica_is_placed_in_the_only_directory(log_dirs: list[bytes], directory: bytes) -> None:
    assert image_with_broker(log_dirs=log_dirs).cluster.default_dir(1) == directory


def test_a_new_replica_of_an_unknown_broker_is_unassigned() -> None:
    assert Image().cluster.default_dir(1) == directory_ids.UNASSIGNED


@each_row(
    ("log_dirs", "directory", "online"),
    [
        ([A], A, True),
        ([A], B, False),
        ([], B, True),
        ([A], directory_ids.UNASSIGNED, True),
        ([A], directory_ids.MIGRATING, True),
        ([], directory_ids.LOST, False),
    ],
)
def test_which_directories_are_online(log_dirs: list[bytes], directory: bytes, online: bool) -> None:
    assert image_with_broker(log_dirs=log_dirs).cluster.brokers[1].has_online_dir(directory) is online


T = bytes([1]) * 16
U = bytes([2]) * 16
DIR_A, DIR_B, DIR_C = (bytes([9] * 15 + [n]) for n in (1, 2, 3))


def image_with_partition(**fields: Any) -> Image:
    image = Image()
    image.apply(TopicRecord(name="t", topic_id=T), 0)
    values: dict[str, Any] = {
        "partition_id": 0,
        "topic_id": T,
        "replicas": [1, 2],
        "isr": [1, 2],
        "leader": 1,
        "leader_epoch": 4,
        "partition_epoch": 8,
        "directories": [DIR_A, DIR_B],
        **fields,
    }
    image.apply(PartitionRecord(**values), 1)
    return image


def change(image: Image, **fields: Any) -> Any:
    image.apply(PartitionChangeRecord(partition_id=0, topic_id=T, **fields), 2)
    return image.topics.by_name["t"].partitions[0]


def test_change_record_replaces_only_named_fields_and_counts_itself() -> None:
    image = image_with_partition(eligible_leader_replicas=[3])
    partition = change(image, isr=[2])
    assert (partition.isr, partition.replicas, partition.elr) == ((2,), (1, 2), (3,))
    assert (partition.directories, partition.partition_epoch) == ((DIR_A, DIR_B), 9)
    assert change(image).partition_epoch == 10


@each_row(("leader", "leader_epoch"), [(-2, 4), (1, 5), (2, 5), (-1, 5)])
def test_the_leader_epoch_grows_whenever_a_leader_is_named_even_the_same(leader: int, leader_epoch: int) -> None:
    assert change(image_with_partition(), leader=leader).leader_epoch == leader_epoch


def test_partition_epochs_overflow_as_in_kafka() -> None:
    partition = change(image_with_partition(leader_epoch=2**31 - 1, partition_epoch=2**31 - 1), leader=2)
    assert (partition.leader_epoch, partition.partition_epoch) == (-(2**31), -(2**31))


def test_directories_are_padded_with_migrating() -> None:
    image = image_with_partition(directories=[])
    assert image.topics.by_name["t"].partitions[0].directories == (directory_ids.MIGRATING,) * 2
    assert change(image, replicas=[1, 2, 3]).directories == (directory_ids.MIGRATING,) * 3


def test_removing_a_topic_takes_its_configs_and_indexes_along() -> None:
    image = image_with_partition(adding_replicas=[2], leader=-1)
    image.apply(ConfigRecord(resource_type=2, resource_name="t", name="retention.ms", value="1"), 2)
    image.apply(RemoveTopicRecord(topic_id=T), 3)
    assert image == Image()
    index = image.topics.index
    assert index.in_isr(1) == index.leaderless() == index.in_directory(DIR_A) == index.reassigning() == []
    assert index.imbalanced() == []


def test_clearing_the_elr_is_a_change_of_those_that_had_one() -> None:
    image = image_with_partition(eligible_leader_replicas=[3], last_known_elr=[2])
    image.apply(ClearElrRecord(topic_name="t"), 2)
    partition = image.topics.by_name["t"].partitions[0]
    assert (partition.elr, partition.last_known_elr) == ((), ())
    assert (partition.partition_epoch, partition.leader_epoch) == (9, 4)
    image.apply(ClearElrRecord(topic_name=""), 3)
    assert image.topics.by_name["t"].partitions[0] == partition
    assert image.topics.index.in_elr(3) == []


def test_clearing_all_elrs_reaches_every_topic() -> None:
    image = image_with_partition(eligible_leader_replicas=[3])
    image.apply(TopicRecord(name="u", topic_id=U), 2)
    image.apply(
        PartitionRecord(partition_id=0, topic_id=U, replicas=[1], isr=[], leader=-1, eligible_leader_replicas=[1]), 3
    )
    image.apply(ClearElrRecord(topic_name=""), 4)
    assert [topic.partitions[0].elr for topic in image.topics.by_id.values()] == [(), ()]


def test_a_second_topic_of_the_same_name_is_a_bug_in_the_log() -> None:
    with pytest.raises(ReplayError, match="already"):
        image_with_partition().apply(TopicRecord(name="t", topic_id=U), 2)


def test_the_index_follows_isr_elr_leader_and_directories() -> None:
    image = image_with_partition()
    index = image.topics.index
    assert (index.in_isr(1), index.in_isr(2), index.led_by(1)) == ([(T, 0)], [(T, 0)], [(T, 0)])
    assert (index.in_directory(DIR_A), index.imbalanced()) == ([(T, 0)], [])
    change(image, isr=[2], leader=2, eligible_leader_replicas=[1], directories=[DIR_C, DIR_B], adding_replicas=[2])
    assert (index.in_isr(1), index.in_isr(2), index.in_elr(1)) == ([], [(T, 0)], [(T, 0)])
    assert (index.leads_any(1), index.leads_any(2)) == (False, True)
    assert (index.in_directory(DIR_A), index.in_directory(DIR_C)) == ([], [(T, 0)])
    assert (index.imbalanced(), index.reassigning(), index.leaderless()) == ([(T, 0)], [(T, 0)], [])
    change(image, leader=-1)
    assert index.leaderless() == [(T, 0)]


def test_index_follows_a_new_preferred_replica_of_the_same_leader() -> None:
    image = image_with_partition()
    change(image, replicas=[2, 1], directories=[DIR_B, DIR_A])
    assert image.topics.index.imbalanced() == [(T, 0)]


def test_reserved_directories_are_not_indexed() -> None:
    image = image_with_partition(directories=[directory_ids.UNASSIGNED, directory_ids.LOST])
    assert image.topics.index.in_directory(directory_ids.UNASSIGNED) == []


def test_a_topics_partitions_come_in_their_order_from_the_index() -> None:
    image = image_with_partition()
    for partition_id in (2**31 - 1, 5, 1_023, 3, 1_024, 4, 70_000):
        image.apply(
            PartitionRecord(
                partition_id=partition_id, topic_id=T, replicas=[1], isr=[1], leader=1, directories=[DIR_A]
            ),
            2,
        )
    assert [place.partition_id for place in image.topics.index.in_isr(1)] == [
        *(0, 3, 4, 5, 1_023, 1_024, 70_000, 2**31 - 1)
    ]
    image.apply(RemoveTopicRecord(topic_id=T), 3)
    assert image.topics.index.in_isr(1) == []


def test_results_for_few_features_are_kept_and_those_for_many_are_not() -> None:
    calls: list[tuple[int, str]] = []

    @kept_by_features
    def joined(levels: Levels, other: str) -> str:
        calls.append((len(levels), other))
        return f"{levels[0]} {other}"

    def features(count: int, highest: int) -> list[BrokerFeature]:
        return [BrokerFeature(name="f", min_supported_version=0, max_supported_version=highest) for _ in range(count)]

    few, many = FEATURES_KEPT, FEATURES_KEPT + 1
    for count, other in [(few, "a"), (few, "a"), (few, "b"), (few, "a"), (many, "a"), (many, "a")]:
        assert joined(features(count, 7), other) == f"('f', 0, 7) {other}"
    assert calls == [(few, "a"), (few, "b"), (many, "a"), (many, "a")]
    for highest in range(SETS_KEPT + 1):
        joined(features(few, highest), "a")
    calls.clear()
    assert joined(features(few, 0), "a") == "('f', 0, 0) a"
    assert calls == [(few, "a")]


def test_a_large_partition_id_takes_no_memory() -> None:
    tracemalloc.start()
    try:
        image = image_with_partition()
        image.apply(PartitionRecord(partition_id=100_000_000, topic_id=T, replicas=[1], isr=[1], leader=1), 2)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_a_negative_partition_id_is_refused() -> None:
    with pytest.raises(ReplayError, match="topic t has no partition -1"):
        image_with_partition().apply(PartitionRecord(partition_id=-1, topic_id=T, replicas=[1], isr=[1], leader=1), 2)


def test_directories_that_a_change_leaves_out_are_offline_and_an_empty_list_changes_none() -> None:
    assert changed(log_dirs=[B]).offline_log_dirs == (A,)
    assert changed(log_dirs=[A, B]).offline_log_dirs == ()
    assert changed(log_dirs=[]).offline_log_dirs == ()


def test_a_registration_keeps_its_flags() -> None:
    image = image_with_broker(in_controlled_shutdown=True, is_migrating_zk_broker=True)
    registration = image.cluster.brokers[1]
    assert registration.in_controlled_shutdown is True
    for level, may_migrate in ((7, False), (8, True)):
        record = registration.to_record(metadata_version(level)).record
        assert (record.in_controlled_shutdown, record.is_migrating_zk_broker) == (True, may_migrate)


def test_the_last_known_leader_comes_from_the_partitions_record() -> None:
    assert Partition.from_record(PartitionRecord(replicas=[1, 2], isr=[], last_known_elr=[2])).last_known_elr == (2,)


def test_records_of_a_transaction_keep_their_offsets() -> None:
    image = Image()
    image.apply(BeginTransactionRecord(), 3)
    image.apply(RegisterBrokerRecord(broker_id=1, broker_epoch=5, log_dirs=[A]), 4)
    image.apply(EndTransactionRecord(), 5)
    assert image.cluster.brokers[1].registration_offset == 4


def test_removing_an_unknown_acl_changes_nothing() -> None:
    image = Image()
    image.apply(RemoveAccessControlEntryRecord(id=A), 3)
    assert image.security.acls == {}
