"""One connection to Kafka's controller and one to mockraft's: responses to the same requests, and the records written.

`on_both(run)` runs the same function against both and gives both results; differences that time and chance make (topic
ids, broker epochs, which of several brokers was chosen) are masked.
"""

import json
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import pytest
from mockraft import Controller
from mockraft.kafka.jars import KAFKA_VERSION
from mockraft.kafka.processes import KafkaController, KafkaServer, random_uuid, wait_until
from mockraft.releases import SUPPORTED, release
from mockraft.server.controller.settings.features import metadata_version_level
from mockraft.wire import metadata_log_frame, record_batch
from mockraft.wire.connection import read_response, write_request
from mockraft.wire.json_form import to_json
from mockraft.wire.messages.api_versions_request import ApiVersionsRequest
from mockraft.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from mockraft.wire.messages.broker_registration_request import BrokerRegistrationRequest, Feature, Listener
from mockraft.wire.messages.default_principal_data import DefaultPrincipalData
from mockraft.wire.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from mockraft.wire.messages.envelope_request import EnvelopeRequest
from mockraft.wire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic

from tools.blocking_connection import BlockingConnection

from ..running import running

T = TypeVar("T")

METADATA_TOPIC_ID = bytes(15) + b"\x01"
SESSION_TIMEOUT_MS = 600_000
FAR_OFFSET = 1 << 40
NODE_ID = 3000
# Kafka's controller waits 25 ms for more to write with it.
AT_ONCE = {"controller.quorum.append.linger.ms": "0"}


COMPARED = (SUPPORTED[-2], KAFKA_VERSION)
"""Releases that tests of changed rules compare with: the one before the default, and the default."""


class Outcome(NamedTuple):
    """One answer and the records written for it, as JSON with masks."""

    answer: Any
    records: list[Any]


class Side:
    """One controller, seen through one connection: answers, and the records that they left.

    `controllers` are the ids of those that register themselves.
    """

    def __init__(self, bootstrap: str, cluster_id: str, controllers: frozenset[int] = frozenset({NODE_ID})) -> None:
        self._connect(bootstrap)
        self.cluster_id = cluster_id
        self._controllers = controllers
        self.topic_ids: dict[str, bytes] = {}
        self.epochs: dict[int, int] = {}
        self.leader_epoch = 0
        self._offset = 0
        self.control_records: list[tuple[int, bytes]] = []
        self._last_epoch = 0
        self.registrations: list[Any] = []

    @property
    def control_types(self) -> list[int]:
        return [kind for kind, _ in self.control_records]

    def close(self) -> None:
        self.connection.close()

    def reconnect(self, bootstrap: str) -> None:
        """Go on with another process, or another node, that has the same log."""
        self.close()
        self._connect(bootstrap)

    def _connect(self, bootstrap: str) -> None:
        host, _, port = bootstrap.rpartition(":")
        self._exchanges = BlockingConnection((host, int(port)), "parity", 30)
        self.connection = self._exchanges.socket

    def ask(self, message: Any, version: int) -> Any:
        return self._exchanges.exchange(message, version)

    def forward(
        self,
        message: Any,
        version: int,
        user: str,
        *,
        principal_type: str = "User",
        token_authenticated: bool = False,
        client_id: str = "tool",
        address: bytes = b"\x7f\0\0\1",
    ) -> Any:
        """Ask as a broker that carries the request of a client with this principal and address."""
        answer = self.envelope(
            write_request(message, version, 1, client_id)[4:], user, principal_type, token_authenticated, address
        )
        assert answer.error_code == 0
        return read_response(answer.response_data, message.api_key, version)

    def envelope(self, data: bytes, user: str, principal_type: str, token_authenticated: bool, address: bytes) -> Any:
        """The answer of the envelope itself."""
        principal = DefaultPrincipalData(type=principal_type, name=user, token_authenticated=token_authenticated)
        envelope = EnvelopeRequest(
            request_data=data, request_principal=b"\0\0" + principal.write(0), client_host_address=address
        )
        return self.ask(envelope, 0)

    def new_records(self) -> list[tuple[Any, int]]:
        """Records written since the last call, without those that only time makes: Kafka's controller registers itself
        some time after its start, and again when it got no response.
        """
        records = []
        while True:
            partition = self._fetch()
            if partition.error_code:
                assert partition.current_leader.leader_epoch > self.leader_epoch
                self.leader_epoch = partition.current_leader.leader_epoch
                continue
            for batch in record_batch.read_batches(partition.records or b""):
                self._offset, self._last_epoch = batch.last_offset + 1, batch.leader_epoch
                if batch.is_control:
                    self.control_records += [
                        (record_batch.control_type(key), value or b"") for key, value in batch.records
                    ]
                else:
                    records += [metadata_log_frame.decode(value or b"") for _, value in batch.records]
            if self._offset >= partition.high_watermark:
                self.registrations += [record for record, _ in filter(self._is_own_registration, records)]
                return [
                    each
                    for each in records
                    if "NoOp" not in type(each[0]).__name__ and not self._is_own_registration(each)
                ]

    @property
    def position(self) -> tuple[int, int]:
        """Offset behind the last record read, and its epoch."""
        return self._offset, self._last_epoch

    def _is_own_registration(self, written: tuple[Any, int]) -> bool:
        record, _ = written
        return type(record).__name__.endswith("RegisterControllerRecord") and record.controller_id in self._controllers

    def skip_start(self) -> None:
        """Read past the records of the start."""
        # While Kafka's authorizer has not read its ACLs it lets in nobody but super users.
        wait_until(lambda: self._fetched().responses, 60, "a Fetch that is let in")
        wait_until(self._registration_is_read, 60, "the controller's registration")

    def _registration_is_read(self) -> bool:
        self.new_records()
        return bool(self.registrations)

    def wait_for_start(self) -> None:
        """Read until all that a new active controller begins with is committed."""
        wait_until(lambda: self._fetched().responses, 60, "a Fetch that is let in")
        types: list[str] = []

        def is_whole() -> bool:
            types.extend(type(record).__name__ for record, _ in self.new_records())
            begun, ended = (types.count(name) for name in ("BeginTransactionRecord", "EndTransactionRecord"))
            return "FeatureLevelRecord" in types and begun == ended

        wait_until(is_whole, 60, "the records of the start")

    def _fetch(self) -> Any:
        return self._fetched().responses[0].partitions[0]

    def _fetched(self) -> Any:
        partition = FetchPartition(
            partition=0,
            current_leader_epoch=self.leader_epoch,
            fetch_offset=self._offset,
            last_fetched_epoch=self._last_epoch,
            partition_max_bytes=1 << 20,
        )
        topic = FetchTopic(topic_id=METADATA_TOPIC_ID, partitions=[partition])
        request = FetchRequest(cluster_id=self.cluster_id, max_wait_ms=0, max_bytes=1 << 20, topics=[topic])
        return self.ask(request, 17)

    def registration(
        self, broker_id: int, ranges: Mapping[str, tuple[int, int]], **fields: Any
    ) -> BrokerRegistrationRequest:
        """A broker with these ranges of features' levels registers; `fields` replace others."""
        defaults: dict[str, Any] = {
            "broker_id": broker_id,
            "cluster_id": self.cluster_id,
            "incarnation_id": bytes([broker_id]) * 16,
            "listeners": [Listener(name="PLAINTEXT", host="localhost", port=9000 + broker_id, security_protocol=0)],
            "features": [
                Feature(name=name, min_supported_version=low, max_supported_version=high)
                for name, (low, high) in ranges.items()
            ],
        }
        return BrokerRegistrationRequest(**defaults | fields)

    def add_broker(self, broker_id: int) -> None:
        """Register a broker of one directory, and unfence it."""
        supported = self.ask(ApiVersionsRequest(client_software_name="a", client_software_version="1"), 4)
        ranges = {each.name: (each.min_version, each.max_version) for each in supported.supported_features}
        registered = self.ask(self.registration(broker_id, ranges, log_dirs=[bytes([broker_id, 1]) * 8]), 4)
        assert registered.error_code == 0
        self.epochs[broker_id] = registered.broker_epoch
        heartbeat = BrokerHeartbeatRequest(
            broker_id=broker_id, broker_epoch=registered.broker_epoch, current_metadata_offset=FAR_OFFSET
        )
        assert self.ask(heartbeat, 2).is_fenced is False

    def outcome(self, message: Any, version: int, *, is_chance: bool = False) -> Outcome:
        """Ask, and see what was written. `is_chance`: of placements only the shape is the same on both sides."""
        answer = self.ask(message, version)
        records = self.new_records()
        for record, _ in records:
            if type(record).__name__.endswith("TopicRecord") and hasattr(record, "name"):
                self.topic_ids[record.name] = record.topic_id
            if hasattr(record, "broker_epoch"):
                record.broker_epoch = 0
        for topic in getattr(answer, "topics", ()):
            if not getattr(topic, "error_code", 1) and topic.name not in self.topic_ids:
                self.topic_ids[topic.name] = topic.topic_id
        tree = self._masked(to_json(answer, version))
        for answers in ("topics", "responses", "entries", "results", "replicaElectionResults"):
            if answers in tree:
                tree[answers].sort(key=json.dumps)
        return Outcome(tree, [self._shape(*record, is_chance) for record in records])

    def _shape(self, record: Any, version: int, is_chance: bool) -> Any:
        if is_chance and hasattr(record, "replicas"):
            assert record.leader == record.isr[0]
            assert record.isr == record.replicas
            assert len({*record.replicas}) == len(record.replicas)
            return ["partition", record.partition_id, len(record.replicas), version]
        return [type(record).__name__, version, self._masked(to_json(record, version))]

    def _masked(self, tree: Any) -> Any:
        text = json.dumps(tree)
        for name, topic_id in self.topic_ids.items():
            text = text.replace(_uuid_text(topic_id), f"id of {name}")
        return json.loads(text)


def _uuid_text(topic_id: bytes) -> str:
    tree: Any = to_json(DeleteTopicsRequest(topics=[DeleteTopicState(topic_id=topic_id)]), 6)
    return str(tree["topics"][0]["topicId"])


def _on_kafka(
    directory: Path,
    version: str,
    level: str | None,
    run: Callable[[Side], T],
    session_timeout_ms: int,
    more: dict[str, Any],
) -> T:
    cluster_id = random_uuid()
    properties = {"broker.session.timeout.ms": str(session_timeout_ms), **AT_ONCE}
    properties |= {key.replace("_", "."): str(value) for key, value in more.items() if key != "authorizer"}
    if more.get("authorizer"):
        properties["authorizer.class.name"] = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
    controller = KafkaController(directory, cluster_id, version=version, release_version=level, properties=properties)
    controller.format()
    return _run_on_kafka(controller, run)


def _run_on_kafka(formatted: KafkaController, run: Callable[[Side], T]) -> T:
    with running(formatted, formatted=True) as controller:
        with closing(Side(controller.bootstrap, controller.cluster_id)) as first:
            first.wait_for_start()
        with closing(Side(controller.bootstrap, controller.cluster_id)) as side:
            return run(side)


def _run_on_ours(run: Callable[[Side], T], **options: Any) -> T:
    with Controller.sync(**options) as controller, closing(Side(controller.bootstrap, controller.cluster_id)) as side:
        return run(side)


@pytest.fixture(scope="module")
def on_both(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., tuple[Any, Any]]:
    """`on_both(run, level=None)`: what `run(side)` gives on Kafka's controller and on ours, both new.

    `level` is a metadata.version by Kafka's name, None the newest. `more` are options of ours, and with dots Kafka's.
    Ours is a controller of Kafka's release.
    """

    def both(
        run: Callable[[Side], T],
        level: str | None = None,
        session_timeout_ms: int = SESSION_TIMEOUT_MS,
        kafka_version: str = KAFKA_VERSION,
        **more: Any,
    ) -> tuple[T, T]:
        theirs = _on_kafka(tmp_path_factory.mktemp("kafka"), kafka_version, level, run, session_timeout_ms, more)
        options: dict[str, Any] = {"session_timeout_ms": session_timeout_ms, "release": kafka_version, **more}
        if level is not None:
            options["metadata_version"] = metadata_version_level(level, release(kafka_version))
            # Kafka's tool chooses kraft.version 1 for every metadata.version.
            options.setdefault("kraft_version", 1)
        return theirs, _run_on_ours(run, **options)

    return both


@pytest.fixture(scope="module", params=COMPARED)
def outcomes(request: pytest.FixtureRequest, on_both: Callable[..., tuple[Any, Any]]) -> tuple[Any, Any]:
    """Results of the module's `run(side)` on Kafka's controller and on ours, of the default and the newest release."""
    return on_both(request.module.run, kafka_version=request.param)


@pytest.fixture
def on_both_with_configured_voters(tmp_path: Path) -> Callable[..., tuple[Any, Any]]:
    """As `on_both(run)`, with kraft.version 0: the voters are configuration, not in the log (KIP-853)."""

    def both(run: Callable[[Side], T]) -> tuple[T, T]:
        kafka = KafkaController(tmp_path, random_uuid(), properties=AT_ONCE)
        del kafka.properties["controller.quorum.bootstrap.servers"]
        kafka.properties["controller.quorum.voters"] = f"3000@{kafka.bootstrap}"
        KafkaServer.format(kafka, "--feature", "kraft.version=0")
        return _run_on_kafka(kafka, run), _run_on_ours(run, kraft_version=0)

    return both
