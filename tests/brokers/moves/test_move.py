"""A move, event by event: the whole table, and what holds whatever happens in whatever order."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

from mockraft.brokers.moves.move import TABLE, Happened, Order, Stage, step

from ...rows import each_row

LIVE = [stage for stage in Stage if stage.is_under_way]


@dataclass(frozen=True)
class World:
    """State outside the table: files, and the last directory queued for the controller."""

    stage: Stage = Stage.UNASKED
    replica: str = "source"
    has_future: bool = False
    reported: str = "source"
    acknowledged: bool = False
    caught_up_since: bool = False


def carry_out(world: World, order: Order) -> World:
    match order:
        case Order.CREATE_FUTURE:
            assert not world.has_future, "two future replicas"
            return replace(world, has_future=True, acknowledged=False, caught_up_since=False)
        case Order.DELETE_FUTURE | Order.FORGET_FUTURE:
            assert world.has_future, "nothing to delete"
            return replace(world, has_future=False)
        case Order.ASSIGN_TARGET:
            return replace(world, reported="target")
        case Order.ASSIGN_SOURCE:
            return replace(world, reported="source")
        case Order.SWAP:
            assert world.has_future
            assert world.acknowledged, "swapped before the controller agreed"
            assert world.caught_up_since, "swapped before the last records were copied"
            return replace(world, replica="target", has_future=False)
        case Order.COPY:
            assert world.has_future, "copies into nothing"
            return world


def after(world: World, happened: Happened) -> World:
    """The world once an event was taken and its orders carried out."""
    restarted = happened in (Happened.RESTARTED, Happened.RESTARTED_ACKNOWLEDGED)
    if restarted and world.stage is Stage.UNASKED:
        acknowledged = happened is Happened.RESTARTED_ACKNOWLEDGED
        reported = "target" if acknowledged else "source"
        world = replace(world, has_future=True, reported=reported, acknowledged=acknowledged)
    if happened is Happened.ACKNOWLEDGED and world.stage is Stage.QUEUED:
        world = replace(world, acknowledged=True, caught_up_since=False)
    if happened is Happened.CAUGHT_UP:
        world = replace(world, caught_up_since=True)
    stage, orders = step(world.stage, happened)
    world = replace(world, stage=stage)
    for order in orders:
        world = carry_out(world, order)
    return world


def reachable() -> list[tuple[World, tuple[Happened, ...]]]:
    """Every world that any events lead to, with the shortest way there."""
    found: dict[World, tuple[Happened, ...]] = {World(): ()}
    new = list(found)
    while new:
        grown = []
        for world, happened in itertools.product(new, Happened):
            if happened is Happened.RENAMED and world.replica == "source":
                continue
            if world.replica == "target" and world.stage is Stage.ACCEPTED and happened is not Happened.RENAMED:
                continue
            following = after(world, happened)
            if following not in found:
                found[following] = (*found[world], happened)
                grown.append(following)
        new = grown
    return list(found.items())


def test_move_passes_through_all_stages() -> None:
    stage, orders = step(Stage.UNASKED, Happened.ASKED)
    assert (stage, orders) == (Stage.COPYING, (Order.CREATE_FUTURE, Order.COPY))
    assert step(stage, Happened.COPIED) == (Stage.COPYING, (Order.COPY,))
    stage, orders = step(stage, Happened.CAUGHT_UP)
    assert (stage, orders) == (Stage.QUEUED, (Order.ASSIGN_TARGET, Order.COPY))
    assert step(stage, Happened.CAUGHT_UP) == (Stage.QUEUED, (Order.COPY,))
    stage, orders = step(stage, Happened.ACKNOWLEDGED)
    assert (stage, orders) == (Stage.ACCEPTED, (Order.COPY,))
    assert step(stage, Happened.COPIED) == (Stage.ACCEPTED, (Order.COPY,))
    assert step(stage, Happened.CAUGHT_UP) == (Stage.ACCEPTED, (Order.SWAP,))
    assert step(stage, Happened.RENAMED) == (Stage.DONE, ())


def test_event_outside_the_table_changes_no_stage() -> None:
    outside = [key for key in itertools.product(Stage, Happened) if key not in TABLE]
    assert all(step(*key) == (key[0], ()) for key in outside)
    # A move that has ended has ended.
    assert {*itertools.product((Stage.DONE, Stage.OVER), Happened)} <= {*outside}


@each_row("stage", LIVE)
@each_row(
    ("happened", "ends"),
    [
        (Happened.CANCELLED, Stage.OVER),
        (Happened.REPLACED, Stage.COPYING),
        (Happened.SOURCE_LOST, Stage.OVER),
        (Happened.TARGET_LOST, Stage.OVER),
        (Happened.REPLICA_GONE, Stage.OVER),
    ],
)
def test_every_stage_handles_every_reason_to_end(stage: Stage, happened: Happened, ends: Stage) -> None:
    assert step(stage, happened)[0] is ends


@each_row("stage", [Stage.QUEUED, Stage.ACCEPTED])
@each_row("happened", [Happened.CANCELLED, Happened.REPLACED, Happened.TARGET_LOST])
def test_controller_is_notified_when_an_announced_move_ends_early(stage: Stage, happened: Happened) -> None:
    assert Order.ASSIGN_SOURCE in step(stage, happened)[1]
    assert Order.ASSIGN_SOURCE not in step(Stage.COPYING, happened)[1]


def test_lost_source_is_assigned_back_so_that_the_isr_is_updated() -> None:
    assert step(Stage.COPYING, Happened.SOURCE_LOST) == (Stage.OVER, ())
    assert step(Stage.QUEUED, Happened.SOURCE_LOST) == (Stage.OVER, (Order.ASSIGN_SOURCE,))
    assert step(Stage.ACCEPTED, Happened.SOURCE_LOST) == (Stage.OVER, (Order.ASSIGN_SOURCE,))


def test_a_deleted_replica_is_not_assigned_to_anything() -> None:
    assert {step(stage, Happened.REPLICA_GONE)[1] for stage in LIVE} == {(Order.DELETE_FUTURE,)}


def test_a_refused_assignment_waits_for_the_queue_to_try_again() -> None:
    assert step(Stage.QUEUED, Happened.REFUSED) == (Stage.QUEUED, ())


def test_whatever_happens_the_files_and_the_controller_agree_in_the_end() -> None:
    worlds = reachable()
    assert {world.stage for world, _ in worlds} == set(Stage)
    for world, way in worlds:
        assert world.has_future or world.stage not in (Stage.COPYING, Stage.QUEUED), way
        if world.stage is Stage.DONE:
            assert (world.replica, world.reported, world.has_future) == ("target", "target", False), way
        if world.stage is Stage.OVER:
            assert world.replica == "source", way
            assert world.reported == "source" or Happened.REPLICA_GONE in way, way
            assert not world.has_future or Happened.SOURCE_LOST in way, way
