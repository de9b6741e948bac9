"""The parts of the log that a broker keeps: its registration, replicas, configs and the features."""

from __future__ import annotations

from typing import Any

import pytest
from mockraft.brokers.metadata.metadata_view import MetadataView
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.records.abort_transaction_record import AbortTransactionRecord
from mockraft.wire.records.begin_transaction_record import BeginTransactionRecord
from mockraft.wire.records.broker_registration_change_record import BrokerRegistrationChangeRecord
from mockraft.wire.records.config_record import ConfigRecord
from mockraft.wire.records.end_transaction_record import EndTransactionRecord
from mockraft.wire.records.feature_level_record import FeatureLevelRecord
from mockraft.wire.records.partition_change_record import PartitionChangeRecord
from mockraft.wire.records.partition_record import PartitionRecord
from mockraft.wire.records.register_broker_record import RegisterBrokerRecord
from mockraft.wire.records.remove_topic_record import RemoveTopicRecord
from mockraft.wire.records.topic_record import TopicRecord
from mockraft.wire.records.unregister_broker_record import UnregisterBrokerRecord

TOPIC = b"t" * 16
DIR_A, DIR_B, DIR_C = b"a" * 16, b"b" * 16, b"c" * 16


def apply(view: MetadataView, *records: Any) -> MetadataView:
    for record in records:
        view.apply(RecordAt(record, 0))
    return view


def partition(index: int = 0, **fields: Any) -> PartitionRecord:
    defaults = {"replicas": [1, 2], "isr": [1, 2], "leader": 1, "directories": [DIR_A, DIR_B]}
    return PartitionRecord(topic_id=TOPIC, partition_id=index, **{**defaults, **fields})


def change(**fields: Any) -> PartitionChangeRecord:
    return PartitionChangeRecord(topic_id=TOPIC, partition_id=0, **fields)


@pytest.fixture
def view() -> MetadataView:
    return apply(MetadataView(1), TopicRecord(name="orders", topic_id=TOPIC), partition())


def test_only_own_replicas_are_kept(view: MetadataView) -> None:
    apply(view, partition(1, replicas=[2, 3], directories=[DIR_B, DIR_C]))
    assert set(view.replicas) == {(TOPIC, 0)}
    assert view.replicas[TOPIC, 0].directory == DIR_A
    assert view.take_changed() == {(TOPIC, 0)}
    assert view.take_changed() == set()


def test_a_partition_without_directories_is_migrating() -> None:
    view = apply(MetadataView(1), partition(directories=[]))
    assert view.replicas[TOPIC, 0].directory == bytes(16)


def test_changes_replace_only_named_fields(view: MetadataView) -> None:
    view.take_changed()
    apply(view, change(isr=[2], leader=2))
    replica = view.replicas[TOPIC, 0]
    assert (replica.leader, replica.isr, replica.replicas, replica.directory) == (2, (2,), (1, 2), DIR_A)
    assert view.take_changed() == set(), "the place is the same"
    apply(view, change(directories=[DIR_C, DIR_B]))
    assert view.replicas[TOPIC, 0].directory == DIR_C
    assert view.replicas[TOPIC, 0].leader == 2
    assert view.take_changed() == {(TOPIC, 0)}


def test_replica_is_added_and_removed_by_reassignment(view: MetadataView) -> None:
    apply(view, change(replicas=[2, 3], directories=[DIR_B, DIR_C]))
    assert view.replicas == {}
    assert view.take_changed() == {(TOPIC, 0)}
    apply(view, change(replicas=[3, 1], directories=[DIR_C, DIR_A], isr=[3]))
    assert view.replicas[TOPIC, 0].directory == DIR_A


def test_change_of_a_foreign_partition_is_ignored(view: MetadataView) -> None:
    apply(view, PartitionChangeRecord(topic_id=TOPIC, partition_id=9, isr=[2]))
    assert set(view.replicas) == {(TOPIC, 0)}


def test_a_removed_topic_takes_its_replicas_along(view: MetadataView) -> None:
    view.take_changed()
    apply(view, RemoveTopicRecord(topic_id=TOPIC))
    assert (view.replicas, view.topics) == ({}, {})
    assert view.take_changed() == {(TOPIC, 0)}


def test_follows_its_own_registration() -> None:
    view = MetadataView(1)
    apply(view, RegisterBrokerRecord(broker_id=1, broker_epoch=17, log_dirs=[DIR_A, DIR_B]))
    apply(view, RegisterBrokerRecord(broker_id=2, broker_epoch=18, log_dirs=[DIR_C]))
    assert view.registration is not None
    assert (view.registration.broker_epoch, view.registration.fenced) == (17, True)
    apply(view, BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=17, fenced=-1))
    assert (view.registration.fenced, view.registration.log_dirs) == (False, (DIR_A, DIR_B))
    apply(view, BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=17, fenced=1, log_dirs=[DIR_B]))
    assert (view.registration.fenced, view.registration.log_dirs) == (True, (DIR_B,))
    apply(view, UnregisterBrokerRecord(broker_id=2), UnregisterBrokerRecord(broker_id=1))
    assert view.registration is None


def test_its_own_cordoned_dirs_come_before_the_clusters() -> None:
    def config(name: str, value: str | None) -> ConfigRecord:
        return ConfigRecord(resource_type=4, resource_name=name, name="cordoned.log.dirs", value=value)

    view = apply(MetadataView(1), config("", "/all"), config("2", "/other"))
    assert view.cordoned_log_dirs == "/all"
    assert apply(view, config("1", "/mine")).cordoned_log_dirs == "/mine"
    assert apply(view, config("1", None)).cordoned_log_dirs == "/all"
    assert apply(view, config("", None)).cordoned_log_dirs is None


def test_a_transaction_counts_when_it_ends_and_not_when_it_is_aborted() -> None:
    level = FeatureLevelRecord(name="metadata.version", feature_level=30)
    view = apply(MetadataView(1), BeginTransactionRecord(name="x"), level)
    assert view.metadata_version == 0
    assert apply(view, EndTransactionRecord()).metadata_version == 30
    lower = FeatureLevelRecord(name="metadata.version", feature_level=29)
    apply(view, BeginTransactionRecord(name="y"), lower, AbortTransactionRecord(reason="no"))
    assert view.metadata_version == 30


def test_forgets_everything_before_a_snapshot(view: MetadataView) -> None:
    view.take_changed()
    view.clear()
    assert (view.replicas, view.topics, view.registration) == ({}, {}, None)
    assert view.take_changed() == {(TOPIC, 0)}
