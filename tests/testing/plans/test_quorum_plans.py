"""The plans of examples/quorum, each on a quorum as its first line starts one."""

from __future__ import annotations

import asyncio
from pathlib import Path

from mockraft import Quorum
from mockraft.testing.options import ControllerOptions

PLANS = Path(__file__).parents[3] / "examples" / "quorum"

ENDS = {
    "first_scale_up": (1, 2, {3000, 3001, 3002}),
    "scale_up": (3, 2, {3000, 3001, 3002, 3003, 3004}),
    "scale_down": (5, 0, {3001, 3002, 3003}),
    "lagging_observer": (1, 1, {3000, 3001}),
    "lost_disk": (3, 0, {3000, 3001, 3002}),
    "unreachable_endpoint": (1, 1, {3000, 3001}),
    "removed_voter_returns": (3, 0, {3000, 3001, 3002}),
    "auto_join_in_election": (3, 1, {3000, 3001, 3002, 3003}),
}
"""Voters and observers that a plan begins with, and the voters at its end."""


async def run(plan: str, controllers: int, observers: int, voters: set[int]) -> None:
    """Run a plan until all of its changes are committed. TimeoutError."""
    joins = plan == "auto_join_in_election"
    stubs = PLANS / f"{plan}.yaml"
    options: ControllerOptions = {"stubs": stubs, "controller_quorum_auto_join_enable": joins}
    # The controller refuses a step of some plans until its end.
    options["assert_all_used"] = False
    async with Quorum(controllers, observers=observers, **options) as quorum:
        faults = quorum.script.faults

        def is_done() -> bool:
            has_begun = all(step["state"] != "waiting" for step in faults.plan_json())
            found = {each.node_id for each in quorum.state.quorum().voters}
            return has_begun and not any(each.is_pending for each in faults.active) and found == voters

        try:
            await quorum.wait_until(is_done, 60)
        except TimeoutError as error:
            raise AssertionError(f"{plan}: {faults.plan_json()}, {quorum.state.quorum()}") from error


async def test_each_plan_ends_with_its_voters() -> None:
    assert ENDS.keys() == {path.stem for path in PLANS.glob("*.yaml")}
    await asyncio.gather(*(run(plan, *ends) for plan, ends in ENDS.items()))
