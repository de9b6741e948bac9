"""Invariants of every world at every moment, one class each."""

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from mockraft.releases import Behaviour
from mockraft.server.controller.image import Image, Partition
from mockraft.server.controller.image.topics import PartitionIndex
from mockraft.server.controller.topics.elections import ElectionType
from mockraft.server.controller.topics.partition_rules import topic_election

from ..budgets import budget
from .invariant import Invariant

pytestmark = pytest.mark.one_python

SEEDS = range(int(os.environ.get("MOCKRAFT_SIMULATION_SEEDS", budget(12, 1_000))))
STEPS = 250
AGAIN = "tests/simulation/test_invariants.py::test_every_truth_holds_in_every_world"
TOPIC = 2
SESSION_SLACK_MS = 9000 // 8


def partitions(world: Any) -> Iterator[tuple[tuple[bytes, int], Partition]]:
    for topic in world.image.topics.by_id.values():
        for partition_id, partition in topic.partitions.items():
            yield (topic.topic_id, partition_id), partition


class LeaderIsInIsr(Invariant):
    def verify(self, world: Any) -> None:
        for place, partition in partitions(world):
            assert partition.leader == -1 or partition.leader in partition.isr, place


class IsrIsSubsetOfReplicas(Invariant):
    def verify(self, world: Any) -> None:
        for place, partition in partitions(world):
            assert {*partition.isr} <= {*partition.replicas}, place
            assert len({*partition.isr}) == len(partition.isr), place


class ElrDisjointFromIsr(Invariant):
    """It may name a replica that a reassignment dropped while too few were in sync, as on Kafka's controller."""

    def verify(self, world: Any) -> None:
        for place, partition in partitions(world):
            assert not {*partition.isr} & {*partition.elr}, place
            assert world.image.has(Behaviour.ELR) or not (partition.elr or partition.last_known_elr), place


class DirectoriesMatchReplicas(Invariant):
    def verify(self, world: Any) -> None:
        for place, partition in partitions(world):
            assert len(partition.directories) == len(partition.replicas), place


class FencedBrokersLeadNothing(Invariant):
    def verify(self, world: Any) -> None:
        for place, partition in partitions(world):
            if partition.leader != -1:
                assert world.controller.is_active(partition.leader), place


class FencedBrokersAreOnlyEverTheLastInSync(Invariant):
    """With ELR only where a reassignment was called back uncleanly, to a first replica that is fenced."""

    def __init__(self) -> None:
        self.unclean: set[tuple[bytes, int]] = set()

    def verify(self, world: Any) -> None:
        for place, partition in partitions(world):
            fenced = [b for b in partition.isr if (r := world.image.cluster.brokers.get(b)) is None or r.fenced]
            if not fenced:
                self.unclean.discard(place)
                continue
            assert partition.leader == -1, place
            assert len(partition.isr) == 1, place
            if world.image.has(Behaviour.ELR) and place not in self.unclean:
                topic = world.image.topics.by_id[place[0]]
                assert topic_election(world.controller, topic) is ElectionType.UNCLEAN, place
                self.unclean.add(place)


class LeadersDirectoriesAreOnline(Invariant):
    def verify(self, world: Any) -> None:
        for place, partition in partitions(world):
            if partition.leader != -1:
                leader = world.image.cluster.brokers[partition.leader]
                assert leader.has_online_dir(partition.directory(partition.leader)), place


class NobodyWhoMayLeadIsLeftOut(Invariant):
    """Kafka's one exception: a replica is judged by the directory that it had before the change which moves it."""

    def __init__(self) -> None:
        self.directories_when_lost: dict[tuple[bytes, int], tuple[bytes, ...]] = {}

    def verify(self, world: Any) -> None:
        for place, partition in partitions(world):
            if partition.leader != -1:
                self.directories_when_lost.pop(place, None)
                continue
            if self.directories_when_lost.setdefault(place, partition.directories) != partition.directories:
                continue
            for broker_id in partition.isr or partition.elr:
                broker = world.image.cluster.brokers.get(broker_id)
                may_lead = world.controller.is_active(broker_id) and broker is not None
                may_lead = may_lead and broker_id in partition.replicas
                assert not (may_lead and broker.has_online_dir(partition.directory(broker_id))), place


class PartitionEpochsOnlyGrow(Invariant):
    def __init__(self) -> None:
        self.known: dict[tuple[bytes, int], Partition] = {}

    def verify(self, world: Any) -> None:
        for place, partition in partitions(world):
            before = self.known.get(place, partition)
            assert partition.leader_epoch >= before.leader_epoch, place
            assert partition.partition_epoch >= before.partition_epoch, place
            assert partition.partition_epoch > before.partition_epoch or partition == before, place
            assert partition.leader_epoch > before.leader_epoch or partition.leader == before.leader, place
            self.known[place] = partition


class BrokerEpochOnlyGrows(Invariant):
    """Also of a broker that was away; it is at most the offset of its registration."""

    def __init__(self) -> None:
        self.known: dict[int, int] = {}

    def verify(self, world: Any) -> None:
        for broker_id, broker in world.image.cluster.brokers.items():
            assert broker.broker_epoch >= self.known.get(broker_id, -1), broker_id
            assert broker.broker_epoch <= broker.registration_offset, broker_id
            self.known[broker_id] = broker.broker_epoch


class HighWatermarkOnlyGrows(Invariant):
    """As Fetch told it, and it is never past the end of the log."""

    def verify(self, world: Any) -> None:
        result = [*world.told_high_watermarks[-2:], world.log.high_watermark]
        assert result == sorted(result)
        assert result[-1] <= world.log.end_offset


class ProducerIdsAreGivenOnce(Invariant):
    def __init__(self) -> None:
        self.next_id = -1

    def verify(self, world: Any) -> None:
        next_id = world.image.settings.next_producer_id
        assert next_id >= self.next_id
        self.next_id = next_id


class ConfigsAreOfTopicsThatThereAre(Invariant):
    def verify(self, world: Any) -> None:
        topics = {name for kind, name in world.image.configs if kind == TOPIC}
        assert topics <= set(world.image.topics.by_name)


class SilentBrokersAreFencedInTime(Invariant):
    def verify(self, world: Any) -> None:
        oldest_ms = world.now_ms - world.config.session_timeout_ms - SESSION_SLACK_MS
        for broker_id, registration in world.image.cluster.brokers.items():
            heard_ms = max(world.brokers[broker_id].heard_ms, world.started_ms)
            assert registration.fenced or heard_ms >= oldest_ms, broker_id


class DirectoriesHaveOneOwner(Invariant):
    def verify(self, world: Any) -> None:
        brokers = world.image.cluster.brokers.values()
        result = {directory: broker.broker_id for broker in brokers for directory in broker.log_dirs}
        assert result == world.image.cluster.broker_by_directory
        assert len(result) == sum(len(broker.log_dirs) for broker in brokers)


class IndexAgreesWithPartitions(Invariant):
    def verify(self, world: Any) -> None:
        fresh = PartitionIndex()
        for place, partition in partitions(world):
            fresh.add(place, partition)
        index = world.image.topics.index
        for broker_id in (-1, *world.brokers):
            assert index.in_isr(broker_id) == fresh.in_isr(broker_id)
            assert index.in_elr(broker_id) == fresh.in_elr(broker_id)
            assert index.led_by(broker_id) == fresh.led_by(broker_id)
        for broker in world.brokers.values():
            for directory in broker.log_dirs:
                assert index.in_directory(directory) == fresh.in_directory(directory)
        assert (index.imbalanced(), index.reassigning()) == (fresh.imbalanced(), fresh.reassigning())


class HeartbeatStatesFollowRegistrations(Invariant):
    def verify(self, world: Any) -> None:
        states = world.controller.heartbeats.brokers
        brokers = world.image.cluster.brokers
        assert {b: state.fenced for b, state in states.items()} == {b: broker.fenced for b, broker in brokers.items()}


class ImageEqualsReplay(Invariant):
    def verify(self, world: Any) -> None:
        image = Image()
        for offset, (record, _) in world.log.records():
            image.apply(record, offset)
        assert image == world.image


class ImageToldInRecordsIsTheImage(Invariant):
    def verify(self, world: Any) -> None:
        image = Image()
        for record, _ in world.image.to_records(world.image.metadata_version):
            image.apply(record, 0)
        assert image == world.image


class JournalReplaysToSameBytes(Invariant):
    def verify(self, world: Any) -> None:
        assert world.replayed().read(0, 1 << 40) == world.log.read(0, 1 << 40)


AT_EVERY_STEP: list[Callable[[], Invariant]] = [
    LeaderIsInIsr,
    IsrIsSubsetOfReplicas,
    ElrDisjointFromIsr,
    DirectoriesMatchReplicas,
    FencedBrokersLeadNothing,
    FencedBrokersAreOnlyEverTheLastInSync,
    LeadersDirectoriesAreOnline,
    NobodyWhoMayLeadIsLeftOut,
    PartitionEpochsOnlyGrow,
    BrokerEpochOnlyGrows,
    HighWatermarkOnlyGrows,
    ProducerIdsAreGivenOnce,
    ConfigsAreOfTopicsThatThereAre,
    SilentBrokersAreFencedInTime,
    DirectoriesHaveOneOwner,
    IndexAgreesWithPartitions,
    HeartbeatStatesFollowRegistrations,
]
AT_THE_END: list[Callable[[], Invariant]] = [ImageEqualsReplay, ImageToldInRecordsIsTheImage, JournalReplaysToSameBytes]


@pytest.mark.parametrize("seed", SEEDS)
def test_every_truth_holds_in_every_world(new_world: Any, seed: int) -> None:
    world = new_world(seed)
    invariants = [kind() for kind in AT_EVERY_STEP]
    for number in range(STEPS):
        event = "?"
        try:
            event = world.step()
            for invariant in invariants:
                verify(invariant, world)
        except AssertionError as broken:
            broken.add_note(f"seed {seed}, step {number}: {event}; again: MOCKRAFT_SIMULATION_SEEDS={seed + 1} \\")
            broken.add_note(f"pytest '{AGAIN}[{seed}]'")
            raise
    for kind in AT_THE_END:
        verify(kind(), world)


def verify(invariant: Invariant, world: Any) -> None:
    try:
        invariant.verify(world)
    except AssertionError as broken:
        broken.add_note(f"{type(invariant).__name__} of seed {world.seed}")
        raise
