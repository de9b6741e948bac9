"""What must be true of every world at every moment, one class for each truth."""

import os
import subprocess
import sys
from abc import abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mockraft.server.controller.elections import Election
from mockraft.server.controller.image import Image, Partition
from mockraft.server.controller.image.partition_index import PartitionIndex
from mockraft.server.controller.partition_rules import topic_election

SEEDS = range(120)
STEPS = 250
SESSION_SLACK_MS = 9000 // 8


def partitions(world: Any) -> Iterator[tuple[tuple[bytes, int], Partition]]:
    for topic in world.image.topics.by_id.values():
        for partition_id, partition in topic.partitions.items():
            yield (topic.topic_id, partition_id), partition


class Invariant:
    @abstractmethod
    def verify(self, world: Any) -> None:
        """AssertionError when the truth does not hold."""


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
            assert world.image.elr_enabled or not (partition.elr or partition.last_known_elr), place


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
            if world.image.elr_enabled and place not in self.unclean:
                topic = world.image.topics.by_id[place[0]]
                assert topic_election(world.controller, topic) is Election.UNCLEAN, place
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


class EpochsNeverGoBack(Invariant):
    def __init__(self) -> None:
        self.known: dict[tuple[bytes, int], Partition] = {}
        self.broker_epochs: dict[int, int] = {}

    def verify(self, world: Any) -> None:
        for place, partition in partitions(world):
            before = self.known.get(place, partition)
            assert partition.leader_epoch >= before.leader_epoch, place
            assert partition.partition_epoch >= before.partition_epoch, place
            assert partition.partition_epoch > before.partition_epoch or partition == before, place
            assert partition.leader_epoch > before.leader_epoch or partition.leader == before.leader, place
            self.known[place] = partition
        for broker_id, broker in world.image.cluster.brokers.items():
            assert broker.broker_epoch >= self.broker_epochs.get(broker_id, -1), broker_id
            assert broker.broker_epoch <= broker.registration_offset, broker_id
            self.broker_epochs[broker_id] = broker.broker_epoch


class SilentBrokersAreFencedInTime(Invariant):
    def verify(self, world: Any) -> None:
        oldest_ms = world.now_ms - world.config.session_timeout_ms - SESSION_SLACK_MS
        for broker_id, registration in world.image.cluster.brokers.items():
            heard_ms = max(world.brokers[broker_id].heard_ms, world.started_ms)
            assert registration.fenced or heard_ms >= oldest_ms, broker_id


class DirectoriesHaveOneOwner(Invariant):
    def verify(self, world: Any) -> None:
        brokers = world.image.cluster.brokers.values()
        told = {directory: broker.broker_id for broker in brokers for directory in broker.log_dirs}
        assert told == world.image.cluster.broker_by_directory
        assert len(told) == sum(len(broker.log_dirs) for broker in brokers)


class IndexAgreesWithPartitions(Invariant):
    def verify(self, world: Any) -> None:
        fresh = PartitionIndex()
        for place, partition in partitions(world):
            fresh.replace(place, None, partition)
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


class ReplayedLogEqualsImage(Invariant):
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


AT_EVERY_STEP = [
    LeaderIsInIsr,
    IsrIsSubsetOfReplicas,
    ElrDisjointFromIsr,
    DirectoriesMatchReplicas,
    FencedBrokersLeadNothing,
    FencedBrokersAreOnlyEverTheLastInSync,
    LeadersDirectoriesAreOnline,
    NobodyWhoMayLeadIsLeftOut,
    EpochsNeverGoBack,
    SilentBrokersAreFencedInTime,
    DirectoriesHaveOneOwner,
    IndexAgreesWithPartitions,
    HeartbeatStatesFollowRegistrations,
]
AT_THE_END = [ReplayedLogEqualsImage, ImageToldInRecordsIsTheImage]


@pytest.mark.parametrize("seed", SEEDS)
def test_every_truth_holds_in_every_world(new_world: Any, replay_journal: Any, seed: int) -> None:
    world = new_world(seed)
    invariants = [kind() for kind in AT_EVERY_STEP]
    for number in range(STEPS):
        event = world.step()
        for invariant in invariants:
            try:
                invariant.verify(world)
            except AssertionError as broken:
                broken.add_note(f"{type(invariant).__name__}, seed {seed}, step {number}: {event}")
                raise
    for kind in AT_THE_END:
        kind().verify(world)
    replayed = replay_journal(world.journal, world.config, seed)
    assert replayed.read(0, 1 << 40) == world.log.read(0, 1 << 40)


def test_a_world_is_the_same_for_the_same_seed_and_another_for_another(new_world: Any) -> None:
    worlds = [new_world(seed) for seed in (1, 1, 2)]
    for world in worlds:
        for _ in range(100):
            world.step()
    first, again, other = (world.log.read(0, 1 << 40) for world in worlds)
    assert first == again
    assert first != other


HASH_OF_A_WORLD = """
import hashlib, importlib.util, sys
spec = importlib.util.spec_from_file_location("world", sys.argv[1])
module = sys.modules["world"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
world = module.World(9)
for _ in range(200):
    world.step()
print(hashlib.sha256(world.log.read(0, 1 << 40)).hexdigest())
"""


def test_a_world_is_the_same_in_every_process() -> None:
    """Python hashes bytes by another seed in each process: no set's order may show in the log."""
    found = set()
    for hash_seed in ("0", "1", "2"):
        run = subprocess.run(
            [sys.executable, "-c", HASH_OF_A_WORLD, str(Path(__file__).parent / "conftest.py")],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        )
        found.add(run.stdout)
    assert len(found) == 1


def test_worlds_are_eventful(new_world: Any) -> None:
    """The truths are only worth something if leaders move, brokers die and partitions lose all their replicas."""
    seen = set()
    for seed in range(8):
        world = new_world(seed)
        for _ in range(STEPS):
            world.step()
            for _, partition in partitions(world):
                seen.add(("leaderless", partition.leader == -1))
                seen.add(("eligible", bool(partition.elr)))
                seen.add(("empty isr", not partition.isr))
                seen.add(("recovering", bool(partition.leader_recovery_state)))
                seen.add(("moved", partition.leader_epoch > 3))
                seen.add(("reassigned", partition.is_reassigning))
            for broker in world.image.cluster.brokers.values():
                seen.add(("shutting down", broker.in_controlled_shutdown and not broker.fenced))
                seen.add(("lost a directory", len(broker.log_dirs) < len(world.brokers[broker.broker_id].log_dirs)))
    assert {name for name, value in seen if value} == {name for name, _ in seen}
