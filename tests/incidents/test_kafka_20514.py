"""KAFKA-20514: a broker knows the leader by an address that it cannot reach."""

from pathlib import Path

from mockraft import Controller
from mockraft.kafka.processes import KafkaBroker, free_port


def test_broker_that_cannot_reach_the_advertised_address_never_registers(tmp_path: Path) -> None:
    port, nobody = free_port(), free_port()
    with (
        Controller.sync(port=port, advertised_host="127.0.0.1", advertised_port=nobody) as controller,
        KafkaBroker(1, tmp_path / "astray", controller.cluster_id, f"127.0.0.1:{port}") as broker,
    ):
        broker.wait_for_log(rf"Connection to node 3000 \(/127.0.0.1:{nobody}\) could not be established")
        controller.wait_for("Fetch", 2)
        controller.verify(0, "BrokerRegistration")
        assert broker.running

    with (
        Controller.sync() as controller,
        KafkaBroker(1, tmp_path / "found", controller.cluster_id, controller.bootstrap) as broker,
    ):
        broker.wait_until_running()
        assert not controller.state.broker(1).fenced
