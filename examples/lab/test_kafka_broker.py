"""One of Kafka's own brokers starts, runs, stops and comes back, whatever its controller does meanwhile."""

import os
from collections.abc import Callable

import pytest
from mockraft import SyncController
from mockraft.kafka.processes import KafkaBroker
from mockraft.wire.records.broker_registration_change_record import BrokerRegistrationChangeRecord

VERSION = os.environ.get("KAFKA_VERSION", "4.4.0")
PROPERTIES = {"broker.heartbeat.interval.ms": "500", "broker.session.timeout.ms": "3000"}
STARTS_S, STOPS_S = 30, 20


@pytest.mark.mockraft(session_timeout_ms=3_000, release=VERSION.rpartition(".")[0])
def test_broker_starts_runs_and_stops(
    mockraft: SyncController, mockraft_real_broker: Callable[..., KafkaBroker]
) -> None:
    broker = mockraft_real_broker(version=VERSION, properties=PROPERTIES)
    mockraft.wait_for("BrokerHeartbeat", n=6, broker_id=1, timeout_s=STARTS_S)
    assert broker.stop(STOPS_S) == 143


@pytest.mark.mockraft(session_timeout_ms=3_000, release=VERSION.rpartition(".")[0])
def test_broker_is_back_after_a_restart(
    mockraft: SyncController, mockraft_real_broker: Callable[..., KafkaBroker]
) -> None:
    """KAFKA-19586: in a rolling restart a broker came back, froze, and was fenced."""
    broker = mockraft_real_broker(version=VERSION, properties=PROPERTIES)
    mockraft.wait_until(lambda: not mockraft.state.broker(1).fenced, STARTS_S)
    assert broker.stop(STOPS_S) == 143
    mark = mockraft.mark()
    broker.start()
    mockraft.wait_for("BrokerHeartbeat", n=12, broker_id=1, since=mark, timeout_s=STARTS_S)
    mockraft.wait_until(lambda: not mockraft.state.broker(1).fenced, 5)


@pytest.mark.mockraft(session_timeout_ms=1_500, release=VERSION.rpartition(".")[0])
def test_running_broker_keeps_its_session(
    mockraft: SyncController, mockraft_real_broker: Callable[..., KafkaBroker]
) -> None:
    """KAFKA-14392: a broker waits for the answer to a heartbeat until its session is over."""
    interval_ms = os.environ.get("HEARTBEAT_INTERVAL_MS", "700")
    mockraft_real_broker(version=VERSION, properties={"broker.heartbeat.interval.ms": interval_ms})
    mockraft.wait_until(lambda: not mockraft.state.broker(1).fenced, STARTS_S)
    mockraft.wait_for("BrokerHeartbeat", n=6, broker_id=1, since=mockraft.mark(), timeout_s=STARTS_S)
    changes = [each.record for each in mockraft.state.metadata_log()]
    assert not any(isinstance(each, BrokerRegistrationChangeRecord) and each.fenced == 1 for each in changes)
