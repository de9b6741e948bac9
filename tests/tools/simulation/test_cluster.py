"""Every invariant holds in every seeded cluster; a seed that violates one is shrunk to a test."""

from __future__ import annotations

import logging
import os
import shutil
from pathlib import Path

import pytest

from tools.simulation.scripts import ACTIONS, draw
from tools.simulation.shrinking import as_test, shrink, violation
from tools.simulation.world import World

from ...budgets import budget, soak

pytestmark = pytest.mark.one_python

SEEDS = int(os.environ.get("MOCKRAFT_SIMULATION_SEEDS", budget(8, 10_000)))
PARTS = budget(2, 200)
"""Number of tests that share the seeds: each worker takes some."""
ON_DISK_EVERY = 2
"""Every second seed has data directories, where a power cut takes what was not synced."""


@pytest.fixture(autouse=True)
def _without_logging(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging.root.manager, "disable", logging.CRITICAL)


@pytest.mark.parametrize("part", range(PARTS))
def test_every_invariant_holds(tmp_path: Path, part: int) -> None:
    for seed in range(part, SEEDS, PARTS):
        setup, script = draw(seed)
        data_dir = tmp_path / str(seed) if seed % ON_DISK_EVERY == 0 else None
        found = violation(setup, script, data_dir=data_dir)
        if found is not None:
            script = shrink(setup, script, data_dir)
        if data_dir is not None:
            shutil.rmtree(data_dir)
        assert found is None, f"{found.why}\n\n{as_test(setup, script, found.invariant, on_disk=data_dir is not None)}"


def test_a_world_repeats_itself() -> None:
    logs = []
    for seed in (4, 4, 5):
        setup, script = draw(seed)
        world = World(setup)
        world.run(script)
        world.close()
        logs.append(list(world.committed.values()))
    assert logs[0] == logs[1]
    assert logs[0] != logs[2]


@soak
def test_worlds_are_eventful() -> None:
    """The invariants are worth something only if leaders change, writes are confirmed and brokers are fenced."""
    assert {event.action for seed in range(100) for event in draw(seed)[1]} == {*ACTIONS}
    epochs = records = leader_epochs = writes = 0
    for seed in range(8):
        setup, script = draw(seed)
        world = World(setup)
        world.run(script)
        world.close()
        epochs += max(process.log.election.epoch for process in world.controllers.values())
        records += len(world.acknowledged)
        writes += len(world.acknowledged_configs) + len(world.acknowledged_topics)
        leader_epochs += sum(partition.leader_epoch for partition in world.partitions().values())
    assert epochs > 15
    assert records > 50
    assert writes > 20
    assert leader_epochs > 10
