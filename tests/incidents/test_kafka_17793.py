"""KAFKA-17793: a controller that is busy for seconds fences brokers that are alive."""

import pytest
from mockraft import Controller
from mockraft.wire.messages.broker_registration_request import BrokerRegistrationRequest


@pytest.mark.parametrize(("busy_ms", "fenced"), [(6_000, False), (12_000, True)])
def test_brokers_are_fenced_though_they_send_heartbeats(busy_ms: int, fenced: bool) -> None:
    with Controller.sync(clock="virtual", brokers=3, session_timeout_ms=9_000) as controller:
        controller.state.create_topic("orders", partitions=3, replication_factor=3)
        controller.advance(2_000)

        with controller.faults.lost_heartbeats() as lost:
            controller.advance(busy_ms)
            assert lost.fired >= 3, "all of them sent heartbeats"
            assert [broker.fenced for broker in controller.state.brokers()] == [fenced] * 3
            leaders = {partition.leader for partition in controller.state.topic("orders").partitions}
            assert (-1 in leaders) is fenced

        controller.advance(6_000)
        assert not any(broker.fenced for broker in controller.state.brokers())
        assert len(controller.requests(BrokerRegistrationRequest)) == 3, "no broker had been restarted"
