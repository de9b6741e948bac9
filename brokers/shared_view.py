"""One reading of the metadata log for the views of many brokers: each record costs what the brokers it concerns cost.

A record about one broker goes to that broker's view, one about a partition to those of its replicas; what is the same
for all (features, topics) they have in common.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from mockraft.brokers.metadata_view import BROKER_RESOURCE, MetadataView, Registration
from mockraft.brokers.transactions import Transactions
from mockraft.wire.metadata_log_frame import RecordAt

Heard = Callable[[int, Registration | None, Registration | None], None]
"""Told of each change of a registration: broker id, how it was, how it is."""


class SharedView:
    """The committed metadata as the brokers with these ids see it; an observer's view.

    A view is what the log says, whether its broker runs or not, so that a restarted one finds its own as it must be.
    `concerned` collects the ids of brokers that records came for until :meth:`take_concerned`.
    """

    def __init__(self, broker_ids: Iterable[int], heard: Heard | None = None) -> None:
        self.features: dict[str, int] = {}
        self.topics: dict[bytes, str] = {}
        self.views = {broker_id: MetadataView(broker_id, self.features, self.topics) for broker_id in broker_ids}
        self._heard = heard
        self._concerned: set[int] = set()
        self._replicas: dict[bytes, dict[int, Sequence[int]]] = {}
        self._transactions = Transactions()

    def take_concerned(self) -> Iterable[int]:
        """The ids of the brokers whose view changed since the last call."""
        concerned, self._concerned = self._concerned, set()
        return concerned

    def clear(self) -> None:
        """Forget everything: a snapshot is about to be read."""
        for broker_id, view in self.views.items():
            before = view.registration
            view.clear()
            self._tell(broker_id, before, None)
        self._replicas.clear()
        self._transactions.clear()
        self._concerned.update(self.views)

    def apply(self, at: RecordAt) -> None:
        """Take in one committed record."""
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
        self._tell(broker_id, before, view.registration)

    def _tell(self, broker_id: int, before: Registration | None, after: Registration | None) -> None:
        if before is not after and self._heard is not None:
            self._heard(broker_id, before, after)

    # To which brokers a record goes.

    def _one(self, record: Any) -> Iterable[int]:
        return (record.broker_id,)

    def _of_config(self, record: Any) -> Iterable[int]:
        if record.resource_type != BROKER_RESOURCE:
            return ()
        if record.resource_name == "":
            return tuple(self.views)
        return (int(record.resource_name),) if record.resource_name.isdecimal() else ()

    def _of_feature(self, record: Any) -> Iterable[int]:
        self.features[record.name] = record.feature_level
        self._concerned.update(self.views)
        return ()

    def _of_topic(self, record: Any) -> Iterable[int]:
        self.topics[record.topic_id] = record.name
        return ()

    def _of_removed_topic(self, record: Any) -> Iterable[int]:
        self.topics.pop(record.topic_id, None)
        partitions = self._replicas.pop(record.topic_id, {})
        return {broker_id for replicas in partitions.values() for broker_id in replicas}

    def _of_partition(self, record: Any) -> Iterable[int]:
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
