"""Shards of a fleet on mockraft's own controller, in the test's process and in processes of their own."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from mockraft import Controller, Quorum
from mockraft.brokers.fleet.figures import Figures, figures_of, merged
from mockraft.brokers.fleet.plan import Act, Action, Shard, plan, shard_of, split_shards
from mockraft.brokers.fleet.processes import WorkerProcesses
from mockraft.brokers.fleet.runner import FleetRunner
from mockraft.brokers.lifecycle import End
from mockraft.brokers.metadata.observer import FatalError
from mockraft.server.controller.result import ControllerResult
from mockraft.wire import api_keys
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.records.broker_registration_change_record import BrokerRegistrationChangeRecord

from ...waiting import until

COUNT = 12
SESSION_MS = 9_000
SHORT_SESSION = pytest.mark.parametrize("controller", [1_500], indirect=True, ids=["short session"])


@pytest.fixture
async def controller(request: pytest.FixtureRequest) -> AsyncIterator[Controller]:
    """Nobody is fenced here because the machine is busy, but where a test waits for the end of a session."""
    async with Controller(session_timeout_ms=getattr(request, "param", SESSION_MS)) as running:
        yield running


def shard(controller: Controller, *actions: Action, count: int = COUNT, **options: Any) -> Shard:
    racks: dict[int, str | None] = dict.fromkeys(range(1, count + 1))
    return Shard(
        bootstrap=((controller.host, controller.port),),
        cluster_id=controller.cluster_id,
        racks=racks,
        actions=[*plan(racks, 0, (), 1), *actions],
        seed=1,
        heartbeat_interval_ms=50,
        session_timeout_ms=controller.running.config.session_timeout_ms,
        **options,
    )


@asynccontextmanager
async def sailing(controller: Controller, *actions: Action, **options: Any) -> AsyncIterator[FleetRunner]:
    """A runner whose brokers are all unfenced; its actions come then."""
    runner = FleetRunner(shard(controller, **options))
    try:
        await runner.run()
        await until(lambda: runner.figures().unfenced == runner.figures().running == COUNT)
        for action in actions:
            runner._do(action)
        yield runner
    finally:
        await runner.stop()


def fence(controller: Controller, broker_id: int) -> None:
    """Have the controller fence a broker for no reason."""
    running = controller.running
    epoch = running.controller.image.cluster.brokers[broker_id].broker_epoch
    record = BrokerRegistrationChangeRecord(broker_id=broker_id, broker_epoch=epoch, fenced=1)
    running.controller.commit(ControllerResult([RecordAt(record, 1)], None), running.clock.now_ms())


def on_each(act: Act, broker_ids: Sequence[int]) -> list[Action]:
    return [Action(0, broker_id, act) for broker_id in broker_ids]


@pytest.mark.parametrize("shares_replication", [True, False])
async def test_all_register_are_unfenced_and_leave(controller: Controller, shares_replication: bool) -> None:
    async with sailing(controller, shares_replication=shares_replication) as runner:
        brokers = controller.running.controller.image.cluster.brokers
        assert sorted(brokers) == list(range(1, COUNT + 1))
        assert not any(broker.fenced for broker in brokers.values())
        await runner.leave(5000)
        assert {broker.end for broker in runner.brokers.values()} == {End.GRANTED}
        figures = runner.figures()
    assert (figures.started, figures.running, figures.mistakes, figures.died) == (0, 0, {}, {})
    assert figures.answered == figures.latency.total > 3 * COUNT


async def test_a_shared_replication_is_one_fetch_for_all_and_one_connection_each(controller: Controller) -> None:
    async with sailing(controller):
        fetching = {e.client_id for e in controller.journal.exchanges(api_keys.FETCH)}
        assert fetching == {"raft-client-fleet"}
        others = {e.client_id for e in controller.journal.exchanges()} - fetching
        assert others == {str(broker_id) for broker_id in range(1, COUNT + 1)}


@SHORT_SESSION
async def test_killed_brokers_are_fenced_and_that_is_no_mistake(controller: Controller) -> None:
    async with sailing(controller, *on_each(Act.KILL, [3, 4])) as runner:
        await until(lambda: runner.figures().fenced == 2)
        figures = runner.figures()
        assert (figures.started, figures.unfenced) == (COUNT - 2, COUNT - 2)
        for action in on_each(Act.START, [3, 4]):
            runner._do(action)
        await until(lambda: runner.figures().unfenced == COUNT)
        assert (runner.figures().mistakes, runner.figures().died) == ({}, {})


@SHORT_SESSION
async def test_restarted_broker_keeps_its_directories_and_reports_a_clean_shutdown(controller: Controller) -> None:
    async with sailing(controller, *on_each(Act.STOP, [5]), *on_each(Act.START, [5])) as runner:

        def registrations() -> list[Any]:
            exchanges = controller.journal.exchanges(api_keys.BROKER_REGISTRATION)
            return [e for e in exchanges if e.request.broker_id == 5 and e.response.error_code == 0]

        await until(lambda: len(registrations()) == 2)
        first, second = registrations()
        assert second.request.previous_broker_epoch == first.response.broker_epoch
        assert second.request.incarnation_id != first.request.incarnation_id
        assert second.request.log_dirs == first.request.log_dirs
        await until(lambda: runner.figures().running == COUNT)
        assert runner.figures().mistakes == {}


@SHORT_SESSION
async def test_a_frozen_broker_is_fenced_and_comes_back_when_it_thaws(controller: Controller) -> None:
    async with sailing(controller, *on_each(Act.FREEZE, [7])) as runner:
        await until(lambda: runner.figures().fenced == 1)
        assert runner.figures().running == COUNT
        runner._do(Action(0, 7, Act.THAW))
        await until(lambda: runner.figures().fenced == 0)
        assert runner.figures().mistakes == {}


async def test_a_disconnected_broker_comes_back_by_itself(controller: Controller) -> None:
    async with sailing(controller) as runner:
        before = runner.brokers[2].heartbeats
        runner._do(Action(0, 2, Act.DISCONNECT))
        await until(lambda: runner.brokers[2].heartbeats > before + 2)
        connections = {e.connection_id for e in controller.journal.exchanges() if e.client_id == "2"}
        assert len(connections) >= 2
        assert runner.figures().fenced == 0


async def test_a_controller_that_fences_a_broker_that_is_well_makes_a_mistake(controller: Controller) -> None:
    async with sailing(controller) as runner:
        fence(controller, 9)
        await until(lambda: runner.figures().mistakes)
        await until(lambda: runner.figures().unfenced == COUNT)
        assert runner.figures().mistakes == {9: 1}


@SHORT_SESSION
async def test_changes_before_the_start_are_no_errors(controller: Controller) -> None:
    async with sailing(controller) as runner:
        fence(controller, 9)
        await until(lambda: runner.figures().mistakes)
    async with sailing(controller) as runner:
        assert runner.figures().mistakes == {}


async def test_a_broker_that_dies_by_itself_is_reported(controller: Controller) -> None:
    async with sailing(controller) as runner:
        runner.brokers[6].node.failed(FatalError("a nonsensical answer"))
        await until(lambda: runner.figures().died)
        assert runner.figures().died == {6: "a nonsensical answer"}


async def test_broken_shared_log_stops_all_its_brokers(controller: Controller, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: Any) -> Any:
        raise FatalError("Received unexpected invalid request error")

    async with sailing(controller) as runner:
        monkeypatch.setattr(runner._log.observer, "receive", broken)
        await until(lambda: len(runner.figures().died) == COUNT)
        assert set(runner.figures().died.values()) == {"Received unexpected invalid request error"}


async def test_a_fleet_follows_the_controller_to_where_it_moves() -> None:
    async with Quorum(3, session_timeout_ms=SESSION_MS) as quorum:
        fleet = FleetRunner.joining(
            quorum.bootstrap,
            quorum.cluster_id,
            COUNT,
            shares_replication=True,
            heartbeat_interval_ms=50,
            session_timeout_ms=SESSION_MS,
        )
        async with fleet:
            before = await fleet.until(lambda figures: figures.unfenced == COUNT)
            await quorum.kill(3000 if quorum.active is None else quorum.active)
            leader = await quorum.wait_for_leader()
            after = await fleet.until(lambda figures: figures.answered > before.answered + 20 * COUNT)
            assert len(quorum.node(leader).controller.image.cluster.brokers) == COUNT
            assert (after.unfenced, after.mistakes, after.died) == (COUNT, {}, {})


async def test_wait_timeout_reports_the_current_state() -> None:
    async with (
        Controller() as controller,
        FleetRunner.joining(controller.bootstrap, controller.cluster_id, 2, heartbeat_interval_ms=50) as fleet,
    ):
        await fleet.until(lambda figures: figures.running == 2)
        with pytest.raises(TimeoutError, match=r"condition not met within 10 ms: Figures\(brokers=2, started=2"):
            await fleet.until(lambda figures: figures.unfenced == 3, 10)


def test_a_share_survives_its_way_through_a_pipe() -> None:
    racks: dict[int, str | None] = {1: "a", 2: None, 3: "c"}
    shards = split_shards(
        racks, plan(racks, 100, (), 1), 2, bootstrap=(("::1", 1),), cluster_id="c", seed=5, command_config="x"
    )
    assert [list(each.racks) for each in shards] == [[1, 3], [2]]
    assert [shard_of(each.to_tree()) for each in shards] == shards
    assert sorted(action for each in shards for action in each.actions) == sorted(plan(racks, 100, (), 1))


def test_figures_survive_their_way_through_a_pipe_and_add_up() -> None:
    import json

    first, second = Figures(brokers=2, running=1), Figures(brokers=3, died={7: "it is over"})
    first.latency.add(0.5)
    first.mistakes[3] = 2
    second.errors["STALE_BROKER_EPOCH"] = 4
    both = merged([figures_of(json.loads(json.dumps(each.to_tree()))) for each in (first, second)])
    assert (both.brokers, both.running, both.died, both.mistakes) == (5, 1, {7: "it is over"}, {3: 2})
    assert (both.errors, both.latency.total, both.latency.largest_s) == ({"STALE_BROKER_EPOCH": 4}, 1, 0.5)


FLEET_SIZE = 8


async def started(bootstrap: tuple[str, int], cluster_id: str, **options: Any) -> WorkerProcesses:
    racks: dict[int, str | None] = dict.fromkeys(range(1, FLEET_SIZE + 1))
    actions = plan(racks, 100, (), 1)
    shards = split_shards(racks, actions, 2, bootstrap=(bootstrap,), cluster_id=cluster_id, seed=1, **options)
    fleet = WorkerProcesses(shards)
    await fleet.start()
    return fleet


async def test_two_processes_are_one_fleet() -> None:
    async with Controller() as controller:
        fleet = await started((controller.host, controller.port), controller.cluster_id)
        await until(lambda: fleet.figures.unfenced == FLEET_SIZE)
        assert fleet.figures.registered_s is not None
        fleet.leave()
        await fleet.join()
        assert (fleet.figures.started, fleet.figures.died, fleet.lost) == (0, {}, [])
        assert all(broker.fenced for broker in controller.running.controller.image.cluster.brokers.values())


async def test_dead_process_is_reported_and_the_other_continues() -> None:
    async with Controller() as controller:
        fleet = await started((controller.host, controller.port), controller.cluster_id)
        await until(lambda: fleet.figures.unfenced == FLEET_SIZE)
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
    fleet = await started(("127.0.0.1", 1), "c", command_config="/nowhere/client.properties")
    await fleet.join()
    assert len(fleet.lost) == 2
    assert sorted(fleet.lost)[0].startswith("process 1 of 2 ended with exit code 1\n  | ")
    assert "No such file or directory: '/nowhere/client.properties'" in sorted(fleet.lost)[0]


@pytest.mark.parametrize("word", ["leave", "stop"])
async def test_fleet_without_a_controller_stops_on_request(word: str) -> None:
    fleet = await started(("127.0.0.1", 1), "c", session_timeout_ms=1000)
    await until(lambda: fleet.figures.started == FLEET_SIZE)
    getattr(fleet, word)()
    await fleet.join()
    assert (fleet.figures.registered, fleet.figures.died, fleet.lost) == (0, {}, [])


async def test_processes_end_with_the_one_that_started_them() -> None:
    async with Controller() as controller:
        fleet = await started((controller.host, controller.port), controller.cluster_id)
        await until(lambda: fleet.figures.started)
        for worker in fleet._workers:
            assert worker.process.stdin is not None
            worker.process.stdin.close()
        await fleet.join()
        assert fleet.lost == []
