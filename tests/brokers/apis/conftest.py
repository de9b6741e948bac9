"""A broker's APIs asked without a socket or a controller: an image out of records, requests and answers as bytes."""

from __future__ import annotations

import random
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
from mockraft.brokers.apis.api import BrokerView, Parked
from mockraft.brokers.apis.registry import APIS
from mockraft.brokers.config import draw_config
from mockraft.brokers.image import ClusterImage
from mockraft.brokers.listener.clients import Clients, Limits
from mockraft.kafka_api.api import Client
from mockraft.kafka_api.connections import Connection, PendingRequest
from mockraft.wire import messages
from mockraft.wire.connection import FRAME_BYTES_MAX, parse_request, read_response_body, write_request
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.records.feature_level_record import FeatureLevelRecord
from mockraft.wire.records.partition_change_record import PartitionChangeRecord
from mockraft.wire.records.partition_record import PartitionRecord
from mockraft.wire.records.register_broker_record import BrokerEndpoint, RegisterBrokerRecord
from mockraft.wire.records.topic_record import TopicRecord

from ..coordinating import Coordinating


def topic_id(name: str) -> bytes:
    return name.encode().rjust(16, b"t")[:16]


class Cluster:
    """Broker 1's view, and its answers to clients on its listener PLAINTEXT.

    A request that is parked is retried after `meanwhile`, and then at its deadline.
    """

    def __init__(self) -> None:
        self.meanwhile: Callable[[], object] = lambda: None
        self.image = ClusterImage()
        self.broker = SimpleNamespace(
            apis=APIS,
            config=draw_config(1, "a-cluster", (("127.0.0.1", 9),), random.Random(1)),
            image=self.image,
            observer=SimpleNamespace(applied_offset=41, voters={3000: {}}),
            forwarding=SimpleNamespace(api_versions=None),
            rng=random.Random(1),
            replicas=SimpleNamespace(disk_delay_ms=lambda keys: 0),
        )
        self.apply(FeatureLevelRecord(name="metadata.version", feature_level=30))

    def apply(self, *records: Any) -> None:
        for record in records:
            self.image.apply(RecordAt(record, type(record).max_version))

    def register(self, broker_id: int, listeners: tuple[str, ...] = ("PLAINTEXT",), **fields: Any) -> None:
        """A broker that is not fenced unless told otherwise."""
        endpoints = [BrokerEndpoint(name=name, host=f"b{broker_id}", port=9092) for name in listeners]
        fields = {"fenced": False, "broker_epoch": 10 + broker_id, "log_dirs": [bytes([broker_id]) * 16], **fields}
        self.apply(RegisterBrokerRecord(broker_id=broker_id, end_points=endpoints, **fields))

    def create(self, name: str, *partitions: dict[str, Any]) -> bytes:
        """A topic whose partitions are led by their first replica, all in sync, unless told otherwise."""
        self.apply(TopicRecord(name=name, topic_id=topic_id(name)))
        for index, fields in enumerate(partitions):
            replicas = fields["replicas"]
            usual = {"isr": replicas, "leader": replicas[0], "directories": [bytes([each]) * 16 for each in replicas]}
            self.apply(PartitionRecord(partition_id=index, topic_id=topic_id(name), **{**usual, **fields}))
        return topic_id(name)

    def coordinate(self) -> None:
        """Give broker 1 replicas and coordinators, which follow the metadata from now on."""
        self.coordinating = Coordinating(self.image, self.broker.config)
        self.broker.replicas = self.coordinating.hosts
        self.broker.groups = self.coordinating.groups
        self.broker.transactions = self.coordinating.transactions
        self.broker.verifier = self.coordinating.verifier
        self.broker.shares = self.coordinating.shares
        self.broker.share_leaders = self.coordinating.share_leaders
        self.meanwhile = self.coordinating.run
        self.coordinating.follow_metadata()

    def lead(self, name: str, leader: int, index: int = 0) -> None:
        """Another broker leads a partition."""
        before = self.image.topics_by_name[name].partitions[index]
        isr = list({leader, *before.isr})
        self.apply(PartitionChangeRecord(topic_id=topic_id(name), partition_id=index, leader=leader, isr=isr))
        self.coordinating.follow_metadata()

    def ask(self, request: Any, version: int | None = None, listener_name: str = "PLAINTEXT") -> Any:
        """The answer to one request, in the newest version unless told, by way of the bytes of both."""
        api = APIS[request.api_key]
        version = api.versions[1] if version is None else version
        frame = write_request(request, version, 7, "test")[4:]
        clients = Clients(cast(BrokerView, self.broker), Limits(), lambda: None)
        header = parse_request(frame)
        connection = Connection(Client(1, "127.0.0.1", listener_name), 0, FRAME_BYTES_MAX)
        ctx = clients.context(header, connection.client, 1_000)
        pending = PendingRequest(
            connection, api, api.request.read_from(frame, version, header.body_offset)[0], ctx, 1_000
        )
        result: Any = clients.answer(pending)
        if isinstance(result, Parked):
            self.meanwhile()
            result = result.retry(1_000, False) or result.retry(result.deadline_ms, True)
        data = clients.written(pending, result).frame
        offset = 8 + messages.response_header_version(api.api_key, version)
        return read_response_body(data, offset, api.api_key, version)


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()
