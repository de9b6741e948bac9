"""Broker 1 with partitions of the coordinators' topics, of which it leads some, and a topic `orders`."""

from __future__ import annotations

import random
from typing import Any

import pytest
from mockraft.brokers.config import draw_config
from mockraft.brokers.image import ClusterImage
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.records.feature_level_record import FeatureLevelRecord
from mockraft.wire.records.partition_change_record import PartitionChangeRecord
from mockraft.wire.records.partition_record import PartitionRecord
from mockraft.wire.records.register_broker_record import BrokerEndpoint, RegisterBrokerRecord
from mockraft.wire.records.remove_topic_record import RemoveTopicRecord
from mockraft.wire.records.topic_record import TopicRecord

from ..coordinating import Coordinating

IDS = {name: name.encode().rjust(16, b"t")[:16] for name in ("__transaction_state", "__consumer_offsets", "orders")}


class Led(Coordinating):
    """Broker 1 leads the coordinators' topics, of one partition each, and `orders`, and others follow."""

    def __init__(self, properties: dict[str, str]) -> None:
        endpoints = (("127.0.0.1", 9),)
        config = draw_config(1, "a-cluster", endpoints, random.Random(1), properties=properties)
        super().__init__(ClusterImage(), config)
        self.apply(FeatureLevelRecord(name="transaction.version", feature_level=2))
        for broker_id in (1, 2, 3):
            endpoint = BrokerEndpoint(name="PLAINTEXT", host=f"b{broker_id}", port=9092)
            self.apply(
                RegisterBrokerRecord(
                    broker_id=broker_id, broker_epoch=10 + broker_id, fenced=False, end_points=[endpoint]
                )
            )
        for name in IDS:
            self.create(name)
        self.follow_metadata()

    def apply(self, *records: Any) -> None:
        for record in records:
            self.image.apply(RecordAt(record, type(record).max_version))

    def create(self, name: str, *, isr: tuple[int, ...] = (1,)) -> None:
        self.apply(TopicRecord(name=name, topic_id=IDS[name]))
        fields: Any = {
            "replicas": [1, 2],
            "isr": list(isr),
            "leader": 1,
            "leader_epoch": 0,
            "directories": [bytes(15) + b"d"] * 2,
        }
        self.apply(PartitionRecord(partition_id=0, topic_id=IDS[name], **fields))

    def lead(self, name: str, leader: int) -> None:
        """Another broker leads from now on, in the next epoch."""
        self.apply(PartitionChangeRecord(topic_id=IDS[name], partition_id=0, leader=leader, isr=[leader, 1]))
        self.follow_metadata()

    def delete(self, name: str) -> None:
        self.apply(RemoveTopicRecord(topic_id=IDS[name]))
        self.follow_metadata()

    def forget(self) -> None:
        """Resign and lead again: everything comes from the log."""
        for name in ("__transaction_state", "__consumer_offsets"):
            self.lead(name, 2)
            self.lead(name, 1)


@pytest.fixture
def properties() -> dict[str, str]:
    return {}


@pytest.fixture
def led(properties: dict[str, str]) -> Led:
    return Led(properties)
