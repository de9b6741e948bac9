"""KAFKA-15441: a long transaction in the metadata log holds back heartbeats until all brokers are fenced."""

from pathlib import Path

from confluent_kafka.admin import AdminClient
from mockraft import Controller
from mockraft.kafka.processes import KafkaBroker
from mockraft.wire.records.begin_transaction_record import BeginTransactionRecord
from mockraft.wire.records.end_transaction_record import EndTransactionRecord
from mockraft.wire.records.partition_record import PartitionRecord
from mockraft.wire.records.topic_record import TopicRecord

UNASSIGNED = bytes(15) + b"\x01"
"""The directory of a replica whose broker chooses it."""


def test_brokers_stay_unfenced_during_a_transaction_whose_records_they_do_not_see(tmp_path: Path) -> None:
    with Controller.sync(session_timeout_ms=2_000) as controller:
        cluster = (controller.cluster_id, controller.bootstrap)
        with KafkaBroker(1, tmp_path, *cluster, properties={"broker.heartbeat.interval.ms": "400"}) as broker:
            broker.wait_until_running()
            admin = AdminClient({"bootstrap.servers": broker.bootstrap})

            controller.state.append([BeginTransactionRecord(name="migration")])
            topic_id = bytes(range(16))
            partition = PartitionRecord(
                partition_id=0, topic_id=topic_id, replicas=[1], isr=[1], leader=1, directories=[UNASSIGNED]
            )
            controller.state.append([TopicRecord(name="orders", topic_id=topic_id), partition])
            controller.wait_for("BrokerHeartbeat", 8, since=controller.mark())
            assert not controller.state.broker(1).fenced, "heartbeats complete, though the log is not stable"
            assert "orders" not in admin.list_topics(timeout=10).topics

            controller.state.append([EndTransactionRecord()])
            controller.wait_until(lambda: "orders" in admin.list_topics(timeout=10).topics)

            with controller.faults.lost_heartbeats(broker_id=1):
                controller.wait_until(lambda: controller.state.broker(1).fenced)
