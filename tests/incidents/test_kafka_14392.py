"""KAFKA-14392: a broker waits longer for the answer to a heartbeat than its session lasts."""

from pathlib import Path

import pytest
from mockraft import Controller
from mockraft.kafka.processes import KafkaBroker
from mockraft.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest


@pytest.mark.parametrize(("interval_ms", "is_fenced"), [(500, False), (1_900, True)])
def test_one_lost_heartbeat_fences_a_broker_that_waits_too_long(
    tmp_path: Path, interval_ms: int, is_fenced: bool
) -> None:
    interval = {"broker.heartbeat.interval.ms": str(interval_ms)}
    with Controller.sync(session_timeout_ms=3_000) as controller:
        cluster = (controller.cluster_id, controller.bootstrap)
        with KafkaBroker(1, tmp_path, *cluster, properties=interval) as broker:
            broker.wait_until_running()
            controller.wait_for("BrokerHeartbeat", since=controller.mark())
            assert not controller.state.broker(1).fenced

            lost = controller.stub("BrokerHeartbeat", broker_id=1).once().drop()
            controller.wait_until(lambda: lost.called)
            since = controller.mark()

            def answered() -> bool:
                return any(each.response for each in controller.requests(BrokerHeartbeatRequest, since=since))

            controller.wait_until(lambda: controller.state.broker(1).fenced or answered())
            assert controller.state.broker(1).fenced is is_fenced
            broker.wait_for_log("name=heartbeat] Disconnecting from node 3000 due to request timeout")
