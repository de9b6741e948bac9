"""Simulated brokers are scripted and journaled as controllers are, for real clients."""

from __future__ import annotations

from threading import Timer

import pytest
from confluent_kafka import Consumer, KafkaError, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from mockraft import Controller, SyncController
from mockraft.wire.messages.produce_request import ProduceRequest


def topic(controller: SyncController, name: str) -> None:
    admin = AdminClient({"bootstrap.servers": controller.bootstrap_servers, "client.id": "setup"})
    admin.create_topics([NewTopic(name, 1, 1)])[name].result(20)


def produced(controller: SyncController, name: str, **settings: object) -> KafkaError | None:
    errors: list[KafkaError | None] = []
    producer = Producer({"bootstrap.servers": controller.bootstrap_servers, "client.id": "shop", **settings})
    producer.produce(name, b"tea", on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(20) == 0
    return errors[0]


def test_a_stub_answers_clients_of_brokers_and_the_journal_has_their_requests() -> None:
    with Controller.sync(brokers=2) as controller:
        topic(controller, "orders")
        refused = controller.stub("Produce").times(1).inject_error("NOT_LEADER_OR_FOLLOWER")
        late = controller.stub("FindCoordinator", broker__in=[1, 2]).times(1).delay_on(20)
        # At the controller, of which the cook asks nothing.
        elsewhere = [controller.stub("Fetch", client_id="cook").drop(), controller.stub(client_id="cook").drop()]
        assert produced(controller, "orders") is None
        first, again = controller.verify(2, ProduceRequest, client_id="shop")
        assert (refused.call_count, first.error_code, again.error_code) == (1, 6, 0)
        assert first.at_broker
        assert [each.id for each in controller.requests("Produce", broker=first.node_id)] == [first.id, again.id]

        group = {"bootstrap.servers": controller.bootstrap_servers, "group.id": "kitchen", "client.id": "cook"}
        consumer = Consumer({**group, "auto.offset.reset": "earliest"})
        consumer.subscribe(["orders"])
        assert [each.value() for each in consumer.consume(1, 20)] == [b"tea"]
        consumer.close()
        assert [each.call_count for each in (late, *elsewhere)] == [1, 0, 0]
        controller.verify(None, "JoinGroup", client_id="cook")
        # One request of the client is one request: that of its broker to the controller is the forwarded one.
        (forwarded,) = controller.verify(1, "CreateTopics", client_id="setup")
        (asked,) = controller.verify(1, "CreateTopics", client_id="setup", broker__gte=1)
        assert (forwarded.forwarded_by, forwarded.at_broker, asked.at_broker) == (asked.node_id, False, True)


def test_a_held_client_of_a_broker_goes_on_when_it_is_released() -> None:
    with Controller.sync(brokers=1) as controller:
        topic(controller, "orders")
        held = controller.stub("Produce").times(1).blackhole()
        Timer(0.2, controller.release, kwargs={"client_id": "shop"}).start()
        assert produced(controller, "orders") is None
        assert [each.reason for each in controller.requests("Produce")][:1] == [f"blackholed (stub {held.id})"]


def test_a_strict_double_expects_what_clients_ask_of_brokers() -> None:
    with Controller.sync(brokers=1, strict=True) as controller:
        assert produced(controller, "made-by-a-client") is None
        with pytest.raises(AssertionError, match="CreateTopics"):
            controller.assert_all_expected()
        assert {each.api for each in controller.unmatched()} <= {"CreateTopics", "AllocateProducerIds"}
