"""The examples of large clusters: Kafka's Admin client plans an upgrade in waves, and Kafka's tools see an outage."""

import json
from pathlib import Path
from typing import Any

import pytest
from mockraft import Controller
from mockraft.testing.plan import StepOutcome

from ..budgets import soak
from ..upgrade_examples import example, write_cluster

pytestmark = [pytest.mark.real_kafka, pytest.mark.timeout(1800)]

RACK = "a"
WHOLE = 1_000
"""The number of brokers with which the whole plan is done; with others its first waves."""

SIZES = [(101, 1_000), pytest.param(1_000, 5_000, marks=soak), pytest.param(10_000, 20_000, marks=soak)]


def counts(step: StepOutcome) -> dict[str, int]:
    offline, under_min_isr, under_replicated = map(len, step.after)
    return {"under-replicated": under_replicated, "under-min-isr": under_min_isr, "unavailable": offline}


@pytest.mark.parametrize(("brokers", "partitions"), SIZES)
def test_brokers_restart_in_waves_that_break_nothing(tmp_path: Path, brokers: int, partitions: int) -> None:
    source = write_cluster(tmp_path / "data", brokers, partitions)
    with Controller.sync(twin_of=source, clock="virtual", twin_brokers="live") as twin:
        plan, summary = example("plan_upgrade").waves(twin.bootstrap_servers, "4.4")
        racks = {broker.broker_id: broker.rack for broker in twin.state.brokers()}
        steps: list[dict[str, Any]] = json.loads(plan)
        waves = [step["restart"]["brokers"] for step in steps[:-1]]
        assert f"{partitions} partitions, 0 of which cannot spare a replica" in summary
        assert sorted(each for wave in waves for each in wave) == list(range(1, brokers + 1))
        assert all(len({racks[each] for each in wave}) == 1 for wave in waves)
        assert 3 < len(waves) < 20
        is_whole = brokers == WHOLE
        outcome = twin.plan(steps if is_whole else [*steps[:2], steps[-1]])
    assert all(each.breaks == "" for each in outcome.steps)
    if is_whole:
        assert outcome.is_safe, str(outcome)
        assert outcome.steps[-1].features == {"metadata.version": (30, 33)}
    else:
        assert "only supports versions 7-30" in outcome.steps[-1].answer


@pytest.mark.parametrize(("brokers", "partitions"), SIZES)
def test_kafkas_tools_see_what_a_lost_rack_leaves(tmp_path: Path, brokers: int, partitions: int) -> None:
    source, tools = write_cluster(tmp_path / "data", brokers, partitions), example("rack_outage")
    with Controller.sync(twin_of=source, clock="virtual", twin_brokers="live") as twin:
        before = tools.leaders_by_rack(twin)
        lost = [broker.broker_id for broker in twin.state.brokers() if broker.rack == RACK]
        left = next(broker for broker_id, broker in twin.brokers.items() if broker_id not in lost).bootstrap_servers
        (outage,) = twin.plan([{"lose_rack": RACK}]).steps
        assert tools.described(left) == counts(outage)
        assert counts(outage)["under-min-isr"] > 0
        (back,) = twin.plan([{"start": {"brokers": lost, "together": True}}]).steps
        assert counts(back) == {"under-replicated": 0, "under-min-isr": 0, "unavailable": 0}
        assert tools.leaders_by_rack(twin) != before
        tools.elect_preferred(left)
        assert tools.leaders_by_rack(twin) == before
