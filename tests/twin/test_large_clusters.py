"""Twins of many brokers, which share one replica of the metadata log."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from mockraft import Controller
from mockraft.brokers.fleet import shared_log
from mockraft.testing.plan import PlanOutcome

from ..budgets import soak
from ..upgrade_examples import write_cluster

TIMEOUT_S = 60
STEPS: list[dict[str, Any]] = [
    {"restart": [1]},
    {"lose": [3]},
    {"start": [3]},
    {"lose_rack": "a"},
    {"start": [3, 6]},
    {"lose_directory": {"broker": 4, "directory": 0}},
    {"restore_directory": {"broker": 4, "directory": 0}},
    {"drain": [5]},
    {"config": {"broker": "default", "set": {"min.insync.replicas": 1}}},
    {"lose": [1, 2]},
    {"elect": {"topic": "topic-0", "partition": 0, "unclean": True}},
    {"start": [1, 2]},
]


@pytest.mark.parametrize(
    ("brokers", "partitions"),
    [(300, 1_500), pytest.param(1_000, 100_000, marks=soak), pytest.param(10_000, 100_000, marks=soak)],
)
def test_all_brokers_of_a_large_cluster_run_and_keep_its_partitions(
    tmp_path: Path, brokers: int, partitions: int
) -> None:
    source = write_cluster(tmp_path / "data", brokers, partitions)
    with Controller.sync(twin_of=source, clock="virtual", twin_brokers="live") as twin:
        twin.advance(20_000)
        assert sum(not each.fenced for each in twin.state.brokers()) == len(twin.brokers) == brokers
        assert not any(each.type.startswith("Partition") for each in twin.state.metadata_log(0))
        lost, back = twin.plan([{"lose": [7]}, {"start": [7]}]).steps
    assert lost.breaks == back.breaks == ""
    assert 0 < len(lost.after.under_replicated) == Counter(each.type for each in lost.records)["PartitionChangeRecord"]
    assert back.after == lost.before


def done(source: Path) -> tuple[PlanOutcome, list[list[tuple[Any, ...]]], set[str]]:
    with Controller.sync(twin_of=source, clock="virtual", twin_brokers="live", seed=0) as twin:
        outcome = twin.plan(STEPS)
        partitions = [[(each.leader, each.isr) for each in topic.partitions] for topic in twin.state.topics()]
        readers = {each.client_id or "" for each in twin.requests("Fetch")}
        return outcome, partitions, readers


def test_a_plan_ends_alike_on_brokers_that_share_and_on_brokers_that_do_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = write_cluster(tmp_path / "data", 6, 12)
    own, partitions, readers = done(source)
    assert len(readers) >= 6
    monkeypatch.setattr(shared_log, "OWN_REPLICATION_BROKERS_MAX", 3)
    shared, same_partitions, readers = done(source)
    assert readers == {"raft-client-fleet"}
    assert str(shared) == str(own)
    assert same_partitions == partitions
    for mine, others in zip(shared.steps, own.steps, strict=True):
        assert Counter(each.type for each in mine.records) == Counter(each.type for each in others.records)


def test_brokers_that_share_wake_for_clients_and_come_back(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(shared_log, "OWN_REPLICATION_BROKERS_MAX", 3)
    with Controller.sync(brokers=5, session_timeout_ms=2_000) as controller:
        assert {each.client_id for each in controller.requests("Fetch")} == {"raft-client-fleet"}
        client = {"bootstrap.servers": controller.bootstrap_servers}
        controller.state.create_topic("orders", replicas=[[1, 2, 3], [2, 3, 4]])
        controller.brokers[2].kill()
        controller.wait_until(lambda: controller.state.topic("orders").partitions[1].isr == (3, 4))
        producer = Producer({**client, "acks": "all"})
        producer.produce("orders", b"late", partition=1)
        assert producer.flush(TIMEOUT_S) == 0
        controller.start_broker(2)
        controller.wait_until(lambda: all(len(each.isr) == 3 for each in controller.state.topic("orders").partitions))
        consumer = Consumer({**client, "group.id": "kitchen", "auto.offset.reset": "earliest"})
        consumer.subscribe(["orders"])
        assert [each.value() for each in consumer.consume(1, TIMEOUT_S)] == [b"late"]
        consumer.close()
        held = {name for view in controller.brokers[2].log_dirs.values() for name in view.replicas}
        assert {"orders-0", "orders-1"} <= held
    # A replica that a neighbour wakes before this broker has read of it is not yet placed, and no directory has failed.
    assert "the log directory is offline" not in caplog.text
