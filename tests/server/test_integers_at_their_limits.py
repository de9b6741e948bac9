"""Each integer of each request at its limits, sent to a live process: it answers, commits and starts again."""

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from mockraft.kafka.mockraft_process import MockraftController
from mockraft.wire import error_codes, messages
from mockraft.wire.message import Struct
from mockraft.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from mockraft.wire.messages.create_topics_request import CreateTopicsRequest
from mockraft.wire.messages.describe_quorum_request import DescribeQuorumRequest, PartitionData, TopicData
from mockraft.wire.schema_files import FieldSpec, StructSpec, schema_of

from ..configs import SET, TOPIC, change_configs
from ..conftest import registration_request, uuid
from ..fetches import TOPIC_ID
from ..filled_messages import SIZES, filled
from ..live_client import DEADLINE_S, LiveClient
from ..topics import topic
from .conftest import OFFERED

pytestmark = pytest.mark.one_python

CLUSTER_ID = "p66Y0sRpQNGVKjK4oTgauw"
LOG = "__cluster_metadata"
LIMITS: dict[str, tuple[Any, ...]] = {
    kind: (-(1 << bits - 1), -1, (1 << bits - 1) - 2, (1 << bits - 1) - 1) for kind, bits in SIZES.items()
} | {"uint16": (0, 1, 65_534, 65_535), "float64": (-1.7976931348623157e308, -1.0, 1.7976931348623157e308, float("nan"))}


class Known(NamedTuple):
    """State of the controller that plausible requests contain."""

    epoch: int
    directory_id: bytes
    broker_epoch: int
    orders: bytes

    def fields(self, api: str, number: int) -> dict[str, Any]:
        """Values by the names of fields, in any struct of the request; other fields have their defaults."""
        endpoint = {"name": "CONTROLLER", "host": "127.0.0.1", "port": 1}
        broker = {"broker_id": 1, "broker_epoch": self.broker_epoch}
        peer = {"topic_name": LOG, "replica_id": 7, "leader_id": 3000, "replica_epoch": self.epoch, "voter_id": -1}
        voter = {"voter_id": 3000, "voter_directory_id": self.directory_id, "max_supported_version": 1, **endpoint}
        of_orders = {"topic_id": self.orders, "name": "orders", "topic": "orders", "topic_name": "orders", **broker}
        configs = {"resource_type": 2, "resource_name": "orders", "name": "retention.ms", "value": str(number)}
        known: dict[str, dict[str, Any]] = {
            "Vote": peer,
            "BeginQuorumEpoch": {**peer, **endpoint, "leader_epoch": self.epoch},
            "EndQuorumEpoch": {**peer, **endpoint, "leader_epoch": self.epoch},
            "Fetch": {
                "topic_id": TOPIC_ID,
                "current_leader_epoch": self.epoch,
                "last_fetched_epoch": 0,
                "max_wait_ms": 0,
                "max_bytes": 1 << 20,
            },
            "FetchSnapshot": {"name": LOG, "current_leader_epoch": self.epoch},
            "DescribeQuorum": {"topic_name": LOG},
            "AddRaftVoter": {**endpoint, "voter_id": 7, "voter_directory_id": uuid(7)},
            "RemoveRaftVoter": {"voter_id": 7, "voter_directory_id": uuid(7)},
            "UpdateRaftVoter": {**voter, "current_leader_epoch": self.epoch},
            "UnregisterBroker": {"broker_id": 2},
            "CreateTopics": {"name": f"topic-{number}", "num_partitions": 1, "replication_factor": 1, "configs": []},
            "CreatePartitions": {"name": "orders", "count": 2 + number, "assignments": None},
            "DeleteTopics": {"name": f"topic-{number - 1}"},
            "ControllerRegistration": {"controller_id": 7, **endpoint},
            "IncrementalAlterConfigs": configs,
            "AlterConfigs": configs,
            "AlterClientQuotas": {"entity_type": "user", "entity_name": "a", "key": "producer_byte_rate", "value": 1.0},
            "AlterUserScramCredentials": {
                "name": "a",
                "mechanism": 1,
                "iterations": 4096,
                "salt": b"s" * 32,
                "deletions": [],
            },
            "UpdateFeatures": {"feature": "transaction.version", "max_version_level": 1, "upgrade_type": 2},
            "BrokerHeartbeat": {**broker, "current_metadata_offset": 1 << 40},
        }
        if "Acl" in api:
            about = {"resource_type": 2, "resource_name": "a", "resource_pattern_type": 3, "principal": "User:a"}
            known[api] = {**about, "host": "*", "operation": 3, "permission_type": 3}
            known[api] |= {f"{name}_filter": value for name, value in known[api].items()} | {"pattern_type_filter": 3}
        common = {"cluster_id": CLUSTER_ID, "timeout_ms": 30_000, "partitions": [0], "assignments": []}
        return {**common, **known.get(api, of_orders)}


def numbers(holder: Struct, spec: StructSpec, version: int, path: str = "") -> Iterator[tuple[str, Struct, FieldSpec]]:
    """Yield every number of a struct: its path, the struct that has it, and its field."""
    for field in spec.fields:
        if not field.versions.covers(version):
            continue
        value = getattr(holder, field.attribute)
        if field.struct is None:
            if field.kind in LIMITS:
                yield f"{path}.{field.attribute}", holder, field
        elif value:
            inner = value[0] if field.is_array else value
            yield from numbers(inner, field.struct, version, f"{path}.{field.attribute}")


def at_their_limits(api_key: int, version: int, known: Known) -> Iterator[tuple[str, Any]]:
    """Yield requests of an API with one number at a limit, and what was changed."""
    cls = messages.request(api_key)
    name, spec = cls.__name__.removesuffix("Request"), schema_of(cls)
    count = len(list(numbers(_request(cls, name, version, known, 0), spec.root, version)))
    for number in range(count * 4):
        request = _request(cls, name, version, known, number)
        path, holder, field = list(numbers(request, spec.root, version))[number // 4]
        value = LIMITS[field.kind][number % 4]
        setattr(holder, field.attribute, [value] if field.is_array else value)
        yield f"{name}{path}={value}", request


def _request(cls: type[Any], name: str, version: int, known: Known, number: int) -> Any:
    if name == "BrokerRegistration":
        ids = {"incarnation_id": uuid(1000 + number), "log_dirs": [uuid(2000 + number)]}
        return registration_request(broker_id=100 + number, cluster_id=CLUSTER_ID, **ids)
    return filled(sys.modules[cls.__module__], schema_of(cls).root, version, known.fields(name, number))


def config_changes() -> Iterator[Any]:
    """Yield changes of configs of type long, int and short to values at and beyond their limits."""
    limits = [number for bits in (16, 32, 64) for number in (-(1 << bits - 1), (1 << bits - 1) - 1)]
    values = [*map(str, limits), *(str(limit + (1 if limit > 0 else -1)) for limit in limits), "9" * 5_000, "1e400"]
    for key in ("retention.ms", "segment.bytes", "min.insync.replicas", "message.timestamp.before.max.ms"):
        for value in values:
            yield change_configs((TOPIC, "orders", (SET, key, value)))


def known_of(client: LiveClient) -> Known:
    """Register broker 1 and create a topic on it."""
    partition = TopicData(topic_name=LOG, partitions=[PartitionData(partition_index=0)])
    (described,) = client.send(DescribeQuorumRequest(topics=[partition]), 2).topics[0].partitions
    registered = client.send(registration_request(broker_id=1, cluster_id=CLUSTER_ID), 4)
    voter = described.current_voters[0]
    known = Known(described.leader_epoch, voter.replica_directory_id, registered.broker_epoch, bytes(16))
    return known._replace(orders=assert_serves(client, known, "orders"))


def assert_serves(client: LiveClient, known: Known, name: str) -> bytes:
    """A good broker's heartbeat is answered, and a topic can be created; return its id."""
    beat = BrokerHeartbeatRequest(broker_id=1, broker_epoch=known.broker_epoch, current_metadata_offset=1 << 40)
    beaten = client.send(beat, 2)
    assert (beaten.error_code, beaten.is_fenced) == (0, False)
    request = CreateTopicsRequest(topics=[topic(name, 1, 1)], timeout_ms=DEADLINE_S * 1000)
    (created,) = client.send(request, 7).topics
    assert (created.error_code, created.error_message) == (0, None)
    return bytes(created.topic_id)


def test_every_integer_at_its_limits_leaves_a_controller_that_commits_and_starts_again(tmp_path: Path) -> None:
    options = ("--super-users", "User:ANONYMOUS", "--session-timeout-ms", str(DEADLINE_S * 1000))
    controller = MockraftController(tmp_path, CLUSTER_ID, options=options)
    outcomes: Counter[str] = Counter()
    try:
        controller.start()
        controller.wait_until_running(DEADLINE_S)
        with closing(LiveClient(controller.port)) as good, closing(LiveClient(controller.port)) as bad:
            known = known_of(good)
            for api_key, api in OFFERED.items():
                versions = range(api.min_version, api.max_version + 1)
                requests = [(v, each) for v in versions for each in at_their_limits(api_key, v, known)]
                for version, (name, request) in requests:
                    waits = not name.startswith("Fetch.max_wait_ms=2")
                    try:
                        outcome = bad.send(request, version, waits=waits)
                    except TimeoutError:
                        pytest.fail(f"no answer: {name}")
                    outcomes["closed" if outcome is None and waits else "answered" if waits else "waits"] += 1
                assert_serves(good, known, f"after-{api_key}")
            for change in config_changes():
                assert good.send(change, 1).responses[0].error_code in (0, error_codes.INVALID_CONFIG)
            assert_serves(good, known, "after-configs")
        assert "Traceback" not in controller.whole_log
        assert controller.stop() == 0
        controller.start()
        controller.wait_until_running(DEADLINE_S)
        with closing(LiveClient(controller.port)) as good:
            assert_serves(good, known, "after-a-restart")
        assert "Traceback" not in controller.whole_log
    finally:
        controller.kill()
    assert outcomes["answered"] > 1000
    assert outcomes["closed"] == 0
