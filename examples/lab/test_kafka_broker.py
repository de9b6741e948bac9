"""One of Kafka's own brokers starts, runs and stops, whatever its controller does meanwhile."""

import os
from collections.abc import Callable

import pytest
from mockraft import SyncController
from mockraft.kafka.processes import KafkaBroker

STARTS_S, STOPS_S = 30, 20


@pytest.mark.mockraft(session_timeout_ms=3_000)
def test_broker_starts_runs_and_stops(
    mockraft: SyncController, mockraft_real_broker: Callable[..., KafkaBroker]
) -> None:
    broker = mockraft_real_broker(
        version=os.environ.get("KAFKA_VERSION", "4.4.0"),
        properties={"broker.heartbeat.interval.ms": "500", "broker.session.timeout.ms": "3000"},
    )
    mockraft.wait_for("BrokerHeartbeat", n=6, broker_id=1, timeout_s=STARTS_S)
    assert broker.stop(STOPS_S) == 143
