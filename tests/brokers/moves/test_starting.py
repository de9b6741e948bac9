"""A broker that starts with unfinished moves of a killed one; test_killed_while_moving.py has real kills."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from mockraft.brokers.assignments import ReplicaKey
from mockraft.brokers.log_dirs.log_names import live_name
from mockraft.brokers.metadata.observer import FatalError
from mockraft.brokers.moves.move import Stage
from mockraft.brokers.moves.requests import start_move
from mockraft.brokers.moves.starting import settle
from mockraft.wire import record_batch

from ...waiting import until

MakeBench = Callable[..., Any]
BATCH = record_batch.encode([b"more"], base_offset=0, leader_epoch=0, timestamp_ms=1000)


async def left_by_a_move(bench: Any) -> ReplicaKey:
    """A replica in /d0 and its copy in /d1, which has caught up."""
    key: ReplicaKey = bench.create("a", "/d0", 0, "x", "y")
    start_move(bench.broker.movers, "a", 0, "/d1")
    await until(lambda: bench.told)
    await bench.broker.kill()
    bench.broker.logs.close()
    return key


def started(make_bench: MakeBench, bench: Any, assigned: str, *, offline: tuple[str, ...] = ()) -> Any:
    """Another broker on the same disks, which the metadata has the replica a-0 in this directory of."""
    again = make_bench(files=bench.files)
    for path in offline:
        again.broker.logs.take_offline(again.directory(path), "broken")
        again.broker.directories.offline[again.directory(path)] = "broken"
    found = again.broker.logs.load()
    again.assigned("a", assigned)
    settle(again.broker.movers, found.duplicates)
    return again


async def test_both_logs_go_on_being_one_move(bench: Any, make_bench: MakeBench) -> None:
    key = await left_by_a_move(bench)
    again = started(make_bench, bench, "/d0")
    assert again.broker.moves[0][:5] == ("a", 0, "/d0", "/d1", Stage.COPYING)
    await until(lambda: again.told)
    assert again.told == [(key, again.directory("/d1"))]
    again.acknowledge()
    await until(lambda: not again.broker.moves)
    assert again.names() == {"/d0": [], "/d1": ["a-0"], "/d2": []}


async def test_agreed_move_is_swapped_in_with_later_records(bench: Any, make_bench: MakeBench) -> None:
    key = await left_by_a_move(bench)
    again = make_bench(files=bench.files)
    found = again.broker.logs.load()
    again.log(key).append_as_leader(BATCH, 0, 1000)
    again.assigned("a", "/d1")
    settle(again.broker.movers, found.duplicates)
    assert again.broker.moves[0][:5] == ("a", 0, "/d0", "/d1", Stage.ACCEPTED)
    assert again.broker.directories.moving == {key: again.directory("/d1")}
    await until(lambda: not again.broker.moves)
    assert again.names() == {"/d0": [], "/d1": ["a-0"], "/d2": []}
    assert (again.log(key).end_offset, again.told) == (3, [])
    assert again.broker.directories.moving == {}


@pytest.mark.parametrize("assigned", ["/d0", "/d1", "elsewhere"])
async def test_a_future_log_alone_becomes_the_log(bench: Any, make_bench: MakeBench, assigned: str) -> None:
    key = await left_by_a_move(bench)
    bench.files["/d0"].remove("a-0")
    again = started(make_bench, bench, assigned)
    assert again.names() == {"/d0": [], "/d1": ["a-0"], "/d2": []}
    assert again.log(key).end_offset == 2


@pytest.mark.parametrize("assigned", ["/d0", "/d2", "elsewhere"])
async def test_future_log_beside_an_offline_directory_is_kept(bench: Any, make_bench: MakeBench, assigned: str) -> None:
    key = await left_by_a_move(bench)
    bench.files["/d0"].remove("a-0")
    again = started(make_bench, bench, assigned, offline=("/d0",))
    assert again.names()["/d1"] == ["a-0-future"]
    assert again.broker.logs.log(key) is None
    assert not again.broker.directories.is_here(key)
    assert again.broker.moves == ()


async def test_a_lost_source_does_not_keep_an_agreed_move_back(bench: Any, make_bench: MakeBench) -> None:
    key = await left_by_a_move(bench)
    again = started(make_bench, bench, "/d1", offline=("/d0",))
    assert again.path_of(key) == "/d1"
    assert again.log(key).end_offset == 2


@pytest.mark.parametrize("assigned", ["/d0", "/d1"])
async def test_of_two_logs_the_one_the_metadata_names_is_kept(bench: Any, make_bench: MakeBench, assigned: str) -> None:
    key = await left_by_a_move(bench)
    (future,) = bench.files["/d1"].names()
    bench.files["/d1"].rename(future, live_name("a", 0))
    again = started(make_bench, bench, assigned)
    assert again.names() == {"/d0": [], "/d1": [], "/d2": [], assigned: ["a-0"]}
    assert (again.path_of(key), again.log(key).end_offset) == (assigned, 2)


async def test_of_two_logs_neither_of_which_the_metadata_names_none_is_touched(
    bench: Any, make_bench: MakeBench
) -> None:
    await left_by_a_move(bench)
    (future,) = bench.files["/d1"].names()
    bench.files["/d1"].rename(future, live_name("a", 0))
    with pytest.raises(FatalError, match=r"Duplicate log directories for a-0 are found: /d0/a-0 and /d1/a-0"):
        started(make_bench, bench, "/d2")
    assert bench.names() == {"/d0": ["a-0"], "/d1": ["a-0"], "/d2": []}


async def test_future_log_of_a_deleted_topic_is_renamed_to_stray(bench: Any, make_bench: MakeBench) -> None:
    await left_by_a_move(bench)
    again = make_bench(files=bench.files)
    found = again.broker.logs.load()
    settle(again.broker.movers, found.duplicates)
    assert again.names()["/d1"] == ["a-0-stray"]
    assert again.broker.moves == ()
