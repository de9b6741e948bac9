"""Shutdown of real brokers under presets of a misbehaving controller."""

from __future__ import annotations

import pytest
from mockraft.kafka.processes import KafkaBroker, wait_until

from ...clients import create_topic
from ..lost_folders import remove_while_in_use
from .conftest import HEARTBEAT, Bench

pytestmark = pytest.mark.real_kafka


@pytest.fixture
def broker(bench: Bench) -> KafkaBroker:
    """A running broker that soon stops trying to report a failed disk."""
    broker = bench.brokers.get(1)
    if broker is None:
        soon = {"log_dir_failure_timeout_ms": "3000", "replica_high_watermark_checkpoint_interval_ms": "500"}
        broker = bench.add_broker(1, **soon)
    if not broker.running:
        broker.start()
        broker.wait_until_running()
    return broker


def test_a_running_broker_takes_no_notice_of_should_shut_down(bench: Bench, broker: KafkaBroker) -> None:
    with bench.switched_on("should_shut_down", broker_id=1) as since:
        assert all(each.response.should_shut_down for each in bench.wait_for(HEARTBEAT, 1, 2, since)[:2])
        assert broker.running
        assert broker.stop() == 143


def test_broker_without_permission_to_shut_down_waits(bench: Bench, broker: KafkaBroker) -> None:
    with bench.switched_on("shutdown_never_granted", broker_id=1):
        broker.terminate()
        broker.wait_for_log("still waiting for the active controller", 30)
        assert broker.running
    assert broker.wait() == 143


def test_a_divergence_below_the_high_watermark_ends_a_broker(bench: Bench, broker: KafkaBroker) -> None:
    with bench.switched_on("diverge", broker_id=1, records=3):
        assert broker.wait() == 1
    assert "which is below the current high watermark" in broker.log


def test_broker_that_cannot_report_a_failed_dir_shuts_down(bench: Bench, broker: KafkaBroker) -> None:
    create_topic(broker.bootstrap, "lost", partitions=4)
    wait_until(lambda: all(list(each.glob("lost-*")) for each in broker.log_dirs), 60, "replicas in both directories")
    with bench.switched_on("unacknowledged_dead_dir", broker_id=1):
        remove_while_in_use(broker.log_dirs[1])
        broker.wait_for_log("couldn't communicate offline log dir", 40)
        since = bench.mark()
        asked = bench.wait_for(HEARTBEAT, 1, 2, since)
        assert all(each.request.want_shut_down for each in asked[:2])
        assert broker.running
    broker.wait()
