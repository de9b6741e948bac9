"""Restarts: of a controller with its data dir, of brokers on shared directories, and states that are saved."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from mockraft import BrokerState, Controller, SimulatedBroker
from mockraft.brokers.log_dirs.log_loading import CLEAN_SHUTDOWN
from mockraft.kafka.cluster import KafkaCluster
from mockraft.kafka.jars import KAFKA_VERSION
from mockraft.kafka.processes import KafkaBroker, KafkaController, KafkaTool, wait_until
from mockraft.wire.json_form import Json

from ..clients import consume, create_topic, creating_topics, keep_producing, produce, topics_of
from .running import registrations, running

pytestmark = pytest.mark.real_kafka


@pytest.fixture(scope="module")
def cluster(start_cluster: Callable[..., KafkaCluster]) -> KafkaCluster:
    return start_cluster(versions=(KAFKA_VERSION,) * 2)


def _registrations(cluster: KafkaCluster) -> list[int]:
    return [registrations(broker) for broker in cluster.brokers.values()]


def _checkpoints(cluster: KafkaCluster) -> list[Path]:
    """The snapshots of the controller's metadata log, less the one that formatting writes."""
    found = cluster.controller.log_path.parent.rglob("__cluster_metadata-0/*.checkpoint")
    return sorted(path for path in found if not path.name.startswith("0" * 20))


def test_brokers_carry_on_while_the_controller_restarts(cluster: KafkaCluster) -> None:
    servers, before = cluster.bootstrap_servers, _registrations(cluster)
    create_topic(servers, "before", partitions=2, replicas=2)
    with keep_producing(servers, "before") as acknowledged:
        exit_code = cluster.controller.stop()
        assert exit_code == (143 if isinstance(cluster.controller, KafkaController) else 0)
        without_controller = len(acknowledged)
        wait_until(lambda: len(acknowledged) > without_controller + 100, 60, "messages without a controller")
        cluster.controller.start()
        cluster.controller.wait_until_running()
        create_topic(servers, "after", partitions=2, replicas=2)
    assert set(acknowledged) == set(consume(servers, "before"))
    assert _registrations(cluster) == before


def test_a_killed_controller_comes_back_with_every_topic_it_had_acknowledged(cluster: KafkaCluster) -> None:
    before = _registrations(cluster)
    with creating_topics(cluster.bootstrap_servers, "sure") as created:
        cluster.controller.kill()
    cluster.controller.start()
    cluster.controller.wait_until_running()
    create_topic(cluster.bootstrap_servers, "after-kill", replicas=2)
    every = "every acknowledged topic, as any broker sees it"
    wait_until(lambda: set(created) <= topics_of(cluster.bootstrap_servers), 60, every)
    assert _registrations(cluster) == before


def test_a_controller_and_a_new_broker_start_from_a_snapshot(start_cluster: Callable[..., KafkaCluster]) -> None:
    small = {"metadata.log.max.record.bytes.between.snapshots": "3000"}
    cluster = start_cluster(versions=(KAFKA_VERSION,), controller_properties=small)
    servers, broker = cluster.bootstrap_servers, cluster.brokers[1]
    create_topic(servers, "kept", partitions=3)
    values = [f"value-{index}" for index in range(100)]
    produce(servers, "kept", values)
    known = len(_checkpoints(cluster))
    for number in range(30):
        create_topic(servers, f"filler-{number}")
    wait_until(lambda: len(_checkpoints(cluster)) > known, 60, "a snapshot on disk")

    cluster.controller.stop()
    cluster.controller.start()
    cluster.controller.wait_until_running()
    create_topic(servers, "after")
    every = {"kept", "after", *(f"filler-{number}" for number in range(30))}
    wait_until(lambda: topics_of(servers) >= every, 60, "every topic after the restart")

    broker.stop()
    for path in broker.metadata_log_dir.glob("__cluster_metadata-0/*"):
        path.unlink()
    (broker.metadata_log_dir / "__cluster_metadata-0").rmdir()
    broker.start()
    broker.wait_until_running()
    broker.wait_for_log(r"Fetching snapshot|downloading snapshot")
    assert topics_of(servers) >= every
    assert sorted(consume(servers, "kept")) == sorted(values)


@pytest.mark.parametrize("leaving", ["shut_down", "kill"])
def test_acknowledged_records_are_served_by_the_successor(tmp_path: Path, leaving: str) -> None:
    with Controller.sync(session_timeout_ms=3000) as controller:
        real = KafkaBroker(1, tmp_path, controller.cluster_id, controller.bootstrap)
        written: list[str] = []

        def simulated(turn: str, *, is_first: bool = False) -> None:
            with SimulatedBroker.sync(
                controller.bootstrap,
                controller.cluster_id,
                1,
                log_dirs=real.log_dirs,
                metadata_log_dir=real.metadata_log_dir,
                port=real.port,
                format_missing=is_first,
            ) as broker:
                broker.wait_until(BrokerState.RUNNING)
                if is_first:
                    create_topic(real.bootstrap, "turns", partitions=3)
                written.extend(produce(real.bootstrap, "turns", [f"{turn}-{number}" for number in range(300)]))
                assert sorted(consume(real.bootstrap, "turns")) == sorted(written)
                getattr(broker, leaving)()
            marks = [(path / CLEAN_SHUTDOWN).exists() for path in real.log_dirs]
            assert marks == [leaving == "shut_down"] * 2

        simulated("simulated", is_first=True)
        with running(real, formatted=True):
            assert sorted(consume(real.bootstrap, "turns")) == sorted(written)
            written += produce(
                real.bootstrap, "turns", [f"real-{number}" for number in range(300)], compression_type="zstd"
            )
            real.kill() if leaving == "kill" else real.stop()
        simulated("simulated again")


def test_a_saved_state_is_read_by_kafkas_tools_and_a_real_broker_runs_on_it(
    tmp_path: Path, start_brokers: Callable[..., dict[int, KafkaBroker]]
) -> None:
    # The newest kafka-metadata-shell on Maven is that of 4.3.1.
    with Controller.sync(session_timeout_ms=3_000, metadata_version="4.3") as controller:
        controller.start_broker(7)
        state = controller.inside.state
        topic: dict[str, Json] = {"name": "kept", "topicId": "AAAAAAAAAAAAAAAAAAAABQ"}
        partition: dict[str, Json] = {
            "partitionId": 0,
            "topicId": topic["topicId"],
            "replicas": [7],
            "isr": [7],
            "leader": 7,
        }
        partition |= {"leaderEpoch": 0, "partitionEpoch": 0, "directories": ["AAAAAAAAAAAAAAAAAAAAAQ"]}
        partition |= {"removingReplicas": [], "addingReplicas": [], "leaderRecoveryState": 0}
        records: list[Mapping[str, Json]] = [
            {"type": "TopicRecord", "record": topic},
            {"type": "PartitionRecord", "record": partition},
        ]
        controller.call(lambda: state.append(records))
        saved = controller.call(lambda: state.save(tmp_path))

    printed = KafkaTool("kafka-dump-log").run("--cluster-metadata-decoder", "--files", str(saved))
    assert re.search(r'"type":"TOPIC_RECORD","version":0,"data":\{"name":"kept"', printed)
    assert '"type":"REGISTER_BROKER_RECORD"' in printed
    assert "isvalid: false" not in printed

    def shell_prints() -> bool:
        shell = KafkaTool("kafka-metadata-shell", "4.3.1").run("--snapshot", str(saved), "find", "/image")
        return "/image/cluster/brokers/7\n" in shell and "/image/topics/byName/kept" in shell

    assert wait_until(shell_prints, 60, "the saved state in kafka-metadata-shell")

    with Controller.sync(state=saved) as controller:
        brokers = start_brokers(controller.bootstrap, controller.cluster_id, 1)
        # Until its session is over broker 7 counts as alive, and brokers name any that is to clients as the controller.
        wait_until(lambda: controller.call(lambda: controller.state.broker(7).fenced), 60, "broker 7 fenced")
        create_topic(brokers[1].bootstrap, "new")
        described = KafkaTool("kafka-topics").run("--bootstrap-server", brokers[1].bootstrap, "--list")
        assert {"kept", "new"} <= set(described.split())
        assert brokers[1].stop() == 143
