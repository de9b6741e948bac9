"""Clients of any brokers: librdkafka creates topics, produces and consumes."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from mockraft.kafka.processes import wait_until

_NO_LEADER_YET = (KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE, KafkaError.OFFSET_NOT_AVAILABLE)


def create_topic(bootstrap: str, name: str, *, partitions: int = 1, replicas: int = 1, **config: str) -> None:
    """Create a topic and wait until every broker of ``bootstrap`` names a leader for each of its partitions."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    dotted = {key.replace("_", "."): value for key, value in config.items()}
    topic = NewTopic(name, num_partitions=partitions, replication_factor=replicas, config=dotted)

    def knows_a_controller() -> bool:
        # A broker that runs may not have read its own records yet; librdkafka asks only once who the controller is.
        try:
            return admin.list_topics(timeout=10).controller_id > 0
        except KafkaException:
            return False

    wait_until(knows_a_controller, 60, f"a controller by {bootstrap}")
    admin.create_topics([topic], operation_timeout=60)[name].result(90)

    def led(server: str) -> bool:
        found = AdminClient({"bootstrap.servers": server}).list_topics(name, timeout=10).topics[name].partitions
        return len(found) == partitions and all(each.leader > 0 for each in found.values())

    for server in bootstrap.split(","):
        wait_until(lambda server=server: led(server), 60, f"{name} led, as {server} sees it")  # type: ignore[misc]


def produce(
    bootstrap: str, topic: str, values: Iterable[str], *, strict: bool = True, timeout_s: float = 30, **config: Any
) -> list[str]:
    """Produce ``values`` with acks=all and return those that were acknowledged; an error only with ``strict``."""
    acknowledged: list[str] = []
    errors: list[KafkaError] = []

    def delivered(error: KafkaError | None, message: Any) -> None:
        if error is None:
            acknowledged.append(message.value().decode())
        else:
            errors.append(error)

    settings = {"bootstrap.servers": bootstrap, "acks": "all", "linger.ms": 1, "message.timeout.ms": 30_000}
    producer = Producer({**settings, **{key.replace("_", "."): value for key, value in config.items()}})
    for value in values:
        producer.produce(topic, value.encode(), on_delivery=delivered)
        producer.poll(0)
    left = producer.flush(timeout_s)
    assert not strict or (not errors and left == 0), f"{errors[:3]}, {left} not delivered"
    return acknowledged


@contextmanager
def keep_producing(bootstrap: str, topic: str) -> Iterator[list[str]]:
    """Produce (acks=all, idempotent) as long as the block runs; the list holds what was acknowledged."""
    acknowledged: list[str] = []
    enough = threading.Event()

    def delivered(error: KafkaError | None, message: Any) -> None:
        if error is None:
            acknowledged.append(message.value().decode())

    def work() -> None:
        # A broker that has lost the partition answers a produce request only after the request's own timeout.
        settings = {"bootstrap.servers": bootstrap, "linger.ms": 5, "request.timeout.ms": 4_000}
        producer = Producer({**settings, "enable.idempotence": True})
        for number in itertools.count():
            if enough.is_set():
                break
            producer.produce(topic, f"steady-{number}".encode(), on_delivery=delivered)
            producer.poll(0.001)
        producer.flush(30)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        wait_until(lambda: acknowledged, 60, "the first message acknowledged")
        yield acknowledged
    finally:
        enough.set()
        thread.join()


@contextmanager
def creating_topics(bootstrap: str, prefix: str) -> Iterator[list[str]]:
    """Create topics with two replicas as long as the block runs, 20 before it; the list holds what was acknowledged."""
    created: list[str] = []
    enough = threading.Event()

    def work() -> None:
        admin = AdminClient({"bootstrap.servers": bootstrap})
        for name in map(f"{prefix}-{{}}".format, itertools.count()):
            if enough.is_set():
                return
            try:
                admin.create_topics([NewTopic(name, 1, 2)], request_timeout=5)[name].result(6)
            except KafkaException:
                continue
            created.append(name)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        wait_until(lambda: len(created) >= 20, 60, "20 topics")
        yield created
    finally:
        enough.set()
        thread.join()


def topics_of(bootstrap: str) -> set[str]:
    """The topics that a broker of ``bootstrap`` knows."""
    return set(AdminClient({"bootstrap.servers": bootstrap}).list_topics(timeout=10).topics)


def consume(bootstrap: str, topic: str, *, timeout_s: float = 30, **config: Any) -> list[str]:
    """All values of a topic from its first offset to the end that its partitions had when this was called."""
    settings = {"bootstrap.servers": bootstrap, "group.id": "none", "enable.auto.commit": False}
    settings |= {"enable.partition.eof": False, "auto.offset.reset": "earliest"}
    consumer = Consumer({**settings, **{key.replace("_", "."): value for key, value in config.items()}})
    try:
        partitions = consumer.list_topics(topic, timeout=10).topics[topic].partitions

        def all_ends() -> dict[int, int]:
            try:
                return {each: consumer.get_watermark_offsets(TopicPartition(topic, each))[1] for each in partitions}
            except KafkaException as error:
                if error.args[0].code() not in _NO_LEADER_YET:
                    raise
                return {}

        ends = wait_until(all_ends, timeout_s, f"leaders for all of {topic}")
        consumer.assign([TopicPartition(topic, each, 0) for each in partitions])
        values: list[str] = []

        def at_end() -> bool:
            for message in consumer.consume(500, timeout=0.1):
                if error := message.error():
                    raise KafkaException(error)
                values.append((message.value() or b"").decode())
            places = consumer.position([TopicPartition(topic, each) for each in partitions])
            return all(max(place.offset, 0) >= ends[place.partition] for place in places)

        wait_until(at_end, timeout_s, f"all of {topic} up to {ends}")
        return values
    finally:
        consumer.close()


def partitions_of(bootstrap: str, topic: str) -> dict[int, tuple[int, list[int]]]:
    """Partition → (leader, ISR in order of id) as the first broker of ``bootstrap`` that answers sees them."""
    found = AdminClient({"bootstrap.servers": bootstrap}).list_topics(topic, timeout=10)
    return {number: (each.leader, sorted(each.isrs)) for number, each in found.topics[topic].partitions.items()}
