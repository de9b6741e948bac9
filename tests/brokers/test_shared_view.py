"""Many brokers read one log together and see what each would see alone."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
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
