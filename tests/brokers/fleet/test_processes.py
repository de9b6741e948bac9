"""The processes of a fleet, started and lost."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest
from mockraft import Controller
from mockraft.brokers.fleet.plan import plan
from mockraft.brokers.fleet.processes import WorkerProcesses
from mockraft.brokers.fleet.shard import split_shards

from ...waiting import until

COUNT = 8


def started(bootstrap: tuple[str, int], cluster_id: str, **options: Any) -> WorkerProcesses:
    racks: dict[int, str | None] = dict.fromkeys(range(1, COUNT + 1))
    actions = plan(racks, 100, (), 1)
    return WorkerProcesses(
        split_shards(racks, actions, 2, bootstrap=(bootstrap,), cluster_id=cluster_id, seed=1, **options)
    )


async def test_two_processes_are_one_fleet() -> None:
    async with Controller() as controller:
        fleet = started((controller.host, controller.port), controller.cluster_id)
        await fleet.start()
        await until(lambda: fleet.figures.unfenced == COUNT)
        assert fleet.figures.registered_s is not None
        fleet.leave()
        await fleet.join()
        assert (fleet.figures.started, fleet.figures.died, fleet.lost) == (0, {}, [])
        assert all(broker.fenced for broker in controller.running.controller.image.cluster.brokers.values())


async def test_dead_process_is_reported_and_the_other_continues() -> None:
    async with Controller() as controller:
        fleet = started((controller.host, controller.port), controller.cluster_id)
        await fleet.start()
        await until(lambda: fleet.figures.unfenced == COUNT)
        os.kill(fleet._workers[0].process.pid, signal.SIGKILL)
        await until(lambda: fleet.lost)
        assert fleet.lost == ["process 1 of 2 ended with signal 9"]
        assert fleet.figures.died == dict.fromkeys(fleet.shards[0].racks, "its process ended")
        answered = fleet.figures.answered
        await until(lambda: fleet.figures.answered > answered)
        assert not fleet.is_over
        fleet.stop()
        await fleet.join()
        assert fleet.is_over


async def test_process_that_cannot_start_reports_the_cause() -> None:
    fleet = started(("127.0.0.1", 1), "c", command_config="/nowhere/client.properties")
    await fleet.start()
    await fleet.join()
    assert len(fleet.lost) == 2
    assert sorted(fleet.lost)[0].startswith("process 1 of 2 ended with exit code 1\n  | ")
    assert "No such file or directory: '/nowhere/client.properties'" in sorted(fleet.lost)[0]


@pytest.mark.parametrize("word", ["leave", "stop"])
async def test_fleet_without_a_controller_stops_on_request(word: str) -> None:
    fleet = started(("127.0.0.1", 1), "c", session_timeout_ms=1000)
    await fleet.start()
    await until(lambda: fleet.figures.started == COUNT)
    getattr(fleet, word)()
    await fleet.join()
    assert (fleet.figures.registered, fleet.figures.died, fleet.lost) == (0, {}, [])


async def test_processes_end_with_the_one_that_started_them() -> None:
    async with Controller() as controller:
        fleet = started((controller.host, controller.port), controller.cluster_id)
        await fleet.start()
        await until(lambda: fleet.figures.started)
        for worker in fleet._workers:
            assert worker.process.stdin is not None
            worker.process.stdin.close()
        await fleet.join()
        assert fleet.lost == []
