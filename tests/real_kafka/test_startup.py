"""How soon three brokers are there with mockraft, and with Kafka's own controller on the same machine.

`benchmarks/startup.py` has the figures; here a bound has to hold in the best of a few tries, whatever else runs.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from mockraft.kafka_cluster import ControllerKind, KafkaCluster

pytestmark = pytest.mark.real_kafka

_TRIES = 4


def _three_brokers_running_after_s(kind: ControllerKind, folder: Path) -> float:
    cluster = KafkaCluster(folder, controller=kind)
    try:
        cluster.format()
        began = time.perf_counter()
        for process in (cluster.controller, *cluster.brokers.values()):
            process.start()
        for broker in cluster.brokers.values():
            broker.wait_for_log(r"Transitioning from RECOVERY to RUNNING", 60)
        return time.perf_counter() - began
    finally:
        cluster.kill()


def test_three_brokers_run_no_later_than_with_kafkas_own_controller(tmp_path: Path) -> None:
    ours_s: list[float] = []
    theirs_s: list[float] = []
    while not ours_s or (min(ours_s) > min(theirs_s) and len(ours_s) < _TRIES):
        theirs_s.append(_three_brokers_running_after_s("kafka", tmp_path / f"kafka-{len(theirs_s)}"))
        ours_s.append(_three_brokers_running_after_s("mockraft", tmp_path / f"mockraft-{len(ours_s)}"))
    assert min(ours_s) <= min(theirs_s)
