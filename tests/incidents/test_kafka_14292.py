"""KAFKA-14292: a controlled shutdown whose end is put off with each heartbeat."""

from pathlib import Path

from mockraft import Controller
from mockraft.kafka.processes import KafkaBroker


def test_broker_waits_for_a_permission_that_does_not_come(tmp_path: Path) -> None:
    with Controller.sync() as controller:
        cluster = (controller.cluster_id, controller.bootstrap)
        with KafkaBroker(1, tmp_path, *cluster, properties={"broker.heartbeat.interval.ms": "500"}) as broker:
            broker.wait_until_running()
            with controller.faults.shutdown_never_granted(broker_id=1) as fault:
                broker.terminate()
                broker.wait_for_log("in PENDING_CONTROLLED_SHUTDOWN state, still waiting for the active controller")
                controller.wait_until(lambda: fault.fired >= 2)
                assert broker.running
                assert controller.state.broker(1).fenced, "no longer part of the cluster, and still there"

            assert broker.wait() == 143
