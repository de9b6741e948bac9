"""One reading of the metadata log for many brokers' views: a record costs only as much as those it concerns.

A record about one broker goes to that broker's view, one about a partition to those of its replicas; common state
(features, topics) is shared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from mockraft.brokers.image.cluster_image import BROKER_RESOURCE, Transactions
from mockraft.brokers.metadata.metadata_view import MetadataView, Registration
from mockraft.wire.java_values import parse_integer
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.records.broker_registration_change_record import BrokerRegistrationChangeRecord
from mockraft.wire.records.config_record import ConfigRecord
from mockraft.wire.records.feature_level_record import FeatureLevelRecord
from mockraft.wire.records.partition_change_record import PartitionChangeRecord
from mockraft.wire.records.partition_record import PartitionRecord
from mockraft.wire.records.register_broker_record import RegisterBrokerRecord
from mockraft.wire.records.remove_topic_record import RemoveTopicRecord
from mockraft.wire.records.topic_record import TopicRecord
from mockraft.wire.records.unregister_broker_record import UnregisterBrokerRecord

RegistrationChanged = Callable[[int, Registration | None, Registration | None], None]
"""Called for each change of a registration: broker id, old state, new state."""


class SharedView:
    """The committed metadata as the brokers with these ids see it; an observer's view.

    A view follows the log even while its broker is down, so that a restarted one finds its own up to date. `concerned`
    collects the ids of brokers with new records until :meth:`take_concerned`.
    """

    def __init__(self, broker_ids: Iterable[int], on_change: RegistrationChanged | None = None) -> None:
        self.features: dict[str, int] = {}
        self.topics: dict[bytes, str] = {}
        self.views = {broker_id: MetadataView(broker_id, self.features, self.topics) for broker_id in broker_ids}
        self._on_change = on_change
        self._concerned: set[int] = set()
        self._replicas: dict[bytes, dict[int, Sequence[int]]] = {}
        self._transactions = Transactions()

    def take_concerned(self) -> Iterable[int]:
        """Return the ids of the brokers whose view changed since the last call."""
        concerned, self._concerned = self._concerned, set()
        return concerned

    def clear(self) -> None:
        """Clear everything before a snapshot is read."""
        for broker_id, view in self.views.items():
            before = view.registration
            view.clear()
            self._notify(broker_id, before, None)
        self._replicas.clear()
        self._transactions.clear()
        self._concerned.update(self.views)

    def apply(self, at: RecordAt) -> None:
        """Apply one committed record."""
        for each in self._transactions.passed(at):
            if route := _ROUTES.get(type(each.record).__name__):
                for broker_id in route(self, each.record):
                    self._apply(broker_id, each)

    def _apply(self, broker_id: int, at: RecordAt) -> None:
        view = self.views.get(broker_id)
        if view is None:
            return
        before = view.registration
        view.apply(at)
        self._concerned.add(broker_id)
        self._notify(broker_id, before, view.registration)

    def _notify(self, broker_id: int, before: Registration | None, after: Registration | None) -> None:
        if before is not after and self._on_change is not None:
            self._on_change(broker_id, before, after)

    # The brokers that a record concerns.

    def _one(
        self, record: RegisterBrokerRecord | BrokerRegistrationChangeRecord | UnregisterBrokerRecord
    ) -> Iterable[int]:
        return (record.broker_id,)

    def _of_config(self, record: ConfigRecord) -> Iterable[int]:
        if record.resource_type != BROKER_RESOURCE:
            return ()
        if record.resource_name == "":
            return tuple(self.views)
        broker_id = parse_integer(record.resource_name)
        return () if broker_id is None else (broker_id,)

    def _of_feature(self, record: FeatureLevelRecord) -> Iterable[int]:
        self.features[record.name] = record.feature_level
        self._concerned.update(self.views)
        return ()

    def _of_topic(self, record: TopicRecord) -> Iterable[int]:
        self.topics[record.topic_id] = record.name
        return ()

    def _of_removed_topic(self, record: RemoveTopicRecord) -> Iterable[int]:
        self.topics.pop(record.topic_id, None)
        partitions = self._replicas.pop(record.topic_id, {})
        return {broker_id for replicas in partitions.values() for broker_id in replicas}

    def _of_partition(self, record: PartitionRecord | PartitionChangeRecord) -> Iterable[int]:
        partitions = self._replicas.setdefault(record.topic_id, {})
        before = partitions.get(record.partition_id, ())
        if record.replicas is None:
            return before
        partitions[record.partition_id] = tuple(record.replicas)
        return {*before, *record.replicas}


_ROUTES: dict[str, Callable[[SharedView, Any], Iterable[int]]] = {
    "FeatureLevelRecord": SharedView._of_feature,
    "RegisterBrokerRecord": SharedView._one,
    "BrokerRegistrationChangeRecord": SharedView._one,
    "UnregisterBrokerRecord": SharedView._one,
    "ConfigRecord": SharedView._of_config,
    "TopicRecord": SharedView._of_topic,
    "RemoveTopicRecord": SharedView._of_removed_topic,
    "PartitionRecord": SharedView._of_partition,
    "PartitionChangeRecord": SharedView._of_partition,
}
