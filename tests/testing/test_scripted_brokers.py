"""Simulated brokers are scripted and journaled as controllers are, with the requests that they forward (KIP-590)."""

from __future__ import annotations

from concurrent.futures import Future
from contextlib import nullcontext
from pathlib import Path
from threading import Timer
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType
from mockraft import Controller, SyncController, VerificationError, stub
from mockraft.brokers.apis import registry
from mockraft.kafka_api.journal import line
from mockraft.server.api_modules import OF_SIMULATED_BROKERS
from mockraft.spark_replay.report import sections
from mockraft.spark_replay.report.captured import traffic_of_captures
from mockraft.spark_replay.report.sources import Captures
from mockraft.wire.client import connect
from mockraft.wire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from mockraft.wire.messages.envelope_request import EnvelopeRequest
from mockraft.wire.messages.produce_request import ProduceRequest

from ..rows import each_row


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
    with Controller.sync(brokers=2, assert_all_used=False) as controller:
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


def test_a_fault_of_bytes_is_for_the_clients_of_the_brokers_that_it_names() -> None:
    with Controller.sync(brokers=1) as controller:
        topic(controller, "orders")
        of_broker = controller.faults.latency(latency_ms=1, broker=1, client_id="shop")
        of_controller = controller.faults.latency(latency_ms=1, client_id="shop", id="elsewhere")
        with pytest.raises(ValueError, match=r"match.broker: no broker 7: there are \[1\]"):
            controller.faults.latency(latency_ms=1, broker=7)
        assert produced(controller, "orders") is None
        assert (of_broker.fired > 0, of_controller.fired) == (True, 0)
        with pytest.raises(AssertionError, match=r"elsewhere never met anything.*\n  its clients .* broker 1; without"):
            controller.assert_all_faults_fired()
        controller.faults.reset()


def test_a_strict_double_expects_what_clients_ask_of_brokers() -> None:
    with Controller.sync(brokers=1, strict=True) as controller:
        assert produced(controller, "made-by-a-client") is None
        with pytest.raises(AssertionError, match="CreateTopics"):
            controller.assert_all_expected()
        controller.strict = False
        assert {each.api for each in controller.unmatched()} <= {"CreateTopics", "AllocateProducerIds"}


@each_row(
    ("wanted", "fails"),
    [
        ({"n": 0, "match": "DescribeConfigs", "client_id": "shop"}, True),
        ({"at_most": 1, "match": stub("ApiVersions", "DescribeConfigs"), "client_id": "shop"}, True),
        ({"n": 1, "client_id": "shop", "match": "ApiVersions"}, True),
        ({"at_most": 1, "match": "DescribeConfigs"}, False),
        ({"n": 0, "match": "DescribeConfigs", "node": 3000}, False),
        ({"n": 0, "match": "DescribeConfigs", "broker_id": 1}, False),
        ({"n": 0, "match": "Fetch", "client_id": "shop"}, False),
    ],
)
def test_a_maximum_also_counts_what_clients_sent_to_brokers_alone(wanted: dict[str, Any], fails: bool) -> None:
    with Controller.sync(brokers=1) as controller:
        shop = AdminClient({"bootstrap.servers": controller.bootstrap_servers, "client.id": "shop"})
        broker = ConfigResource(ResourceType.BROKER, "1")
        shop.describe_configs([broker])[broker].result(20)
        controller.wait_for("DescribeConfigs", client_id="shop", broker=1)
        why = r"no such request reached the controller; \d+ did reach broker 1: verify with broker=1, or"
        with pytest.raises(VerificationError, match=why) if fails else nullcontext() as failed:
            controller.verify(**wanted)
        if failed is not None:
            assert ("✗ broker: it reached broker 1;" in str(failed.value)) == (wanted.get("n") == 1)


def codes(futures: dict[Any, Future[Any]]) -> list[str]:
    """Return the names of the errors of an admin client's results, "" for none."""
    failures = [future.exception(20) for future in futures.values()]
    return ["" if each is None else each.args[0].name() for each in failures]


def test_one_entity_of_a_request_is_refused_and_the_rest_is_handled() -> None:
    with Controller.sync(brokers=1) as controller:
        servers: dict[str, str | int | float | bool] = {"bootstrap.servers": controller.bootstrap_servers}
        admin = AdminClient(servers)
        controller.stub("CreateTopics", topic="b").inject_error("POLICY_VIOLATION", "no b")
        assert codes(admin.create_topics([NewTopic(each, 2, 1) for each in "abc"])) == ["", "POLICY_VIOLATION", ""]
        assert [each.name for each in controller.state.topics()] == ["a", "c"]
        (created,) = controller.verify(1, "CreateTopics", topic=["b", "x"])
        assert "→ b: POLICY_VIOLATION " in line(created)
        controller.verify(0, "CreateTopics", topic="x")

        controller.stub("IncrementalAlterConfigs", resource="c").inject_error("INVALID_CONFIG")
        changes = [ConfigEntry("retention.ms", "1", incremental_operation=AlterConfigOpType.SET)]
        resources = [ConfigResource(ResourceType.TOPIC, each, incremental_configs=changes) for each in "ac"]
        assert codes(admin.incremental_alter_configs(resources)) == ["", "INVALID_CONFIG"]
        controller.stub("DeleteGroups", group="g").inject_error("NON_EMPTY_GROUP")
        assert codes(admin.delete_consumer_groups(["f", "g"])) == ["GROUP_ID_NOT_FOUND", "NON_EMPTY_GROUP"]

        # Topics that requests name by their ids.
        controller.stub("Produce", topic="a", partition=1).inject_error("INVALID_RECORD")
        failed: list[int | None] = []

        def delivered(error: KafkaError | None, message: Message) -> None:
            failed.extend([message.partition()] if error else [])

        producer = Producer({**servers, "linger.ms": 100})
        for partition in (0, 1):
            producer.produce("a", b"tea", partition=partition, on_delivery=delivered)
        assert (producer.flush(20), failed) == (0, [1])
        controller.stub("Fetch", topic="c").inject_error("TOPIC_AUTHORIZATION_FAILED")
        consumer = Consumer({**servers, "group.id": "g"})
        consumer.assign([TopicPartition("c", 0, 0), TopicPartition("a", 0, 0)])
        found: set[tuple[Any, Any]] = set()
        while len(found) < 2 and (polled := consumer.consume(1, 20)):
            found |= {(each.topic(), error.name() if (error := each.error()) else each.value()) for each in polled}
        assert found == {("a", b"tea"), ("c", "TOPIC_AUTHORIZATION_FAILED")}
        consumer.close()
        controller.assert_all_stubs_used()


@each_row(
    ("api", "selected", "why"),
    [
        ("BrokerHeartbeat", {"topic": "a"}, "topic: BrokerHeartbeat names no topic; it names no entities"),
        ("CreateTopics", {"group": "g"}, "group: CreateTopics names no group; it names partition and topic"),
        ("DescribeLogDirs", {"topic": "a"}, "injectError: the response of DescribeLogDirs has no error for one topic"),
        ("OffsetFetch", {"topik": "a"}, "did you mean topic"),
        ("CreateTopics", {"topic": 5}, "topic: expected a text, got 5"),
        ((), {"topic": "a"}, "the match must name the API whose topic is refused"),
    ],
)
def test_a_selection_that_can_refuse_nothing_is_refused(api: Any, selected: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        stub(*([api] if api else []), **selected).inject_error("NOT_CONTROLLER")


@each_row(
    ("api", "scope", "why"),
    [
        ("PushTelemetry", {}, "match.api: PushTelemetry is no API of a controller or simulated broker"),
        ("BrokerHeartbeat", {"broker": 1}, "match.api: BrokerHeartbeat is no API of a simulated broker"),
        ("Produce", {"broker": [7, 8]}, r"match.broker: no broker \[7, 8\]: there are \[1\]"),
        ("Vote", {"node": 3001}, r"match.node: no node 3001: there are \[1, 3000\]"),
    ],
)
def test_a_stub_that_no_request_can_meet_is_refused(api: Any, scope: dict[str, Any], why: str) -> None:
    with Controller.sync() as controller:
        controller.stub("Produce", broker=7)  # which may be started later
        controller.remove(controller.stubs[0])
        controller.start_broker(1)
        with pytest.raises(ValueError, match=why):
            controller.stub(api, **scope)


def test_the_table_of_simulated_brokers_apis_is_complete() -> None:
    assert registry.APIS.keys() == OF_SIMULATED_BROKERS


async def test_the_forwarded_request_is_a_request_of_its_own(tmp_path: Path) -> None:
    create = CreateTopicsRequest(topics=[CreatableTopic(name="a", num_partitions=1, replication_factor=1)])
    create.timeout_ms = 10_000
    async with Controller(brokers=1) as controller:
        host, port = controller.bootstrap_servers.rsplit(":", 1)
        admin = await connect(host, int(port), client_id="admin")
        for _ in range(2):
            await admin.send(create)
        with pytest.raises(VerificationError, match=r"admin, forwarded by broker 1 +CreateTopics .*name=a .*→ ok"):
            controller.verify(0, "CreateTopics")
        first, again = await controller.wait_for(CreateTopicsRequest, 2, topics__name="a")
        assert (first.request.topics[0].name, first.error_code, again.summary()["error"]) == (
            "a",
            0,
            "TOPIC_ALREADY_EXISTS",
        )
        assert (first.forwarded_by, first.principal, first.peer_address) == (1, "User:ANONYMOUS", "127.0.0.1")
        assert controller.verify(2, "CreateTopics", client_id="admin", broker_id=1) == [first, again]
        assert "Envelope" not in {each.api for each in controller.requests()}
        wrapped = controller.verify(2, EnvelopeRequest)
        assert [each.request.request_data for each in wrapped] == [first.request_frame, again.request_frame]

        controller.write_journal(tmp_path / "run.pcapng")
        traffic, _ = traffic_of_captures(Captures([tmp_path / "run.pcapng"]), (), lambda *_: None)
        client = {"clientId": "admin", "host": "127.0.0.1", "principal": "User:ANONYMOUS"}
        assert sections.forwarded(traffic) == [{"api": "CreateTopics", **client, "requests": 2}]
        refused = {"api": "CreateTopics, forwarded", "code": 36, "name": "TOPIC_ALREADY_EXISTS", "answers": 1}
        assert refused in sections.errors(traffic)
