"""Simulated brokers in a test's own process: with asyncio, without, and beside the controller that they are on."""

import asyncio
import re
from pathlib import Path
from typing import Any

import mockraft
import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from mockraft import BrokerState, Controller, SimulatedBroker, SyncSimulatedBroker
from mockraft.brokers.fleet import shared_log
from mockraft.brokers.fleet.shared_log import SharedLog
from mockraft.brokers.lifecycle import End
from mockraft.kafka.child_process import free_port
from mockraft.testing.options import TEST_HEARTBEAT_INTERVAL_MS

from ..rows import each_row


def test_a_plain_test_has_a_broker_in_a_thread() -> None:
    with (
        Controller.sync() as controller,
        SimulatedBroker.sync(controller.bootstrap, controller.cluster_id, 1, rack="r1") as broker,
    ):
        broker.wait_until(BrokerState.RUNNING)
        assert (broker.broker_id, broker.state, broker.end_reason) == (1, BrokerState.RUNNING, "")
        registered = controller.call(lambda: controller.running.controller.image.cluster.brokers[1])
        assert (registered.fenced, registered.rack) == (False, "r1")
        broker.shut_down()
        assert broker.state is BrokerState.SHUTTING_DOWN
        assert broker.end_reason == "the controller granted controlled shutdown"


def test_a_killed_broker_sends_no_shutdown_heartbeat() -> None:
    with Controller.sync() as controller:
        with SimulatedBroker.sync(controller.bootstrap, controller.cluster_id, 1) as broker:
            broker.wait_until(BrokerState.RUNNING)
            broker.kill()
            assert broker.end_reason == "stop requested"
        assert not controller.call(lambda: controller.running.controller.image.cluster.brokers[1].fenced)


async def test_a_controller_has_brokers_that_run_when_its_block_begins() -> None:
    async with Controller(brokers=3) as controller:
        assert {n: broker.state for n, broker in controller.brokers.items()} == dict.fromkeys(
            (1, 2, 3), BrokerState.RUNNING
        )
        brokers = list(controller.brokers.values())
        fourth = await controller.start_broker(4, rack="r4")
        assert controller.running.controller.image.cluster.brokers[4].rack == "r4"
    assert {broker.end for broker in (*brokers, fourth)} == {End.STOPPED}


def test_a_plain_test_has_them_as_well() -> None:
    with Controller.sync(brokers=2, session_timeout_ms=500) as controller:
        assert list(controller.brokers) == [1, 2]
        controller.brokers[2].kill()
        again = controller.start_broker(2)
        assert isinstance(again, SyncSimulatedBroker)
        assert again.state is BrokerState.RUNNING


async def test_brokers_whose_files_stay_leave_in_order_unless_they_are_not_registered(tmp_path: Path) -> None:
    async with Controller(brokers=2, session_timeout_ms=600_000, data_dir=tmp_path) as controller:
        known, forgotten = controller.brokers.values()
        controller.state.unregister(2)
    assert (known.end, forgotten.end) == (End.GRANTED, End.IMPATIENT)


async def test_a_broker_that_runs_is_not_started_twice() -> None:
    async with Controller(brokers=1) as controller:
        with pytest.raises(RuntimeError, match="broker 1 runs already"):
            await controller.start_broker(1)


async def test_the_same_seed_gives_the_same_brokers() -> None:
    incarnations = []
    for _ in range(2):
        async with Controller(brokers=2, seed=7) as controller:
            incarnations.append([broker.config.incarnation_id for broker in controller.brokers.values()])
    assert incarnations[0] == incarnations[1]


def test_a_plain_test_breaks_disks_and_moves_replicas(tmp_path: Path) -> None:
    d1, d2, d3 = (str(tmp_path / name) for name in ("d1", "d2", "d3"))
    with Controller.sync() as controller:
        broker = controller.start_broker(1, log_dirs=[d1, d2, d3])
        admin = AdminClient({"bootstrap.servers": controller.bootstrap_servers})
        admin.create_topics([NewTopic("t", 1, 1)])["t"].result(30)
        (at,) = (view.path for view in broker.log_dirs.values() if view.replicas == ("t-0",))
        assert at == d1
        broker.move_replica("t", 0, tmp_path / "d2")
        assert (broker.log_dirs[d2].replicas, broker.log_dirs[d1].replicas, broker.moves) == (("t-0",), (), ())
        broker.slow_log_dir(tmp_path / "d2", 1)
        broker.flaky_log_dir(d2, 0)
        broker.corrupt(tmp_path / "d2" / "t-0" / "partition.metadata")
        broker.heal_log_dir(d2)
        broker.fail_file(tmp_path / "d2" / "t-0")
        with pytest.raises(LookupError, match="t-0"):
            broker.fail_file(tmp_path / "d4" / "t-0")
        broker.heal_log_dir(d2)
        broker.fill_log_dir(d3)
        broker.fail_log_dir(tmp_path / "d3")
        assert "on purpose" in str(broker.log_dirs[d3].offline)
        assert (broker.log_dirs[d1].offline, broker.state) == (None, BrokerState.RUNNING)
        with pytest.raises(LookupError, match=re.escape(d1)):
            broker.fail_log_dir(tmp_path / "d4")


def test_a_broker_that_leads_partitions_leaves_when_others_lead_them() -> None:
    with Controller.sync(brokers=3) as controller:
        admin = AdminClient({"bootstrap.servers": controller.bootstrap_servers})
        admin.create_topics([NewTopic("t", 6, 3)])["t"].result(30)
        leaving = controller.brokers[2]
        assert 2 in {each.leader for each in admin.list_topics("t").topics["t"].partitions.values()}
        leaving.shut_down()
        assert leaving.end_reason == End.GRANTED.value

        def leaders() -> set[int]:
            partitions = controller.running.controller.image.topics.by_name["t"].partitions
            return {each.leader for each in partitions.values()}

        assert controller.call(leaders) == {1, 3}


async def test_directory_that_failed_before_the_start_is_reported(tmp_path: Path) -> None:
    async with Controller(session_timeout_ms=1_000) as controller:
        broker = await controller.start_broker(1, log_dirs=[tmp_path / "d1", tmp_path / "d2"])
        await broker.shut_down()
        (tmp_path / "d2" / "meta.properties").unlink()
        (tmp_path / "d2" / "meta.properties").mkdir()
        again = await controller.start_broker(1, log_dirs=[tmp_path / "d1", tmp_path / "d2"], heartbeat_interval_ms=100)
        assert again.log_dirs[str(tmp_path / "d2")].directory_id == ""
        assert "meta.properties" in str(again.log_dirs[str(tmp_path / "d2")].offline)


def test_brokers_retry_quickly_unless_asked_for_kafkas_interval() -> None:
    with Controller.sync(broker_heartbeat_interval_ms=2_000) as slow, Controller.sync() as quick:
        assert slow.start_broker(1).config.heartbeat_interval_ms == 2_000
        assert quick.start_broker(1).config.heartbeat_interval_ms == TEST_HEARTBEAT_INTERVAL_MS
        assert quick.start_broker(2, heartbeat_interval_ms=50).config.heartbeat_interval_ms == 50
    with Controller.sync(clock="virtual", brokers=1) as stopped:
        assert stopped.brokers[1].config.heartbeat_interval_ms == 2_000


async def test_the_log_that_many_brokers_share_is_closed_when_others_started_after_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    closed: list[SharedLog] = []
    close = SharedLog.close

    async def noted(log: SharedLog) -> None:
        closed.append(log)
        await close(log)

    monkeypatch.setattr(SharedLog, "close", noted)
    monkeypatch.setattr(shared_log, "OWN_REPLICATION_BROKERS_MAX", 2)
    async with Controller(brokers=3) as controller:
        await controller.started.start([SimulatedBroker.configured(controller.bootstrap, controller.cluster_id, 9)])
    assert len(closed) == 1


async def test_nothing_waits_for_a_broker_that_its_caller_gave_up() -> None:
    async with Controller(clock="virtual") as controller:
        controller.stub("BrokerRegistration").drop()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await controller.start_broker(1)
        await asyncio.sleep(0)
        assert asyncio.all_tasks() == {asyncio.current_task()}


@each_row(
    ("broker_id", "options", "about"),
    [
        (-5, {}, "broker_id=-5: it must be 0 to 2147483647"),
        (1 << 40, {}, "broker_id=1099511627776: it must be 0 to 2147483647"),
        (True, {}, "broker_id=True: it must be an integer"),
        (1.0, {}, "broker_id=1.0: it must be an integer"),
        ("1", {}, "broker_id='1': it must be an integer"),
        (1, {"rack": 5}, "rack=5: it must be a text or None"),
        (1, {"port": 65_536}, "port=65536: it must be 0 to 65535"),
        (1, {"heartbeat_interval_ms": -1}, "heartbeat_interval_ms=-1: it must be at least 0"),
        (1, {"serve_clients": "no"}, "serve_clients='no': it must be True or False"),
        (1, {"io_errors": "none"}, "io_errors='none': it must be 'kafka' or 'kip-18'"),
    ],
)
def test_a_wrong_option_is_named(broker_id: Any, options: dict[str, Any], about: str) -> None:
    with pytest.raises((TypeError, ValueError), match=f"^{re.escape(about)}$"):
        SimulatedBroker.joining("127.0.0.1:9", "a-cluster", broker_id, **options)


def test_start_broker_waits_as_asked() -> None:
    with Controller.sync() as controller:
        refused = controller.stub("BrokerRegistration", broker_id=1).inject_error("DUPLICATE_BROKER_REGISTRATION")
        kept_fenced = controller.stub("BrokerHeartbeat").inject_error("NOT_CONTROLLER")
        unregistered = controller.start_broker(1, wait=None)
        assert unregistered.life.registered is False
        assert controller.start_broker(2, wait="registered").state is BrokerState.STARTING
        with pytest.raises(TimeoutError, match=r"broker 3 is .*, not RUNNING, after 50 ms"):
            controller.start_broker(3, timeout_s=0.05)
        with pytest.raises(ValueError, match="wait='ready'"):
            controller.start_broker(5, wait="ready")  # type: ignore[arg-type]
        controller.remove(refused)
        controller.remove(kept_fenced)
        unregistered.wait_until(BrokerState.RUNNING)


def test_the_package_has_them_by_name() -> None:
    assert {"SimulatedBroker", "SyncSimulatedBroker"} <= set(dir(mockraft))


async def test_brokers_have_fixed_ports_one_after_the_other() -> None:
    port = free_port()
    async with Controller(brokers_port=port) as controller:
        broker = await controller.start_broker(1)
        assert broker.bootstrap_servers == f"127.0.0.1:{port}"
        assert controller._broker_config(3, {}).listeners[0].port == port + 2
        assert controller._broker_config(3, {"port": 0}).listeners[0].port == 0
