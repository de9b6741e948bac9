"""The parts of the log that a broker keeps, alone or shared by many brokers, and transactions of the log (KIP-868)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mockraft.brokers.image.cluster_image import Transactions
from mockraft.brokers.metadata.metadata_view import MetadataView, Registration
from mockraft.brokers.metadata.shared_view import SharedView
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.records.abort_transaction_record import AbortTransactionRecord
from mockraft.wire.records.begin_transaction_record import BeginTransactionRecord
from mockraft.wire.records.broker_registration_change_record import BrokerRegistrationChangeRecord
from mockraft.wire.records.config_record import ConfigRecord
from mockraft.wire.records.end_transaction_record import EndTransactionRecord
from mockraft.wire.records.feature_level_record import FeatureLevelRecord
from mockraft.wire.records.no_op_record import NoOpRecord
from mockraft.wire.records.partition_change_record import PartitionChangeRecord
from mockraft.wire.records.partition_record import PartitionRecord
from mockraft.wire.records.register_broker_record import RegisterBrokerRecord
from mockraft.wire.records.remove_topic_record import RemoveTopicRecord
from mockraft.wire.records.topic_record import TopicRecord
from mockraft.wire.records.unregister_broker_record import UnregisterBrokerRecord

from ..budgets import budget
from ..rows import each_row

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
    assert (view.replicas[TOPIC, 0].directory, view.replicas[TOPIC, 0].leader) == (DIR_C, 2)
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


BROKERS = range(1, 6)
TOPICS = [bytes([number]) * 16 for number in range(1, 4)]

ids = st.sampled_from([*BROKERS, 99])
topic_ids = st.sampled_from(TOPICS)
replicas = st.lists(ids, min_size=1, max_size=3, unique=True)
partitions = st.integers(0, 1)


def placed(make: Any, replicas: list[int], topic_id: bytes, partition_id: int) -> Any:
    directories = [bytes([broker_id]) * 16 for broker_id in replicas]
    return make(
        topic_id=topic_id,
        partition_id=partition_id,
        replicas=replicas,
        isr=replicas,
        leader=replicas[0],
        directories=directories,
    )


RECORDS = st.one_of(
    st.builds(RegisterBrokerRecord, broker_id=ids, broker_epoch=st.integers(0, 9), fenced=st.booleans()),
    st.builds(BrokerRegistrationChangeRecord, broker_id=ids, broker_epoch=st.just(1), fenced=st.integers(-1, 1)),
    st.builds(UnregisterBrokerRecord, broker_id=ids),
    st.builds(TopicRecord, topic_id=topic_ids, name=st.sampled_from("abc")),
    st.builds(RemoveTopicRecord, topic_id=topic_ids),
    st.builds(placed, st.just(PartitionRecord), replicas, topic_ids, partitions),
    st.builds(placed, st.just(PartitionChangeRecord), replicas, topic_ids, partitions),
    st.builds(PartitionChangeRecord, topic_id=topic_ids, partition_id=partitions, leader=ids, isr=replicas),
    st.builds(FeatureLevelRecord, name=st.just("metadata.version"), feature_level=st.integers(7, 30)),
    st.builds(
        ConfigRecord,
        resource_type=st.sampled_from([2, 4]),
        resource_name=st.sampled_from(["", "1", "5", "99", "orders"]),
        name=st.just("cordoned.log.dirs"),
        value=st.none() | st.sampled_from(["*", "/d0"]),
    ),
    st.builds(BeginTransactionRecord),
    st.builds(EndTransactionRecord),
    st.builds(AbortTransactionRecord),
    st.builds(NoOpRecord),
)


def seen(view: MetadataView) -> dict[str, Any]:
    kept = ("features", "topics", "replicas", "configs", "registration", "changed", "metadata_version")
    return {name: getattr(view, name) for name in kept}


@settings(max_examples=budget(100, 300))
@given(st.lists(RECORDS, max_size=40), st.integers(0, 40))
def test_shared_view_equals_a_private_one(records: list[Any], snapshot_at: int) -> None:
    shared, alone = SharedView(BROKERS), {broker_id: MetadataView(broker_id) for broker_id in BROKERS}
    views: list[SharedView | MetadataView] = [shared, *alone.values()]
    for number, record in enumerate(records):
        if number == snapshot_at:
            for view in views:
                view.clear()
        for view in views:
            view.apply(RecordAt(record, 0))
    assert {broker_id: seen(view) for broker_id, view in shared.views.items()} == {
        broker_id: seen(view) for broker_id, view in alone.items()
    }


def test_record_affects_only_its_own_brokers() -> None:
    shared = SharedView(BROKERS)
    shared.apply(RecordAt(RegisterBrokerRecord(broker_id=2), 0))
    shared.apply(RecordAt(TopicRecord(topic_id=TOPICS[0], name="a"), 0))
    assert shared.take_concerned() == {2}
    shared.apply(RecordAt(placed(PartitionRecord, [1, 3], TOPICS[0], 0), 0))
    assert shared.take_concerned() == {1, 3}
    shared.apply(RecordAt(placed(PartitionChangeRecord, [3, 4], TOPICS[0], 0), 0))
    assert shared.take_concerned() == {1, 3, 4}, "also the one that it left"
    shared.apply(RecordAt(placed(PartitionRecord, [3, 4], TOPICS[0], 1), 0))
    shared.apply(RecordAt(placed(PartitionRecord, [5], TOPICS[0], 1), 0))
    assert shared.take_concerned() == {3, 4, 5}, "also who had it by a record before"
    shared.apply(RecordAt(placed(PartitionRecord, [3, 4], TOPICS[0], 1), 0))
    shared.take_concerned()
    shared.apply(RecordAt(RemoveTopicRecord(topic_id=TOPICS[0]), 0))
    assert shared.take_concerned() == {3, 4}
    shared.apply(RecordAt(FeatureLevelRecord(name="metadata.version", feature_level=30), 0))
    assert shared.take_concerned() == set(BROKERS)
    assert shared.take_concerned() == set()


def test_listeners_receive_each_changed_registration() -> None:
    heard: list[tuple[int, Registration | None, Registration | None]] = []
    shared = SharedView(BROKERS, lambda *change: heard.append(change))
    shared.apply(RecordAt(RegisterBrokerRecord(broker_id=1, broker_epoch=5), 0))
    shared.apply(RecordAt(BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=5, fenced=-1), 0))
    shared.apply(RecordAt(RegisterBrokerRecord(broker_id=99), 0))
    shared.clear()
    fenced = Registration(5, bytes(16), True, ())
    assert heard == [
        (1, None, fenced),
        (1, fenced, fenced._replace(fenced=False)),
        (1, fenced._replace(fenced=False), None),
    ]


A, B = (RecordAt(TopicRecord(name=name, topic_id=bytes(16)), 0) for name in "ab")
BEGIN, END, ABORT = (
    RecordAt(record, 0) for record in (BeginTransactionRecord(), EndTransactionRecord(), AbortTransactionRecord())
)


@each_row(
    ("records", "counted"),
    [
        ([A, B], [[A], [B]]),
        ([BEGIN, A, B, END], [[], [], [], [A, B]]),
        ([BEGIN, A, ABORT, B], [[], [], [], [B]]),
        ([BEGIN, A, BEGIN, B, END], [[], [], [], [], [B]]),
        ([END, A], [[], [A]]),
    ],
)
def test_a_transaction_counts_whole_or_not_at_all(records: list[RecordAt], counted: list[list[RecordAt]]) -> None:
    transactions = Transactions()
    assert [list(transactions.passed(record)) for record in records] == counted


def test_an_open_transaction_is_forgotten_with_the_rest() -> None:
    transactions = Transactions()
    transactions.passed(BEGIN)
    transactions.clear()
    assert list(transactions.passed(A)) == [A]
