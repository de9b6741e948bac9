"""Truths about whole brokers in every seeded world; each is shown to fail when its rule is broken."""

from __future__ import annotations

import functools
from collections.abc import Callable

import pytest
from mockraft.brokers.lifecycle import BrokerState
from mockraft.brokers.partitions.hosted import HostedPartition

from ...budgets import budget
from .conftest import BROKERS, LAG_TIME_MAX_MS, SESSION_TIMEOUT_MS, BrokerWorld

pytestmark = pytest.mark.one_python

SEEDS = range(budget(5, 200))
LOSS = 0.01


def all_run(world: BrokerWorld) -> bool:
    """Return True if every broker runs, and the controller agrees on that and on its epoch."""
    registered = world.image.cluster.brokers
    return {*world.brokers} == {*BROKERS} and all(
        node.state is BrokerState.RUNNING
        and not registered[broker_id].fenced
        and registered[broker_id].broker_epoch == node.life.broker_epoch
        for broker_id, node in world.brokers.items()
    )


def begin(seed: int, loss: float = LOSS) -> tuple[BrokerWorld, bytes]:
    """A world whose brokers run, and its topic in full."""
    world = BrokerWorld(seed)
    world.run_until(lambda: all_run(world))
    topic_id = world.create_topic()
    world.run_until(lambda: is_whole(world, topic_id))
    world.loss = loss
    return world, topic_id


def is_whole(world: BrokerWorld, topic_id: bytes) -> bool:
    """Return True if every replica is in sync, for the controller and for the leader."""
    partition = world.partition(topic_id)
    leader = world.hosted(partition.leader, topic_id)
    return len(partition.isr) == len(BROKERS) and leader is not None and leader.state.isr == {*BROKERS}


def run_for_long(seed: int, break_rule: Callable[[BrokerWorld], None] = lambda _: None) -> BrokerWorld:
    """A world in which time has passed and connections have broken."""
    world = BrokerWorld(seed, LOSS)
    break_rule(world)
    world.run_until(lambda: all_run(world))
    world.run(3 * SESSION_TIMEOUT_MS)
    world.loss = 0
    world.run_until(lambda: all_run(world))
    return world


@pytest.mark.parametrize("seed", SEEDS)
def test_every_broker_runs_and_the_controller_agrees(seed: int) -> None:
    assert all_run(run_for_long(seed))


def test_a_broker_without_heartbeats_does_not_run() -> None:
    with pytest.raises(AssertionError, match="it has not come true"):
        run_for_long(1, lambda world: world.brokers[2].heart.freeze())


def restart(seed: int, incarnation: int | None = None) -> tuple[int, int]:
    """The broker epochs before and after a restart."""
    world, _ = begin(seed)
    before = world.brokers[2].life.broker_epoch
    world.kill(2)
    world.run(world.rng.randint(0, 2 * SESSION_TIMEOUT_MS))
    world.start(2, incarnation=incarnation)
    world.run_until(lambda: all_run(world))
    return before, world.brokers[2].life.broker_epoch


@pytest.mark.parametrize("seed", SEEDS)
def test_a_restarted_broker_gets_a_new_epoch(seed: int) -> None:
    before, after = restart(seed)
    assert after > before


def test_the_same_incarnation_keeps_its_epoch() -> None:
    before, after = restart(1, incarnation=2)
    assert after == before


def shrink_and_grow(seed: int) -> list[int]:
    """The ISR in the end."""
    world, topic_id = begin(seed)
    leader = world.partition(topic_id).leader
    follower = next(broker_id for broker_id in BROKERS if broker_id != leader)
    replicas = world.brokers[follower].replicas
    assert replicas is not None
    replicas.stick()
    world.run(LAG_TIME_MAX_MS)
    world.loss = 0  # a follower of an empty log does not lag
    world.produce(topic_id)
    world.run_until(lambda: follower not in world.partition(topic_id).isr)
    assert world.image.cluster.brokers[follower].fenced is False
    replicas.stick(False)
    world.lives[follower].perform(world.brokers[follower].kernel.take_effects())
    world.run_until(lambda: is_whole(world, topic_id))
    return sorted(world.partition(topic_id).isr)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_stuck_follower_leaves_the_isr_and_comes_back(seed: int) -> None:
    assert shrink_and_grow(seed) == [1, 2, 3]


def test_a_leader_that_does_not_look_for_lag_keeps_its_isr(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HostedPartition, "shrink", lambda *_: None)
    with pytest.raises(AssertionError, match="it has not come true"):
        shrink_and_grow(1)


def has_other_leader(world: BrokerWorld, topic_id: bytes, leader: int) -> bool:
    return world.partition(topic_id).leader not in (-1, leader)


def lose_leaders(seed: int, acks: int = -1) -> list[bytes]:
    """Produce while leaders are killed and start again; return the acknowledged records that a replica lacks."""
    world, topic_id = begin(seed)
    for _ in range(6):
        for _ in range(5):
            if world.partition(topic_id).leader in world.lives:
                world.produce(topic_id, acks)
            world.run(world.rng.randint(0, 30))
        world.run_until(lambda: len(world.partition(topic_id).isr) > 1)
        leader = world.partition(topic_id).leader
        world.kill(leader)
        world.run_until(functools.partial(has_other_leader, world, topic_id, leader))
        world.start(leader)
        world.run(world.rng.randint(0, 4_000))
    world.loss = 0
    world.run_until(lambda: all_run(world) and is_whole(world, topic_id))
    assert world.acknowledged
    lost = []
    for broker_id in BROKERS:
        hosted = world.hosted(broker_id, topic_id)
        assert hosted is not None
        records = hosted.log.read(0, 1 << 20, hosted.log.end_offset)
        lost += [value for value in world.acknowledged if value not in records]
    return lost


@pytest.mark.parametrize("seed", SEEDS)
def test_no_acknowledged_record_is_lost(seed: int) -> None:
    assert lose_leaders(seed) == []


def test_records_acknowledged_by_the_leader_alone_are_lost() -> None:
    assert any(lose_leaders(seed, acks=1) for seed in range(20))


def test_a_world_of_brokers_repeats_itself() -> None:
    logs = []
    for seed in (1, 1, 2):
        world, _ = begin(seed)
        world.run(10_000)
        logs.append(world.log.read(0, 1 << 40))
    assert logs[0] == logs[1]
    assert logs[0] != logs[2]
