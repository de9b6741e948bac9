"""Simulated brokers on Kafka's own controller and on mockraft's, with equal results."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient
from mockraft import Controller, SimulatedBroker
from mockraft.brokers.fleet.fleet import fetch_cluster_id, start_brokers
from mockraft.brokers.fleet.plan import steps_of
from mockraft.brokers.fleet.runner import FleetRunner
from mockraft.brokers.lifecycle import BrokerState, End, Event, HeartbeatAnswered
from mockraft.kafka.mockraft_process import MockraftController
from mockraft.kafka.processes import KafkaBroker, KafkaController, KafkaTool, random_uuid, wait_until
from mockraft.wire.uuids import text_of

from ...budgets import soak
from ...topics import assigned, create_topics
from ...waiting import until
from ..running import running

pytestmark = pytest.mark.real_kafka

SESSION_TIMEOUT_MS = 5_000


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaController]:
    """Kafka's controller, alone."""
    properties = {"broker.session.timeout.ms": str(SESSION_TIMEOUT_MS)}
    folder = tmp_path_factory.mktemp("controller")
    with running(KafkaController(folder, random_uuid(), properties=properties)) as controller:
        yield controller


def joining(controller: Any, broker_id: int, dirs: int = 2, **options: Any) -> SimulatedBroker:
    paths = tuple(f"/simulated/{n}" for n in range(dirs))
    kind = options.pop("kind", SimulatedBroker)
    broker: SimulatedBroker = kind.joining(
        controller.bootstrap, controller.cluster_id, broker_id, log_dir_paths=paths, **options
    )
    return broker


async def create_topic(bootstrap: str, name: str, brokers: list[int], partitions: int = 4) -> bytes:
    """Create a topic with its replicas on these brokers, the first of them preferred."""
    return (await create_topics(bootstrap, assigned(name, *[brokers] * partitions)))[0]


async def cluster_id_of(host: str, port: int) -> str:
    """Kafka's controller refuses DescribeCluster (UNSUPPORTED_VERSION) until it has applied its metadata.version."""
    async with asyncio.timeout(60):
        while True:
            try:
                return await fetch_cluster_id((host, port))
            except LookupError:
                await asyncio.sleep(0.05)


async def rows_of_replicas(bootstrap: str) -> dict[str, list[str]]:
    """Return the columns that Kafka's tool shows of each replica of the metadata log, by node id."""
    describe = ("--bootstrap-controller", bootstrap, "describe", "--replication")
    table = await asyncio.to_thread(KafkaTool("kafka-metadata-quorum").run, *describe)
    return {row[0]: row for row in map(str.split, table.splitlines()) if row}


async def verify_three_observers(controller: Any, first_id: int) -> None:
    """Three brokers come and go, and kafka-metadata-quorum shows them as what they are."""
    host, port = controller.bootstrap.rsplit(":", 1)
    assert await cluster_id_of(host, int(port)) == controller.cluster_id
    racks = {first_id: "a", first_id + 1: "b", first_id + 2: "c"}
    fleet = await start_brokers([(host, int(port))], controller.cluster_id, racks)
    await fleet.wait_until(BrokerState.RUNNING)
    try:
        rows = await rows_of_replicas(controller.bootstrap)
        # A broker's Fetch may be on its way while records arrive, so a lag counts if it stays.
        for _ in range(5):
            if all(int(rows[str(broker.config.broker_id)][3]) <= 2 for broker in fleet.brokers):
                break
            rows = await rows_of_replicas(controller.bootstrap)
    finally:
        await fleet.shut_down()
    for broker in fleet.brokers:
        row = rows[str(broker.config.broker_id)]
        assert row[-1] == "Observer"
        assert row[1] == text_of(broker.config.metadata_directory_id)
        assert int(row[3]) <= 2, f"it lags: {rows}"
        assert broker.view.metadata_version == 33
        assert broker.view.registration is not None
        assert broker.view.registration.incarnation_id == broker.config.incarnation_id
        assert broker.end is End.GRANTED
        assert not broker.refusals


async def test_kafkas_controller_unfences_them_and_its_tool_shows_them_as_observers(kafka: KafkaController) -> None:
    await verify_three_observers(kafka, 11)


async def test_kafkas_tool_shows_them_on_mockraft_too() -> None:
    async with Controller() as controller:
        await verify_three_observers(controller, 11)


async def test_starts_from_a_snapshot_of_kafkas(tmp_path: Path) -> None:
    properties = {"metadata.log.max.record.bytes.between.snapshots": "200"}
    with running(KafkaController(tmp_path, random_uuid(), properties=properties)) as controller:
        async with joining(controller, 1) as first:
            await first.wait_until(BrokerState.RUNNING)
            await create_topic(controller.bootstrap, "orders", [1], partitions=20)
            snapshots = tmp_path / "log" / "__cluster_metadata-0"
            await until(
                lambda: [f for f in snapshots.glob("*.checkpoint") if int(f.name[:20]) > first.life.broker_epoch]
            )
            async with joining(controller, 2, kind=Asking) as second:
                assert isinstance(second, Asking)
                await second.wait_until(BrokerState.RUNNING)
                await until(lambda: second.view.topics == first.view.topics)
                assert "FetchSnapshotRequest" in second.asked
                assert second.view.features == first.view.features
                assert second.observer.voters == first.observer.voters


async def test_its_replicas_get_their_directories_and_a_failed_one_its_consequences(kafka: KafkaController) -> None:
    async with joining(kafka, 21) as broker, joining(kafka, 22, dirs=1) as other:
        await asyncio.gather(broker.wait_until(BrokerState.RUNNING), other.wait_until(BrokerState.RUNNING))
        topic_id = await create_topic(kafka.bootstrap, "orders", [21, 22])
        view = broker.view
        await until(lambda: len(broker.directories.placed) == 4 and not broker.directories.assignments.queued)
        await until(
            lambda: {key: replica.directory for key, replica in view.replicas.items()} == broker.directories.placed
        )
        failed = broker.config.log_dirs[0].directory_id
        broker.fail_log_dir(failed)
        await until(lambda: view.registration and failed not in view.registration.log_dirs)
        hit = {key for key, directory in broker.directories.placed.items() if directory == failed}
        assert len(hit) == 2
        for key in ((topic_id, n) for n in range(4)):
            replica = view.replicas[key]
            assert (replica.leader, replica.isr) == ((22, (22,)) if key in hit else (21, (21, 22)))
        await until(lambda: broker.life.offline_dirs == {failed: True})


async def test_a_killed_broker_can_come_back_when_its_session_is_over(kafka: KafkaController) -> None:
    first = joining(kafka, 31, heartbeat_interval_ms=200)
    first.start()
    await first.wait_until(BrokerState.RUNNING)
    await first.kill()
    async with joining(kafka, 31, heartbeat_interval_ms=200) as second:
        await second.wait_until(BrokerState.RUNNING)
        assert second.refusals["DUPLICATE_BROKER_REGISTRATION"] > 0
        assert second.life.broker_epoch > first.life.broker_epoch


async def test_it_outlives_a_restart_of_the_controller(tmp_path: Path) -> None:
    with running(KafkaController(tmp_path, random_uuid())) as controller:
        async with joining(controller, 1, heartbeat_interval_ms=200) as broker:
            await broker.wait_until(BrokerState.RUNNING)
            broker_epoch, epoch = broker.life.broker_epoch, broker.observer.epoch
            await asyncio.to_thread(controller.stop)
            controller.start()
            await asyncio.to_thread(controller.wait_until_running)
            heartbeats = broker.heartbeats
            await until(lambda: broker.observer.epoch > epoch and broker.heartbeats > heartbeats + 2)
            assert (broker.state, broker.life.broker_epoch) == (BrokerState.RUNNING, broker_epoch)
        assert broker.end is End.GRANTED


async def test_real_and_simulated_broker_describe_each_other_equally(kafka: KafkaController, tmp_path: Path) -> None:
    with running(KafkaBroker(1, tmp_path, kafka.cluster_id, kafka.bootstrap)) as real:
        async with joining(kafka, 41, rack="simulated") as broker:
            await broker.wait_until(BrokerState.RUNNING)

            def seen(bootstrap: str) -> dict[int, tuple[str, int, str | None]]:
                admin = AdminClient({"bootstrap.servers": bootstrap})
                nodes = admin.describe_cluster(request_timeout=10).result().nodes
                return {node.id: (node.host, node.port, node.rack) for node in nodes}

            def observers(bootstrap: str) -> dict[str, tuple[str, str, bool]]:
                described = ("--bootstrap-server", bootstrap, "describe", "--replication")
                rows = KafkaTool("kafka-metadata-quorum").run(*described).splitlines()[1:]
                result = list(filter(None, map(str.split, rows)))
                # Node, directory, status; the lag is of records, and one that follows is a few behind.
                return {row[0]: (row[1], row[-1], int(row[3]) <= 5) for row in result if row[-1] == "Observer"}

            # Which of its records a broker has applied when it says that it runs is its own affair.
            ours, theirs = broker.bootstrap_servers, real.bootstrap

            def both() -> Any:
                return {1, 41} <= set(found := seen(theirs)) and found

            nodes = await asyncio.to_thread(wait_until, both, 60, "both")
            listener = broker.config.listeners[0]
            assert nodes[41] == (listener.host, listener.port, "simulated")
            assert await asyncio.to_thread(seen, ours) == nodes

            by_theirs = await asyncio.to_thread(observers, theirs)
            assert await asyncio.to_thread(observers, ours) == by_theirs
            assert by_theirs["41"] == (text_of(broker.config.metadata_directory_id), "Observer", True)
            assert by_theirs["1"][1:] == ("Observer", True)
        await asyncio.to_thread(real.stop)


class Asking(SimulatedBroker):
    """Remembers what it asked the leader for."""

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.asked: list[str] = []
        request = self.observer.request

        def remembered() -> Any:
            made = request()
            self.asked.append(type(made).__name__)
            return made

        self.observer.request = remembered  # type: ignore[method-assign]


class Storyteller(SimulatedBroker):
    """Remembers what happened to it."""

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.story: list[str] = []
        self.live, self.node.happen = self.node.happen, self.tell  # type: ignore[method-assign]

    def tell(self, event: Event) -> None:
        result = type(event).__name__
        if isinstance(event, HeartbeatAnswered):
            result = f"{'caught up' if event.is_caught_up else 'behind'}, {'fenced' if event.is_fenced else 'unfenced'}"
            result += ", may go" if event.should_shut_down else ""
        # What depends on how fast the controller answers is left out.
        if result not in ("Due", "ReadyToUnfence", "behind, fenced"):
            self.story.append(result)
        self.live(event)


async def story(controller: Any) -> list[str]:
    """A whole life: start, a topic, a failed directory, shutdown; repeated answers are told once."""
    async with joining(controller, 52, dirs=1) as other:
        await other.wait_until(BrokerState.RUNNING)
        broker = joining(controller, 51, kind=Storyteller)
        assert isinstance(broker, Storyteller)
        broker.start()
        await broker.wait_until(BrokerState.RUNNING)
        broker.story.append("(a topic)")
        await create_topic(controller.bootstrap, "story", [51, 52])
        await until(lambda: len(broker.directories.placed) == 4 and not broker.directories.assignments.queued)
        broker.fail_log_dir(broker.config.log_dirs[0].directory_id)
        await until(lambda: all(broker.life.offline_dirs.values()))
        await broker.shut_down()
        assert broker.end is End.GRANTED
        return [result for result, _ in itertools.groupby(broker.story)]


async def test_both_controllers_describe_the_same_brokers(kafka: KafkaController) -> None:
    async with Controller(session_timeout_ms=SESSION_TIMEOUT_MS) as ours:
        of_mockraft = await story(ours)
    of_kafka = await story(kafka)
    assert of_mockraft == of_kafka
    assert of_kafka[0] == "Started"
    assert of_kafka[-1] == "caught up, fenced, may go"


COUNT = 50
SESSION_MS = 3000
TROUBLE = steps_of(
    {
        "steps": [
            {"at_s": 6, "do": "kill", "percent": 10, "back_after_s": 6},
            {"at_s": 8, "do": "rolling-restart", "racks": ["b"], "at_once": 4, "every_s": 0.5},
            {"at_s": 9, "do": "freeze", "racks": ["c"], "count": 3, "back_after_s": 6},
            {"at_s": 10, "do": "disconnect", "over_s": 1},
            {"at_s": 11, "do": "fail-log-dir", "racks": ["a"], "count": 5},
        ]
    }
)

AnyController = KafkaController | MockraftController


@pytest.fixture(params=["kafka", pytest.param("mockraft", marks=soak)])
def controller(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[AnyController]:
    made: AnyController
    if request.param == "mockraft":
        made = MockraftController(tmp_path, random_uuid(), options=["--session-timeout-ms", str(SESSION_MS)])
    else:
        made = KafkaController(tmp_path, random_uuid(), properties={"broker.session.timeout.ms": str(SESSION_MS)})
    with running(made):
        yield made


@pytest.mark.parametrize("shares_replication", [True, pytest.param(False, marks=soak)])
async def test_fifty_brokers_come_through_a_bad_minute(controller: AnyController, shares_replication: bool) -> None:
    fleet = FleetRunner.joining(
        f"{controller.host}:{controller.port}",
        controller.cluster_id,
        COUNT,
        racks=("a", "b", "c"),
        ramp_ms=2000,
        script=TROUBLE,
        shares_replication=shares_replication,
        log_dirs_per_broker=2,
        heartbeat_interval_ms=300,
        session_timeout_ms=SESSION_MS,
    )
    async with fleet:
        figures = await fleet.until(lambda figures: figures.unfenced == figures.running == COUNT, 90_000)
        assert (figures.mistakes, figures.died, figures.fenced) == ({}, {}, 0)
        assert set(figures.errors) <= {"DUPLICATE_BROKER_REGISTRATION", "NotSentError", "STALE_BROKER_EPOCH"}
        assert figures.answered > COUNT * 10
    left = fleet.figures()
    assert (left.started, left.mistakes, left.died) == (0, {}, {})
