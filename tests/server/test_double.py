"""The double as a whole: time, restarts and resets in place."""

import re
from pathlib import Path
from typing import Any

import pytest
from mockraft import Controller, Quorum, stub
from mockraft.kafka_api.clock import VirtualClock
from mockraft.wire import api_keys
from mockraft.wire.client import DisconnectedError, connect
from mockraft.wire.messages.api_versions_request import ApiVersionsRequest

from ..waiting import until


async def test_advancing_the_clock_ends_sessions_and_runs_periodic_work_without_a_sleep() -> None:
    async with Controller(clock=VirtualClock(), session_timeout_ms=3_000) as controller:
        double = controller
        records = len(double.state.metadata_log())
        before_ms = double.now_ms
        double.advance(2_000)
        assert double.now_ms == before_ms + 2_000
        assert [line.type for line in double.state.metadata_log(records)] == ["NoOpRecord"] * 4


async def test_only_a_virtual_clock_can_be_moved_and_only_forward() -> None:
    async with Controller() as controller:
        with pytest.raises(ValueError, match='clock="virtual"'):
            controller.advance(1)
    async with Controller(clock=VirtualClock()) as controller:
        with pytest.raises(ValueError, match="ms=-1: the clock cannot go back"):
            controller.advance(-1)
        for wrong in (1.5, "1s", True):
            with pytest.raises(TypeError, match=re.escape(f"ms={wrong!r}: it must be an integer")):
                controller.advance(wrong)  # type: ignore[arg-type]


async def test_a_restart_keeps_port_log_and_journal_and_begins_the_next_epoch() -> None:
    async with Controller(brokers=1) as controller:
        double, port, broker = controller, controller.port, controller.state.broker(1)
        journal = controller.journal
        client = await connect(controller.host, port)
        double.restart()
        with pytest.raises(DisconnectedError):
            await client.send(ApiVersionsRequest(), version=0)
        assert controller.port == port
        assert double.state.quorum().epoch == 2
        assert double.state.broker(1).epoch == broker.epoch
        assert controller.journal is journal
        await until(lambda: double.state.broker(1).metadata_offset is not None)


async def test_a_restart_recovers_the_log_of_a_data_directory_and_no_reset_throws_it_away(tmp_path: Path) -> None:
    async with Controller(data_dir=tmp_path, brokers=1) as controller:
        epoch = controller.state.broker(1).epoch
        controller.restart_in_place()
        assert controller.state.broker(1).epoch == epoch
        assert controller.state.quorum().epoch == 2
        with pytest.raises(ValueError, match="its log is kept"):
            controller.reset(state=True)


async def test_a_reset_of_the_state_gives_a_new_controller_on_the_same_port() -> None:
    async with Controller(clock=VirtualClock()) as controller:
        port, fresh = controller.port, [line.type for line in controller.state.metadata_log()]
        controller.state.append([{"type": "NoOpRecord", "record": {}}])
        controller.reset(state=True)
        assert controller.port == port
        assert [line.type for line in controller.state.metadata_log()] == fresh
        client = await connect(controller.host, port)
        assert (await client.send(ApiVersionsRequest(), version=0)).error_code == 0
        await client.close()


async def test_a_reset_empties_the_script_and_the_journals_and_keeps_the_state() -> None:
    async with Controller() as controller:
        script = controller.script
        await (await connect(controller.host, controller.port)).close()
        controller.state.append([{"type": "NoOpRecord", "record": {}}])
        records = len(controller.state.metadata_log())
        assert controller.journal.exchanges()
        script.stubs.add(stub("BrokerHeartbeat").in_scenario("failover", then="over").drop())
        script.faults.add("latency", latency_ms=5)
        script.faults.add("never_caught_up")
        controller.reset()
        assert (script.stubs.stubs, script.stubs.scenarios, script.faults.all) == ([], {}, [])
        assert controller.journal.exchanges() == []
        assert len(controller.state.metadata_log()) >= records


async def test_the_nodes_of_a_quorum_are_restarted_by_the_quorum() -> None:
    async with Quorum(controllers=2) as quorum:
        with pytest.raises(ValueError, match=r"nodes \[3000, 3001\].*one by one, with `Quorum.restart`"):
            quorum.restart_in_place()


async def test_the_state_of_a_quorum_is_that_of_its_leader() -> None:
    async with Quorum(controllers=3) as quorum:
        await quorum.wait_for_leader()
        state = quorum.state
        leader = state.quorum().leader_id
        assert leader in (3000, 3001, 3002)
        assert [voter.node_id for voter in state.quorum().voters] == [3000, 3001, 3002]
        other = next(node for node in (3000, 3001, 3002) if node != leader)
        await quorum.elect(other)
        assert state.quorum().leader_id == other
        with pytest.raises(ValueError, match=r"node 7 is not running; there are \[3000, 3001, 3002\]"):
            state.elect_controller(7)


async def test_a_reset_takes_back_the_release_that_it_passes_for() -> None:
    def offered(controller: Controller) -> tuple[Any, Any]:
        running = controller.running
        return running.controller.release, running.node.apis[api_keys.DESCRIBE_CLUSTER]

    async with Controller(as_version="4.0") as controller:
        before = offered(controller)
        controller.as_version("3.9", {"DescribeCluster": "0-0"})
        assert offered(controller) != before
        controller.reset()
        assert offered(controller) == before
        controller.restart()
        assert offered(controller) == before
