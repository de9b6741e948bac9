"""A controller without sockets, called as the node calls it, with a virtual clock."""

import gc
import random
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from mockraft.kafka_api.api import Client, Parked
from mockraft.releases import Behaviour, release
from mockraft.server.apis.api import RequestContext, answer
from mockraft.server.apis.registry import APIS
from mockraft.server.config import ControllerConfig
from mockraft.server.controller.controller import Controller
from mockraft.server.controller.image import BrokerRegistration, Partition
from mockraft.server.controller.result import ControllerResult
from mockraft.server.raft.raft import Raft
from mockraft.wire.connection import Request
from mockraft.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from mockraft.wire.messages.broker_registration_request import BrokerRegistrationRequest, Feature, Listener
from mockraft.wire.messages.unregister_broker_request import UnregisterBrokerRequest
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.records.config_record import ConfigRecord
from mockraft.wire.records.partition_record import PartitionRecord
from mockraft.wire.records.topic_record import TopicRecord

from .budgets import SOAKS
from .documentation.blocks import write_blocks
from .scheduling import scheduler
from .selection import is_not_read, left_out
from .spark.class_archive import use_class_archive

START_MS = 1_700_000_000_000
ROOT = Path(__file__).parents[1]

# Last of all: tests import `tools` from here, but the folder kafka/ must not hide kafka-python.
sys.path[:] = [*(each for each in sys.path if Path(each).resolve() != ROOT), str(ROOT)]

# A busy machine is no defect. With CI=true Hypothesis does without both by itself.
settings.register_profile("on any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("on any machine")


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        write_blocks()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: Any, log: Any) -> Any:
    return scheduler(config, log)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    return True if is_not_read(collection_path, config) else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave what only `make soak` runs to it, and tests whose tools nobody asked for to those who do."""
    left = left_out(config, items)
    kept = set(items).difference(left)
    items[:] = [item for item in items if item in kept]
    config.hook.pytest_deselected(items=left)


def pytest_collection_finish() -> None:
    """Leave modules and tests to no garbage collection: a full one stops a busy machine for longer than a session."""
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    if SOAKS and item.get_closest_marker("spark"):
        use_class_archive()  # `make test` starts so few drivers that making the archive takes longer


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown() -> None:
    """End clients that a test left in a cycle of references: they would go on asking the next owner of their port."""
    if "confluent_kafka" in sys.modules and clients_of_librdkafka() - _clients_kept:
        gc.collect()
        _clients_kept.update(clients_of_librdkafka())


_clients_kept: set[Path] = set()


def clients_of_librdkafka() -> set[Path]:
    """The main threads of librdkafka's clients in this process."""
    found = set()
    for name in Path("/proc/self/task").glob("*/comm"):
        with suppress(OSError):  # it has ended: no such file, or no such process
            if name.read_text().startswith("rdk:main"):
                found.add(name)
    return found


class Cluster:
    """One controller over a log in memory, and what brokers would say to it."""

    def __init__(self, **options: Any) -> None:
        self.now_ms = START_MS
        self.apis = APIS
        self.rng = random.Random(options.pop("seed", 1))
        self.config = ControllerConfig(**options)
        self.raft = Raft.open(self.config, self.now_ms, self.rng)
        self.log = self.raft.log
        self.controller = Controller(self.config, self.raft, self.rng, self.now_ms)
        self.topic_id = bytes(16)
        """Id of the topic that a test is about, set by the test."""
        self._mark = self.log.end_offset

    def ask(
        self,
        request: Any,
        version: int | None = None,
        *,
        forwarded: bool = False,
        principal: str = "User:ANONYMOUS",
        client_id: str = "test",
    ) -> Any:
        """The controller's response, by way of their bytes, to one request; in its newest version unless told."""
        api = self.apis[request.api_key]
        version = api.max_version if version is None else version
        header = Request(api.api_key, version, 1, client_id, b"", 0)
        client = Client(1, "127.0.0.1" if forwarded else "127.0.0.1:50000", "CONTROLLER", principal)
        ctx = RequestContext(header, client, self.now_ms, self.apis, forwarded)
        self.mark()
        response = answer(api, api.request.read(request.write(version), version), ctx, self.controller)
        assert not isinstance(response, Parked)
        assert ctx.failure is None, ctx.failure
        return api.response.read(response.write(version), version)

    def registration_request(self, broker_id: int, **fields: Any) -> BrokerRegistrationRequest:
        """A registration as a 4.3.1 broker with one directory sends it."""
        return registration_request(broker_id=broker_id, **{"cluster_id": self.config.cluster_id, **fields})

    def register(self, broker_id: int, version: int = 4, **fields: Any) -> int:
        """Register a broker; gives its epoch."""
        response = self.ask(self.registration_request(broker_id, **fields), version)
        assert response.error_code == 0, response
        return int(response.broker_epoch)

    def heartbeat(self, broker_id: int, version: int = 2, **fields: Any) -> Any:
        """A heartbeat of a broker that has read everything and wants to be unfenced, unless told otherwise."""
        request = BrokerHeartbeatRequest(
            **{
                "broker_id": broker_id,
                "broker_epoch": self.broker(broker_id).broker_epoch,
                "current_metadata_offset": self.log.end_offset - 1,
                **fields,
            }
        )
        return self.ask(request, version)

    def start(self, *broker_ids: int, **fields: Any) -> None:
        """Register and unfence brokers."""
        for broker_id in broker_ids:
            self.register(broker_id, **fields)
            assert self.heartbeat(broker_id).is_fenced is False

    def fence(self, broker_id: int) -> None:
        """The broker asks to be fenced."""
        assert self.heartbeat(broker_id, want_fence=True).is_fenced is True

    def unregister(self, broker_id: int) -> Any:
        """Forget a broker."""
        return self.ask(UnregisterBrokerRequest(broker_id=broker_id))

    def write(self, *records: RecordAt) -> None:
        """Write records that no API of this rig writes."""
        self.mark()
        self.controller.commit(ControllerResult(list(records), None, atomic=False), self.now_ms)

    def create_topic(self, name: str, *partitions: list[int], topic_id: bytes | None = None, **fields: Any) -> bytes:
        """A topic with these replicas by partition, all in sync and led by the first, unless `fields` say otherwise."""
        topic_id = topic_id or uuid(sum(name.encode()))
        version = self.controller.image.version
        records = [RecordAt(TopicRecord(name=name, topic_id=topic_id), 0)]
        for partition_id, replicas in enumerate(partitions):
            directories = [self.controller.image.cluster.default_dir(replica) for replica in replicas]
            record = PartitionRecord(
                **{
                    "partition_id": partition_id,
                    "topic_id": topic_id,
                    "replicas": replicas,
                    "isr": replicas,
                    "leader": replicas[0],
                    "leader_epoch": 0,
                    "partition_epoch": 0,
                    "directories": directories if version.has(Behaviour.DIRECTORY_ASSIGNMENT) else [],
                    **fields,
                }
            )
            records.append(RecordAt(record, version.record_versions["PartitionRecord"]))
        self.write(*records)
        return topic_id

    def set_config(self, topic: str, key: str, value: str | None) -> None:
        """Set a topic config."""
        self.write(RecordAt(ConfigRecord(resource_type=2, resource_name=topic, name=key, value=value), 0))

    def advance(self, ms: int) -> None:
        """Let time pass, and the periodic work with it."""
        self.mark()
        self.now_ms += ms
        self.controller.tick(self.now_ms)

    def mark(self) -> None:
        """Leave the records that are in the log now out of `written`."""
        self._mark = self.log.end_offset

    def written(self) -> list[RecordAt]:
        """The records since the last request, write or tick, NoOpRecords left out."""
        found = [record_at for _, record_at in self.log.records(self._mark)]
        return [record_at for record_at in found if type_name(record_at.record) != "NoOpRecord"]

    def written_types(self) -> list[str]:
        """The types of these records."""
        return [type_name(record) for record, _ in self.written()]

    def broker(self, broker_id: int) -> BrokerRegistration:
        """The broker as the image has it."""
        return self.controller.image.cluster.brokers[broker_id]

    def partition(self, topic_id: bytes, partition_id: int = 0) -> Partition:
        """The partition as the image has it."""
        partition = self.controller.image.topics.partition(topic_id, partition_id)
        assert partition is not None
        return partition


def registration_request(cluster_id: str, broker_id: int, **fields: Any) -> BrokerRegistrationRequest:
    """A registration as a 4.3.1 broker with one directory sends it; `features` are ranges of levels that differ."""
    ranges = release().feature_ranges()
    ranges |= fields.pop("features", {})
    return BrokerRegistrationRequest(
        **{
            "broker_id": broker_id,
            "cluster_id": cluster_id,
            "incarnation_id": uuid(900 + broker_id),
            "listeners": [Listener(name="PLAINTEXT", host=f"b{broker_id}", port=9092, security_protocol=0)],
            "features": [
                Feature(name=name, min_supported_version=low, max_supported_version=high)
                for name, (low, high) in ranges.items()
            ],
            "log_dirs": [directory(broker_id)],
            **fields,
        }
    )


def type_name(record: Any) -> str:
    """Name of a record's type, whichever subclass carries it."""
    from mockraft.wire import records

    return str(records.TYPES[record.api_key])


def uuid(number: int) -> bytes:
    """A uuid that is not reserved."""
    return (1 << 100 | number).to_bytes(16, "big")


def directory(broker_id: int, index: int = 0) -> bytes:
    """The id of a broker's directory in this rig."""
    return uuid(10_000 + 10 * broker_id + index)


@pytest.fixture
def cluster() -> Cluster:
    """A controller at the newest metadata.version."""
    return Cluster()


@pytest.fixture
def new_cluster() -> type[Cluster]:
    """To make a controller with options of its own."""
    return Cluster
