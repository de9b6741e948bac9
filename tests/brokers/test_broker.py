"""Simulated brokers on mockraft's own controller, in one process, over real sockets."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from mockraft import Controller, SimulatedBroker
from mockraft.brokers.config import draw_config
from mockraft.brokers.fleet.fleet import fetch_cluster_id, start_brokers
from mockraft.brokers.lifecycle import BrokerState, End, RegistrationTimedOut
from mockraft.wire import api_keys

from ..rows import each_row
from ..topics import create_topics, topic
from ..waiting import until
from .conftest import joining, running, started

# (client id, API, version) of a real 4.4.0 broker against Kafka's own controller, off the wire; heartbeats before
# it has caught up vary in number.
REAL_START = [
    ("raft-client-1", "ApiVersions", 5),
    ("raft-client-1", "Fetch", 18),
    ("raft-client-1", "ApiVersions", 5),
    ("raft-client-1", "Fetch", 18),
    ("1", "ApiVersions", 5),
    ("1", "BrokerRegistration", 4),
    ("1", "BrokerHeartbeat", 2),
]
PATHS = ("/simulated/broker-1/d0", "/simulated/broker-1/d1")


def registered(controller: Controller, broker_id: int = 1) -> Any:
    return controller.running.controller.image.cluster.brokers[broker_id]


def asked(controller: Controller, api_key: int) -> list[Any]:
    return [exchange.request for exchange in controller.journal.exchanges(api_key)]


async def create_topic(controller: Controller, name: str, replicas: int = 1, partitions: int = 4) -> bytes:
    return (await create_topics(controller.bootstrap, topic(name, partitions, replicas)))[0]


async def test_registers_catches_up_and_is_unfenced() -> None:
    async with Controller() as controller, running(controller, rack="r1", log_dir_paths=PATHS) as broker:
        registration = registered(controller)
        assert (registration.fenced, registration.rack) == (False, "r1")
        assert registration.incarnation_id == broker.config.incarnation_id
        assert set(registration.log_dirs) == {d.directory_id for d in broker.config.log_dirs}
        assert registration.broker_epoch == broker.life.broker_epoch
        await until(lambda: broker.view.registration and not broker.view.registration.fenced)


@each_row("bootstrap", ["localhost", "localhost:", "localhost:no", ":9093", "localhost:0"])
def test_a_bootstrap_that_is_none_is_named(bootstrap: str) -> None:
    with pytest.raises(ValueError, match=f"'{bootstrap}' is not host:port"):
        SimulatedBroker.joining(bootstrap, "p66Y0sRpQNGVKjK4oTgauw", 1)


async def test_broker_that_is_never_registered_reports_its_state_and_gives_up() -> None:
    async with Controller() as controller:
        broker = SimulatedBroker.joining(controller.bootstrap, "another cluster", 1)
        broker.start()
        await until(lambda: broker.replication.note)
        with pytest.raises(TimeoutError, match=r"broker 1 is STARTING, not RUNNING.*INCONSISTENT_CLUSTER_ID"):
            await broker.wait_until(BrokerState.RUNNING, timeout_ms=1)
        broker.happen(RegistrationTimedOut())
        await broker.wait_stopped()
        assert broker.end is End.NOT_REGISTERED
        assert broker.end.is_failure


async def test_starts_on_the_wire_with_the_heartbeats_of_a_real_broker() -> None:
    async with Controller() as controller, running(controller) as broker:
        exchanges = controller.journal.exchanges()
        kinds = [(e.client_id, api_keys.name(e.api_key), e.api_version) for e in exchanges]
        lanes = [[kind for kind in kinds if kind[0] == who] for who in ("raft-client-1", "1")]
        expected = [[kind for kind in REAL_START if kind[0] == who] for who in ("raft-client-1", "1")]
        assert [lane[: len(want)] for lane, want in zip(lanes, expected, strict=True)] == expected
        assert [e.correlation_id for e in exchanges if e.client_id == "raft-client-1"][:4] == [1, 0, 3, 2]
        assert [e.correlation_id for e in exchanges if e.client_id == "1"][:4] == [1, 0, 2, 3]
        heartbeats = asked(controller, api_keys.BROKER_HEARTBEAT)
        result = [(h.want_fence, h.cordoned_log_dirs) for h in heartbeats]
        assert list(dict.fromkeys((fence, str(cordoned)) for fence, cordoned in result)) == [
            (True, "None"),
            (True, "[]"),
            (False, "[]"),
        ]
        offsets = [h.current_metadata_offset for h in heartbeats]
        assert offsets == sorted(offsets)
        assert {h.broker_epoch for h in heartbeats} == {broker.life.broker_epoch}


async def test_three_brokers_reach_running_and_leave_by_controlled_shutdown() -> None:
    async with Controller() as controller:
        fleet = await start_brokers(
            [(controller.host, controller.port)], controller.cluster_id, {1: "a", 2: "b", 3: "a"}
        )
        await fleet.wait_until(BrokerState.RUNNING)
        brokers = controller.running.controller.image.cluster.brokers
        assert [(b.broker_id, b.rack, b.fenced) for b in brokers.values()] == [
            (1, "a", False),
            (2, "b", False),
            (3, "a", False),
        ]
        await fleet.shut_down()
        assert [broker.end for broker in fleet.brokers] == [End.GRANTED] * 3
        assert all(broker.fenced for broker in brokers.values())


async def test_broker_with_one_directory_sends_no_assignment() -> None:
    async with Controller() as controller, running(controller) as broker:
        await create_topic(controller, "orders")
        await until(lambda: len(broker.directories.placed) == 4)
        assert not broker.directories.assignments.queued
        assert not asked(controller, api_keys.ASSIGN_REPLICAS_TO_DIRS)


async def test_older_metadata_version_receives_no_cordoned_dirs() -> None:
    async with Controller(metadata_version=25) as controller, running(controller):
        assert {str(h.cordoned_log_dirs) for h in asked(controller, api_keys.BROKER_HEARTBEAT)} == {"None"}


@pytest.mark.parametrize("level", [7, 12, 13, 16, 17, 29])
async def test_runs_at_any_metadata_version(level: int) -> None:
    async with Controller(metadata_version=level) as controller, running(controller) as broker:
        assert broker.view.metadata_version == level


async def test_runs_where_the_log_names_no_voters() -> None:
    async with Controller(kraft_version=0) as controller, running(controller) as broker:
        assert broker.observer.voters == {}


async def test_tries_every_bootstrap_server() -> None:
    async with Controller() as gone:
        dead = (gone.host, gone.port)
    async with Controller() as controller:
        servers = (dead, (controller.host, controller.port))
        config = draw_config(1, controller.cluster_id, servers, random.Random(1))
        async with SimulatedBroker(config) as broker:
            await broker.wait_until(BrokerState.RUNNING)
            assert not broker.refusals


async def test_a_killed_broker_is_fenced_when_its_session_is_over_and_can_come_back() -> None:
    async with Controller(session_timeout_ms=300) as controller:
        broker = await started(controller, heartbeat_interval_ms=50)
        await broker.kill()
        assert (broker.end, broker.end_reason) == (End.STOPPED, "stop requested")
        with pytest.raises(RuntimeError, match="broker 1 stopped: stop requested"):
            await broker.wait_until(BrokerState.RUNNING)
        await until(lambda: registered(controller).fenced)
        async with running(controller, seed=99) as again:
            assert again.life.broker_epoch > broker.life.broker_epoch


async def test_second_broker_with_the_same_id_is_refused_until_the_first_has_left() -> None:
    async with Controller(session_timeout_ms=2_500) as controller:
        first = await started(controller, heartbeat_interval_ms=50)
        async with joining(controller, seed=99, heartbeat_interval_ms=50) as second:
            await until(lambda: second.refusals["DUPLICATE_BROKER_REGISTRATION"] > 1)
            assert (first.state, second.state) == (BrokerState.RUNNING, BrokerState.STARTING)
            await first.kill()
            await second.wait_until(BrokerState.RUNNING)


async def test_broker_resumes_after_a_restart_of_the_controller(tmp_path: Path) -> None:
    async with Controller(data_dir=tmp_path) as controller:
        port, cluster_id = controller.port, controller.cluster_id
        broker = await started(controller, heartbeat_interval_ms=50)
        epoch, leader_epoch = broker.life.broker_epoch, broker.observer.epoch
    async with Controller(data_dir=tmp_path, port=port, cluster_id=cluster_id) as controller:
        await until(lambda: len(asked(controller, api_keys.BROKER_HEARTBEAT)) > 2)
        assert not asked(controller, api_keys.BROKER_REGISTRATION), "it keeps its registration"
        assert broker.life.broker_epoch == epoch
        await until(lambda: broker.observer.epoch > leader_epoch)
        assert broker.state is BrokerState.RUNNING
        assert not registered(controller).fenced
        await broker.shut_down()
        assert broker.end is End.GRANTED


async def test_dies_of_a_controller_that_lost_its_log_and_takes_no_other_broker_along() -> None:
    async with Controller() as steady, joining(steady, 2, heartbeat_interval_ms=20) as other:
        async with Controller() as controller:
            port, cluster_id = controller.port, controller.cluster_id
            victim = await started(controller, 1)
            await until(lambda: victim.observer.high_watermark >= victim.life.broker_epoch + 2)
        async with Controller(port=port, cluster_id=cluster_id):
            await victim.wait_stopped()
        assert victim.end is End.FATAL
        assert victim.end.is_failure
        assert "below the current high watermark" in victim.end_reason
        heartbeats = other.heartbeats
        await until(lambda: other.heartbeats > heartbeats)
        assert other.state is BrokerState.RUNNING


async def test_starts_from_a_snapshot_when_the_log_begins_later() -> None:
    async with Controller() as controller, running(controller, 1) as first:
        topic_id = await create_topic(controller, "orders")
        active = controller.running.controller
        records = active.image.to_records(active.image.metadata_version)
        active.log.write_snapshot(records, controller.running.clock.now_ms())
        async with running(controller, 2) as second:
            assert asked(controller, api_keys.FETCH_SNAPSHOT)
            assert second.observer.voters == first.observer.voters
            assert second.view.features == first.view.features
            assert topic_id in second.view.topics
            assert active.image.cluster.brokers[2].fenced is False


async def test_controller_provides_its_cluster_id() -> None:
    async with Controller() as controller:
        assert await fetch_cluster_id((controller.host, controller.port)) == controller.cluster_id
    async with Controller(metadata_version=14) as controller:
        with pytest.raises(LookupError, match="UNSUPPORTED_VERSION"):
            await fetch_cluster_id((controller.host, controller.port))
