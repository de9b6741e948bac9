"""KAFKA-18138: a broker that dies during a failover of the controller is never fenced."""

from mockraft import BrokerState, Controller, Quorum, SimulatedBroker
from mockraft.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest


def test_new_controller_fences_a_broker_that_it_never_heard() -> None:
    with Quorum.sync(3, session_timeout_ms=1_500) as quorum:
        with SimulatedBroker.sync(quorum.bootstrap, quorum.cluster_id, broker_id=1) as broker:
            broker.wait_until(BrokerState.RUNNING)
            broker.kill()
            old = quorum.active
            quorum.resign()
        assert quorum.active != old
        quorum.verify(0, "BrokerHeartbeat", broker_id=1, node=quorum.active)
        quorum.wait_until(lambda: quorum.state.broker(1).fenced)


def test_dead_broker_leads_as_long_as_its_session_does_not_end() -> None:
    with Controller.sync(clock="virtual", brokers=2, session_timeout_ms=9_000) as controller:
        controller.state.create_topic("orders", 1, replicas=[[1, 2]])
        controller.advance(2_000)
        (partition,) = controller.state.topic("orders").partitions
        assert partition.leader == 1
        epoch = controller.state.broker(1).epoch

        controller.brokers[1].kill()
        for _ in range(60):
            # The controller's view with the defect: nothing ever makes this session old.
            controller.ask(BrokerHeartbeatRequest(broker_id=1, broker_epoch=epoch, current_metadata_offset=0))
            controller.advance(1_000)
        (partition,) = controller.state.topic("orders").partitions
        assert partition.leader == 1, "for a minute, and for ever"

        controller.advance(12_000)
        (partition,) = controller.state.topic("orders").partitions
        assert (controller.state.broker(1).fenced, partition.leader) == (True, 2)
