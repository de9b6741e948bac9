"""Example for docs/simulated-brokers.md: produce, kill the leader and consume."""

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from mockraft import Controller


def test_no_record_is_lost_when_the_leader_is_killed() -> None:
    with Controller.sync(brokers=3, session_timeout_ms=6000) as controller:
        admin = AdminClient({"bootstrap.servers": controller.bootstrap_servers})
        topic = NewTopic("orders", 1, 3, config={"min.insync.replicas": "2"})
        admin.create_topics([topic])["orders"].result(10)

        acknowledged = []
        producer = Producer({"bootstrap.servers": controller.bootstrap_servers, "acks": "all"})
        for number in range(100):
            producer.produce("orders", str(number), on_delivery=lambda _, message: acknowledged.append(message.value()))
        producer.flush(10)

        leader = admin.list_topics("orders").topics["orders"].partitions[0].leader
        controller.brokers[leader].kill()

        settings = {"bootstrap.servers": controller.bootstrap_servers, "group.id": "tests"}
        consumer = Consumer({**settings, "auto.offset.reset": "earliest"})
        consumer.subscribe(["orders"])
        consumed = [message.value() for message in consumer.consume(100, timeout=20)]
        consumer.close()
        assert consumed == acknowledged == [str(number).encode() for number in range(100)]
