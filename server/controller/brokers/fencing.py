"""Records for brokers that join, leave or shut down: partition and registration changes, in Kafka's order.

ReplicationControlManager's handleBroker… and generateLeaderAndIsrUpdates; KIP-631, KIP-841, KIP-966.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, groupby, islice
from operator import itemgetter
from typing import TYPE_CHECKING, Final

from mockraft.server.controller.image import TopicPartition
from mockraft.server.controller.image.cluster import FENCE, IN_CONTROLLED_SHUTDOWN, UNFENCE
from mockraft.server.controller.image.partition_index import Places
from mockraft.server.controller.result import Steps
from mockraft.server.controller.settings.features import CONTROLLED_SHUTDOWN_LEVEL, REGISTRATION_CHANGE_LEVEL
from mockraft.server.controller.topics.partition_rules import begin_change, min_isr, topic_election
from mockraft.server.controller.topics.partitions import same_change
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.records.broker_registration_change_record import BrokerRegistrationChangeRecord
from mockraft.wire.records.fence_broker_record import FenceBrokerRecord
from mockraft.wire.records.unfence_broker_record import UnfenceBrokerRecord
from mockraft.wire.records.unregister_broker_record import UnregisterBrokerRecord

if TYPE_CHECKING:
    from mockraft.server.controller.context import ControllerContext
    from mockraft.wire.message import Message

NO_BROKER: Final = -1

_FENCING_VERSION = 0
_CONTROLLED_SHUTDOWN_VERSION = 1


PARTITIONS_AT_ONCE = 1_000
"""Partitions of a stale broker that change before other requests are answered: about 6 ms."""


@dataclass(slots=True)
class BrokerChange:
    """A change of a broker: the records of `first`, those of the partitions of `sets`, then those of `last`.

    A fencing may be made in steps: it ends early if the broker's registration is replaced between two of them.
    """

    controller: "ControllerContext"
    broker_id: int
    sets: Sequence[Places]
    removed: int = NO_BROKER
    added: int = NO_BROKER
    unclean: int = NO_BROKER
    first: list[RecordAt] = field(default_factory=list)
    last: list[RecordAt] = field(default_factory=list)

    def records(self) -> list[RecordAt]:
        """Return all records of the change."""
        return [*self.first, *self._update(chain.from_iterable([each.now() for each in self.sets])), *self.last]

    def in_steps(self) -> tuple[list[RecordAt], Steps | None]:
        """Return all records, or, if there are many partitions, those of the first step and the other steps."""
        places = chain.from_iterable([each.now() for each in self.sets])
        step = list(islice(places, PARTITIONS_AT_ONCE))
        records = self._update(step)
        following = list(islice(places, 1))
        if not following:
            return [*self.first, *records, *self.last], None
        epoch = self.controller.image.cluster.brokers[self.broker_id].broker_epoch
        return [*self.first, *records], Steps(self._rest(epoch, step, records, chain(following, places)))

    def _rest(
        self, epoch: int, step: list[TopicPartition], records: list[RecordAt], places: Iterator[TopicPartition]
    ) -> Iterator[tuple[list[RecordAt], bool]]:
        topics = self.controller.image.topics
        # Those that stay in the ISR, for instance of a partition without other replicas, are not visited again: all
        # others that are in the sets at the end came meanwhile.
        unchanged = Places()
        while step:
            left = {(change.topic_id, change.partition_id) for change, _ in records if change.isr is not None}
            unchanged.add_all(set(step) - left)
            step = list(islice(places, PARTITIONS_AT_ONCE))
            registration = self.controller.image.cluster.brokers.get(self.broker_id)
            if registration is None or registration.broker_epoch != epoch:
                return
            records = self._update(place for place in step if topics.partition(*place) is not None)
            if step:
                yield records, False
        added = chain.from_iterable([each.now(unchanged) for each in self.sets])
        yield [*self._update(added), *self.last], True

    def _update(self, places: Iterable[TopicPartition]) -> list[RecordAt]:
        return leader_and_isr_updates(
            self.controller, places, removed=self.removed, added=self.added, unclean=self.unclean
        )


def fence(controller: "ControllerContext", broker_id: int) -> BrokerChange:
    """Remove the broker from every ISR; fence it last."""
    broker_epoch = controller.image.cluster.brokers[broker_id].broker_epoch
    record: Message
    if controller.image.metadata_version < REGISTRATION_CHANGE_LEVEL:
        record = FenceBrokerRecord(id=broker_id, epoch=broker_epoch)
    else:
        record = BrokerRegistrationChangeRecord(broker_id=broker_id, broker_epoch=broker_epoch, fenced=FENCE)
    in_isr = controller.image.topics.index.isr_of(broker_id)
    last = [RecordAt(record, _FENCING_VERSION)]
    return BrokerChange(controller, broker_id, [in_isr], removed=broker_id, last=last)


def unfence(controller: "ControllerContext", broker_id: int) -> BrokerChange:
    """Unfence the broker first; then elect it for leaderless partitions."""
    broker_epoch = controller.image.cluster.brokers[broker_id].broker_epoch
    record: Message
    if controller.image.metadata_version < REGISTRATION_CHANGE_LEVEL:
        record = UnfenceBrokerRecord(id=broker_id, epoch=broker_epoch)
    else:
        record = BrokerRegistrationChangeRecord(broker_id=broker_id, broker_epoch=broker_epoch, fenced=UNFENCE)
    leaderless = controller.image.topics.index.without_leader()
    return BrokerChange(
        controller, broker_id, [leaderless], added=broker_id, first=[RecordAt(record, _FENCING_VERSION)]
    )


def enter_controlled_shutdown(controller: "ControllerContext", broker_id: int) -> BrokerChange:
    """Mark the broker (once) first; then remove it from every ISR."""
    registration = controller.image.cluster.brokers[broker_id]
    change = BrokerChange(controller, broker_id, [controller.image.topics.index.isr_of(broker_id)], removed=broker_id)
    if registration.in_controlled_shutdown or controller.image.metadata_version < CONTROLLED_SHUTDOWN_LEVEL:
        return change
    mark = BrokerRegistrationChangeRecord(
        broker_id=broker_id,
        broker_epoch=registration.broker_epoch,
        in_controlled_shutdown=IN_CONTROLLED_SHUTDOWN,
    )
    change.first.append(RecordAt(mark, _CONTROLLED_SHUTDOWN_VERSION))
    return change


def unregister(controller: "ControllerContext", broker_id: int) -> BrokerChange:
    """Remove the broker from every ISR and ELR; unregister it last."""
    index = controller.image.topics.index
    record = UnregisterBrokerRecord(
        broker_id=broker_id, broker_epoch=controller.image.cluster.brokers[broker_id].broker_epoch
    )
    sets = [index.isr_of(broker_id), index.elr_of(broker_id)]
    return BrokerChange(controller, broker_id, sets, removed=broker_id, last=[RecordAt(record, 0)])


def replace_incarnation(controller: "ControllerContext", broker_id: int, *, was_clean: bool) -> BrokerChange:
    """Handle a new incarnation. With ELR a broker that crashed is no eligible leader: it may have lost records."""
    index = controller.image.topics.index
    if controller.image.elr_enabled and not was_clean:
        sets = [index.isr_of(broker_id), index.elr_of(broker_id)]
        return BrokerChange(controller, broker_id, sets, unclean=broker_id)
    return BrokerChange(controller, broker_id, [index.isr_of(broker_id)], removed=broker_id)


def leader_and_isr_updates(
    controller: "ControllerContext",
    places: Iterable[TopicPartition],
    *,
    removed: int = NO_BROKER,
    added: int = NO_BROKER,
    unclean: int = NO_BROKER,
) -> list[RecordAt]:
    """Generate changes of these partitions, each from its current state, when brokers join or leave.

    `removed` is removed from ISR and leadership; `unclean` also from the ELR; `added` may lead although the image
    still has it fenced.
    """

    def may_lead(broker_id: int) -> bool:
        return broker_id not in (removed, unclean) and (broker_id == added or controller.is_active(broker_id))

    changes: list[RecordAt] = []
    # Most partitions share their replicas, and so their change, with many others.
    known: dict[object, RecordAt | None] = {}
    # A topic's partitions come one after the other, and its configs are the same for all of them.
    for topic_id, of_topic in groupby(places, key=itemgetter(0)):
        topic = controller.image.topics.by_id[topic_id]
        election, isr_min = topic_election(controller, topic), min_isr(controller, topic)
        for _, partition_id in of_topic:
            state = election, isr_min, topic.partitions[partition_id].without_epochs
            if state in known:
                record = same_change(known[state], topic_id, partition_id)
            else:
                change = begin_change(
                    controller, topic, partition_id, may_lead=may_lead, election=election, isr_min=isr_min
                )
                change.isr = [replica for replica in change.isr if replica not in (removed, unclean)]
                change.unclean_shutdown_replicas = () if unclean == NO_BROKER else (unclean,)
                record = known[state] = change.build()
            if record is not None:
                changes.append(record)
    return changes
