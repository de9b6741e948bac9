"""Records for brokers that join, leave or shut down: partition and registration changes, in Kafka's order.

ReplicationControlManager's handleBroker… and generateLeaderAndIsrUpdates; KIP-631, KIP-841, KIP-966.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, groupby, islice
from operator import itemgetter
from typing import TYPE_CHECKING, Final

from mockraft.releases import Behaviour
from mockraft.server.controller.image import TopicPartition
from mockraft.server.controller.image.cluster import FENCE, IN_CONTROLLED_SHUTDOWN, UNFENCE
from mockraft.server.controller.image.topics import Places
from mockraft.server.controller.result import Steps
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


@dataclass(frozen=True, slots=True)
class Fencing:
    """The fencing of a broker: it leaves the ISRs of `isr`, and then `fenced` is written."""

    controller: "ControllerContext"
    broker_id: int
    isr: Places
    fenced: RecordAt

    def records(self) -> list[RecordAt]:
        """Return all records that fence the broker."""
        return [*self._leave(self.isr.now()), self.fenced]

    def in_steps(self) -> tuple[list[RecordAt], Steps | None]:
        """Return all records, or, if there are many partitions, those of the first step and the other steps.

        These end early if the broker is registered anew, or fenced by something else, between two of them.
        """
        places = self.isr.now()
        step = list(islice(places, PARTITIONS_AT_ONCE))
        records = self._leave(step)
        following = list(islice(places, 1))
        if not following:
            return [*records, self.fenced], None
        epoch = self.controller.image.cluster.brokers[self.broker_id].broker_epoch
        return records, Steps(self.broker_id, self._rest(epoch, step, records, chain(following, places)))

    def _rest(
        self, epoch: int, step: list[TopicPartition], records: list[RecordAt], places: Iterator[TopicPartition]
    ) -> Iterator[tuple[list[RecordAt], bool]]:
        topics = self.controller.image.topics
        # Those that stay in the ISR, for instance of a partition without other replicas, are not visited again: all
        # others that are in the ISRs at the end came meanwhile.
        unchanged = Places()
        while step:
            left = {(change.topic_id, change.partition_id) for change, _ in records if change.isr is not None}
            for place in set(step) - left:
                unchanged.add(*place)
            step = list(islice(places, PARTITIONS_AT_ONCE))
            registration = self.controller.image.cluster.brokers.get(self.broker_id)
            if registration is None or registration.broker_epoch != epoch or registration.fenced:
                return
            records = self._leave(place for place in step if topics.partition(*place) is not None)
            if step:
                yield records, False
        yield [*self._leave(self.isr.now(unchanged)), self.fenced], True

    def _leave(self, places: Iterable[TopicPartition]) -> list[RecordAt]:
        return leader_and_isr_updates(self.controller, places, removed=self.broker_id)


def fence(controller: "ControllerContext", broker_id: int) -> Fencing:
    """Remove the broker from every ISR; fence it last."""
    broker_epoch = controller.image.cluster.brokers[broker_id].broker_epoch
    record: Message
    if not controller.has(Behaviour.REGISTRATION_CHANGES):
        record = FenceBrokerRecord(id=broker_id, epoch=broker_epoch)
    else:
        record = BrokerRegistrationChangeRecord(broker_id=broker_id, broker_epoch=broker_epoch, fenced=FENCE)
    return Fencing(
        controller, broker_id, controller.image.topics.index.isr_of(broker_id), RecordAt(record, _FENCING_VERSION)
    )


def unfence(controller: "ControllerContext", broker_id: int) -> list[RecordAt]:
    """Unfence the broker first; then elect it for leaderless partitions."""
    broker_epoch = controller.image.cluster.brokers[broker_id].broker_epoch
    changes = leader_and_isr_updates(controller, controller.image.topics.index.leaderless(), added=broker_id)
    record: Message
    if not controller.has(Behaviour.REGISTRATION_CHANGES):
        record = UnfenceBrokerRecord(id=broker_id, epoch=broker_epoch)
    else:
        record = BrokerRegistrationChangeRecord(broker_id=broker_id, broker_epoch=broker_epoch, fenced=UNFENCE)
    return [RecordAt(record, _FENCING_VERSION), *changes]


def enter_controlled_shutdown(controller: "ControllerContext", broker_id: int) -> list[RecordAt]:
    """Mark the broker (once) first; then remove it from every ISR."""
    registration = controller.image.cluster.brokers[broker_id]
    changes = leader_and_isr_updates(controller, controller.image.topics.index.in_isr(broker_id), removed=broker_id)
    if registration.in_controlled_shutdown or not controller.has(Behaviour.CONTROLLED_SHUTDOWN_STATE):
        return changes
    change = BrokerRegistrationChangeRecord(
        broker_id=broker_id, broker_epoch=registration.broker_epoch, in_controlled_shutdown=IN_CONTROLLED_SHUTDOWN
    )
    return [RecordAt(change, _CONTROLLED_SHUTDOWN_VERSION), *changes]


def unregister(controller: "ControllerContext", broker_id: int) -> list[RecordAt]:
    """Remove the broker from every ISR and ELR; unregister it last."""
    index = controller.image.topics.index
    record = UnregisterBrokerRecord(
        broker_id=broker_id, broker_epoch=controller.image.cluster.brokers[broker_id].broker_epoch
    )
    return [
        *leader_and_isr_updates(controller, index.in_isr(broker_id), removed=broker_id),
        *leader_and_isr_updates(controller, index.in_elr(broker_id), removed=broker_id),
        RecordAt(record, 0),
    ]


def replace_incarnation(controller: "ControllerContext", broker_id: int, *, was_clean: bool) -> list[RecordAt]:
    """Handle a new incarnation. With ELR a broker that crashed is no eligible leader: it may have lost records."""
    index = controller.image.topics.index
    isr, elr = index.in_isr(broker_id), index.in_elr(broker_id)
    if not isr and not elr:
        return []
    if controller.has(Behaviour.ELR) and not was_clean:
        return [
            *leader_and_isr_updates(controller, isr, unclean=broker_id),
            *leader_and_isr_updates(controller, elr, unclean=broker_id),
        ]
    return leader_and_isr_updates(controller, isr, removed=broker_id)


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
