"""strimzi#12760: controllers are Ready while their quorum has no leader."""

import socket

import pytest
from mockraft import Quorum
from mockraft.kafka.processes import KafkaProcessError, KafkaTool


def listens(address: str) -> bool:
    """Probe a controller as the readiness check did."""
    host, port = address.split(":")
    with socket.create_connection((host, int(port))):
        return True


def test_controllers_listen_though_no_vote_reaches_the_others() -> None:
    status = ("describe", "--status")
    with Quorum.sync(3) as quorum:
        unreachable = quorum.stub("Vote").disconnect_on()
        for node_id in quorum.node_ids:
            quorum.kill(node_id)
        for node_id in quorum.node_ids:
            quorum.restart(node_id)
        quorum.wait_until(lambda: unreachable.call_count > 6)

        assert all(listens(address) for address in quorum.bootstrap.split(","))
        assert quorum.active is None
        with pytest.raises(KafkaProcessError, match="Direct-to-controller communication is not supported"):
            KafkaTool("kafka-metadata-quorum").run("--bootstrap-controller", quorum.bootstrap, *status)

        quorum.remove(unreachable)
        leader = quorum.wait_for_leader()
        found = KafkaTool("kafka-metadata-quorum").run("--bootstrap-controller", quorum.bootstrap, *status)
        assert f"LeaderId:               {leader}" in found
