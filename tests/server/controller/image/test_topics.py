"""Partitions in the image, and the indexes that must agree with them."""

from typing import Any

import pytest
from mockraft.server.controller.image import Image
from mockraft.serving import directory_ids
from mockraft.wire.records.clear_elr_record import ClearElrRecord
from mockraft.wire.records.config_record import ConfigRecord
from mockraft.wire.records.partition_change_record import PartitionChangeRecord
from mockraft.wire.records.partition_record import PartitionRecord
from mockraft.wire.records.remove_topic_record import RemoveTopicRecord
from mockraft.wire.records.topic_record import TopicRecord

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


def test_change_record_replaces_only_named_fields() -> None:
    partition = change(image_with_partition(eligible_leader_replicas=[3]), isr=[2])
    assert (partition.isr, partition.replicas, partition.elr) == ((2,), (1, 2), (3,))


def test_the_partition_epoch_grows_with_every_change() -> None:
    image = image_with_partition()
    assert change(image).partition_epoch == 9
    assert change(image).partition_epoch == 10


@pytest.mark.parametrize(("leader", "leader_epoch"), [(-2, 4), (1, 5), (2, 5), (-1, 5)])
def test_the_leader_epoch_grows_whenever_a_leader_is_named_even_the_same(leader: int, leader_epoch: int) -> None:
    assert change(image_with_partition(), leader=leader).leader_epoch == leader_epoch


def test_directories_are_padded_with_migrating() -> None:
    image = image_with_partition(directories=[])
    assert image.topics.by_name["t"].partitions[0].directories == (directory_ids.MIGRATING,) * 2
    assert change(image, replicas=[1, 2, 3]).directories == (directory_ids.MIGRATING,) * 3


def test_directories_are_kept_when_a_change_leaves_them_out() -> None:
    assert change(image_with_partition(), isr=[1]).directories == (DIR_A, DIR_B)


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
        PartitionRecord(partition_id=0, topic_id=U, replicas=[1], isr=[], leader=-1, eligible_leader_replicas=[1]),
        3,
    )
    image.apply(ClearElrRecord(topic_name=""), 4)
    assert [topic.partitions[0].elr for topic in image.topics.by_id.values()] == [(), ()]


def test_a_second_topic_of_the_same_name_is_a_bug_in_the_log() -> None:
    with pytest.raises(AssertionError, match="already"):
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
    for partition_id in (5, 3, 4):
        image.apply(
            PartitionRecord(
                partition_id=partition_id, topic_id=T, replicas=[1], isr=[1], leader=1, directories=[DIR_A]
            ),
            2,
        )
    assert [place.partition_id for place in image.topics.index.in_isr(1)] == [0, 3, 4, 5]
