"""Random faults of three nodes: acknowledged records stay, with one history and one leader per epoch."""

import random
from collections.abc import Callable
from typing import Any

import pytest
from mockraft.server.controller.controller import STANDBY
from mockraft.wire import error_codes
from mockraft.wire.messages.incremental_alter_configs_request import IncrementalAlterConfigsRequest

from ...budgets import budget
from ...configs import BROKER, SET, change_configs

pytestmark = pytest.mark.one_python

ALL = (3000, 3001, 3002)
SEEDS = range(budget(20, 60))
STEPS = 60


def setting(number: int) -> IncrementalAlterConfigsRequest:
    """A change of a cluster-wide default that needs no broker: each number sets a config of its own name."""
    return change_configs((BROKER, "", (SET, f"key.{number}", str(number))))


class Chaos:
    """A world in which faults are drawn from a seed, and a client that writes to whom it takes for the leader."""

    def __init__(self, world: Any, seed: int) -> None:
        self.world = world
        self.rng = random.Random(seed)
        self.written = 0
        self.asked: dict[int, int] = {}
        self.leaders: dict[int, int] = {}
        self.high_watermarks = dict.fromkeys(ALL, 0)
        self.events: list[tuple[int, Callable[[], None]]] = [
            (10, self.write),
            (8, self.let_time_pass),
            (2, self.kill),
            (4, self.start),
            (2, self.cut),
            (3, self.heal),
            (2, self.elect),
            (1, self.resign),
        ]

    def step(self) -> None:
        (event,) = self.rng.choices([event for _, event in self.events], [weight for weight, _ in self.events])
        event()
        self.check()

    def check(self) -> None:
        for node_id, node in self.world.nodes.items():
            controller = node.controller
            assert not node.journal.failures, [entry for entry in node.journal.entries if entry.failure]
            if controller.epoch != STANDBY:
                assert self.leaders.setdefault(controller.epoch, node_id) == node_id, "two leaders in one epoch"
            assert controller.log.high_watermark <= controller.log.end_offset
            self.high_watermarks[node_id] = max(self.high_watermarks[node_id], controller.log.high_watermark)
            assert controller.log.end_offset >= self.high_watermarks[node_id], "committed records were truncated"

    def acknowledged(self) -> set[str]:
        return {
            f"key.{number}"
            for connection, number in self.asked.items()
            if (response := self.world.responses.get(connection)) is not None
            and response.responses[0].error_code == error_codes.NONE
        }

    def write(self) -> None:
        leaders = [node_id for node_id, node in self.world.nodes.items() if node.controller.epoch != STANDBY]
        if leaders:
            self.written += 1
            self.asked[self.world.ask(self.rng.choice(leaders), setting(self.written))] = self.written
        self.world.pass_time(self.rng.choice((0, 1, 3, 20)))

    def let_time_pass(self) -> None:
        self.world.pass_time(self.rng.choice((5, 100, 700, 2500, 5000)))

    def kill(self) -> None:
        if self.world.nodes:
            self.world.kill(self.rng.choice(list(self.world.nodes)))

    def start(self) -> None:
        if dead := [node_id for node_id in ALL if node_id not in self.world.nodes]:
            node_id = self.rng.choice(dead)
            self.world.start(node_id)
            self.high_watermarks[node_id] = 0

    def cut(self) -> None:
        self.world.apart = set(self.rng.sample(ALL, self.rng.choice((1, 2))))

    def heal(self) -> None:
        self.world.apart = set()

    def elect(self) -> None:
        if self.world.nodes:
            node_id = self.rng.choice(list(self.world.nodes))
            self.world.controller(node_id).raft.elect(self.world.now_ms)
            self.world.tick(node_id)

    def resign(self) -> None:
        node_id = self.world.active if self.world.nodes else None
        if node_id is not None and self.world.controller(node_id).raft.is_leader:
            self.world.controller(node_id).raft.resign(self.world.now_ms)
            self.world.tick(node_id)

    def end(self) -> None:
        """All faults are over; the world settles."""
        self.heal()
        while len(self.world.nodes) < len(ALL):
            self.start()
        self.world.until(lambda: self.world.active is not None and self.world.settled(), "peace", 60_000)


@pytest.mark.parametrize("seed", SEEDS)
def test_acknowledged_records_are_never_lost(new_world: Callable[..., Any], seed: int) -> None:
    small = {"metadata_log_max_record_bytes_between_snapshots": 3_000, "metadata_max_retention_bytes": 6_000}
    world = new_world(seed=seed, **(small if seed % 2 else {}))
    chaos = Chaos(world, seed)
    for _ in range(STEPS):
        chaos.step()
    chaos.end()
    images = {node_id: world.controller(node_id).image for node_id in ALL}
    assert chaos.acknowledged() <= set(images[world.active].configs[BROKER, ""])
    leader = world.controller(world.active).log
    for node_id in ALL:
        log = world.controller(node_id).log
        start = max(log.start_offset, leader.start_offset)
        assert log.read(start, 1 << 30) == leader.read(start, 1 << 30)
        assert images[node_id].configs == images[world.active].configs
        assert images[node_id].features == images[world.active].features
