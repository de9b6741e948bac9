"""Brokers and controllers of other releases, `mockraft run-kafka` from outside, and the start-up benchmark."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer
from mockraft import Controller
from mockraft.kafka.cluster import KafkaCluster
from mockraft.kafka.jars import KAFKA_VERSION
from mockraft.kafka.processes import ChildProcess, KafkaBroker, KafkaTool, wait_until

from ..budgets import soak
from ..clients import consume, create_topic, produce

pytestmark = pytest.mark.real_kafka


def test_newer_broker_runs_on_a_controller_profiled_as_older(
    start_brokers: Callable[..., dict[int, KafkaBroker]],
) -> None:
    with Controller.sync(as_version="3.9") as controller:
        broker = start_brokers(controller.bootstrap, controller.cluster_id, 1)[1]
        create_topic(broker.bootstrap, "letters")
        produce(broker.bootstrap, "letters", ["a", "b"])
        assert sorted(consume(broker.bootstrap, "letters")) == ["a", "b"]
        spoken = {exchange.api_key: exchange.api_version for exchange in controller.journal.exchanges()}
        # A 4.3.1 broker speaks Fetch 18 and BrokerHeartbeat 2 to its own release's controllers.
        assert (spoken[1], spoken[63]) == (17, 1)
        assert broker.stop() == 143


@pytest.mark.parametrize(
    ("versions", "metadata_version"),
    [
        pytest.param(("4.1.1", "4.1.1"), "4.1-IV1", id="4.1.1", marks=soak),
        pytest.param(("3.9.1", "3.9.1"), "3.9-IV0", id="3.9.1", marks=soak),
        pytest.param((KAFKA_VERSION, "4.1.1", "3.9.1"), "3.9-IV0", id="one of each"),
    ],
)
def test_older_brokers_run_serve_clients_and_leave(
    start_cluster: Callable[..., KafkaCluster], versions: tuple[str, ...], metadata_version: str
) -> None:
    cluster = start_cluster(versions=versions, metadata_version=metadata_version)
    servers = cluster.bootstrap_servers
    for broker, version in zip(cluster.brokers.values(), versions, strict=True):
        assert f"Kafka version: {version}" in broker.log
        assert "RECOVERY to RUNNING" in broker.log
    create_topic(servers, "letters", partitions=3, replicas=len(versions))
    values = [f"letter-{index}" for index in range(500)]
    produce(servers, "letters", values, enable_idempotence=True)
    assert sorted(consume(servers, "letters")) == sorted(values)

    consumer = Consumer({"bootstrap.servers": servers, "group.id": "readers", "auto.offset.reset": "earliest"})
    read: list[bytes] = []
    try:
        consumer.subscribe(["letters"])

        def all_read() -> bool:
            read.extend(message.value() or b"" for message in consumer.consume(500, 0.1))
            return len(read) >= len(values)

        wait_until(all_read, 60, "all values in the group")
    finally:
        consumer.close()
    features = KafkaTool("kafka-features", versions[-1]).run("--bootstrap-server", servers, "describe")
    assert re.search(rf"metadata.version\s.*FinalizedVersionLevel: {re.escape(metadata_version)}\s", features), features

    leaving = cluster.brokers[len(versions)]
    assert leaving.stop() == 143
    assert "The controller has asked us to exit controlled shutdown" in leaving.log
    remaining = ",".join(broker.bootstrap for broker in cluster.brokers.values() if broker is not leaving)
    assert sorted(consume(remaining, "letters")) == sorted(values)
    cluster.stop()


_COMMAND = (sys.executable, "-m", "mockraft", "run-kafka")


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ChildProcess]:
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    process = ChildProcess("run-kafka", tmp_path / "output")
    yield process
    process.terminate()
    process.wait()


def _brokers(output: str) -> list[int]:
    return [int(pid) for pid in re.findall(r"Kafka \S+, process (\d+)", output)]


def test_reports_start_up_and_keeps_a_usable_cluster_until_ctrl_c(command: ChildProcess, tmp_path: Path) -> None:
    command.launch(_COMMAND)
    servers = command.wait_for_log(r"bootstrap\.servers=(\S+)", 60)[1]
    states = re.findall(r"broker 1 +([A-Z]+) ", command.log)
    assert states == ["STARTING", "STARTING", "RECOVERY", "RUNNING", "RUNNING"]
    create_topic(servers, "hello")
    assert produce(servers, "hello", ["hello, KRaft"]) == ["hello, KRaft"]
    command.wait_for_log("Ctrl-C stops everything")
    (broker,) = _brokers(command.log)
    subprocess.run(["kill", f"-{signal.SIGINT.value}", str(command.pid)], check=True)
    assert command.wait() == 0
    assert not Path(f"/proc/{broker}").exists()
    assert list((tmp_path / "temporary").glob("mockraft-*")) == []
    assert "\x1b[" not in command.log


def test_ends_with_a_message_when_a_broker_dies(command: ChildProcess) -> None:
    command.launch(_COMMAND)
    command.wait_for_log("Ctrl-C stops everything", 60)
    (broker,) = _brokers(command.log)
    subprocess.run(["kill", "-9", str(broker)], check=True)
    assert command.wait() == 1
    assert "broker 1 ended with exit code -9" in command.log


BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "startup.py"


def test_the_start_up_of_both_controllers_is_measured() -> None:
    command = [sys.executable, str(BENCHMARK), "--rounds", "1", "--json"]
    result = json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=240).stdout)
    for table in result["tables"]:
        assert {row[0] for row in table["rows"]} >= {"mockraft", f"Kafka {KAFKA_VERSION}'s controller"}
        assert all(float(row[1]) > 0 for row in table["rows"])
    assert len(result["gates"]) == 2
