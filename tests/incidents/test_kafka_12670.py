"""KAFKA-12670: unclean.leader.election.enable has no effect in KRaft mode."""

import pytest
from mockraft import Controller
from mockraft.wire.records.register_broker_record import BrokerEndpoint, RegisterBrokerRecord


@pytest.mark.parametrize(("release", "leader"), [("3.8", -1), ("3.9", 2)])
def test_topic_that_allows_unclean_elections_stays_offline_before_3_9(release: str, leader: int) -> None:
    with Controller.sync(release=release) as controller:
        state = controller.state
        for broker_id in (1, 2):
            endpoint = BrokerEndpoint(name="PLAINTEXT", host="127.0.0.1", port=9092)
            state.append([RegisterBrokerRecord(broker_id=broker_id, end_points=[endpoint], fenced=False)])
        state.create_topic("orders", 1, replicas=[[1, 2]], configs={"unclean.leader.election.enable": "true"})

        state.fence(2)
        state.fence(1)
        assert state.topic("orders").partitions[0].isr == (1,)
        state.unfence(2)
        assert state.topic("orders").partitions[0].leader == leader

        assert state.elect("orders", 0, 2, unclean=True).leader == 2, "what kafka-leader-election does, at any release"
