"""KAFKA-19586: a broker freezes for seconds, and the operator has gone on to the next."""

import os
import signal
from pathlib import Path

from mockraft import Controller
from mockraft.kafka.processes import KafkaBroker


def test_frozen_broker_is_fenced_and_comes_back(tmp_path: Path) -> None:
    with Controller.sync(session_timeout_ms=2_000) as controller:
        cluster = (controller.cluster_id, controller.bootstrap)
        with KafkaBroker(1, tmp_path, *cluster, properties={"broker.heartbeat.interval.ms": "500"}) as broker:
            broker.wait_until_running()
            controller.start_broker(2)
            controller.state.create_topic("orders", 1, replicas=[[1, 2]])

            os.kill(broker.pid, signal.SIGSTOP)
            try:
                controller.wait_until(lambda: controller.state.broker(1).fenced)
                assert controller.state.topic("orders").partitions[0].isr == (2,)
                controller.brokers[2].kill()
                controller.wait_until(lambda: controller.state.broker(2).fenced)
                assert controller.state.topic("orders").partitions[0].leader == -1
            finally:
                os.kill(broker.pid, signal.SIGCONT)
            controller.wait_until(lambda: not controller.state.broker(1).fenced)
            assert len(controller.requests("BrokerRegistration", broker_id=1)) == 1
