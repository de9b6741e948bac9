"""Differences that were found by reviews and other suites, asked again of Kafka's controller and of ours.

One after the other in one life of each: topics of mixed replication, names of brokers that Java reads as numbers,
configs of the node itself, an observer that fetched inside a batch, and a controller whose registration was replaced.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from mockraft.kafka.processes import wait_until
from mockraft.wire import error_codes, record_batch
from mockraft.wire.json_form import to_json
from mockraft.wire.messages import alter_partition_reassignments_request as reassign
from mockraft.wire.messages.controller_registration_request import ControllerRegistrationRequest, Listener
from mockraft.wire.messages.create_partitions_request import CreatePartitionsRequest
from mockraft.wire.messages.create_topics_request import CreateTopicsRequest
from mockraft.wire.messages.describe_cluster_request import DescribeClusterRequest
from mockraft.wire.messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from mockraft.wire.messages.describe_quorum_request import DescribeQuorumRequest, PartitionData, TopicData
from mockraft.wire.messages.fetch_request import ReplicaState
from mockraft.wire.messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest

from ...configs import BROKER, BROKER_LOGGER, SET, Resource, change_configs
from ...fetches import fetch_request
from ...topics import more_partitions, topic
from .conftest import NODE_ID, Side

pytestmark = pytest.mark.real_kafka

CONTROLLERS = 2
NODE = str(NODE_ID)
THREADS = "num.io.threads"
METADATA_QUORUM = DescribeQuorumRequest(
    topics=[TopicData(topic_name="__cluster_metadata", partitions=[PartitionData(partition_index=0)])]
)
OF_THE_PROCESS = {
    "controller.quorum.append.linger.ms",
    "controller.quorum.bootstrap.servers",
    "listener.security.protocol.map",
    "listeners",
    "log.dirs",
}
SIZES = range(1, 23)
NAMES = {
    "5,000 digits": "9" * 5_000,
    "5,000 zeros": "0" * 5_000 + "1",
    "a sign": "+1",
    "minus zero": "-0",
    "other digits": "\N{ARABIC-INDIC DIGIT ONE}",
    "digits beyond U+FFFF": "\N{MATHEMATICAL BOLD DIGIT ONE}",
    "a space": " 1",
    "beyond 32 bits": "2147483648",
    "the lowest": "-2147483648",
}
LAG, UNCLEAN = "log.cleaner.min.compaction.lag.ms", "unclean.leader.election.enable"
DYNAMIC_VALUES = (("", LAG, "5"), ("", UNCLEAN, ""), (NODE, LAG, "x"), ("", "log.retention.hours", "1"))
QUOTAS = (
    "leader.replication.throttled.rate",
    "follower.replication.throttled.rate",
    "replica.alter.log.dirs.io.max.bytes.per.second",
)


def mixed_replication(side: Side) -> Iterator[tuple[str, Any]]:
    """Yield the replication of partitions that are added to topics whose others differ, one after the other."""
    for size in SIZES:
        name = f"mixed-{size}"
        manual = [(index, [1]) for index in range(size)]
        created = side.ask(CreateTopicsRequest(topics=[topic(name, manual=manual)], timeout_ms=60_000), 7)
        assert created.topics[0].error_code == error_codes.NONE
        moves = [
            reassign.ReassignablePartition(partition_index=index, replicas=[[1], [1, 2], [1, 2, 3]][index % 3])
            for index in range(size)
            if index % 3
        ]
        side.ask(
            reassign.AlterPartitionReassignmentsRequest(
                topics=[reassign.ReassignableTopic(name=name, partitions=moves)], timeout_ms=60_000
            ),
            1,
        )
        side.new_records()
        for count in (size + 1, size + 2, size + 4):
            added = CreatePartitionsRequest(topics=[more_partitions(name, count)], timeout_ms=60_000)
            side.ask(added, 3)
            yield f"{name} to {count}", [len(record.replicas) for record, _ in side.new_records()]


def many(side: Side) -> Iterator[tuple[str, Any]]:
    """Yield how more topics are answered than a batch has records."""
    asked = CreatePartitionsRequest(topics=[more_partitions(f"none-{n}", 2) for n in range(10_001)], timeout_ms=60_000)
    yield "many topics", {(each.error_code, each.error_message) for each in side.ask(asked, 3).results}


def names(side: Side) -> Iterator[tuple[str, Any]]:
    """Yield how names of brokers are answered that are numbers to Java, or almost."""
    for about, name in NAMES.items():
        for kind in (BROKER, BROKER_LOGGER):
            yield f"change of {kind}, {about}", side.outcome(change_configs((kind, name, (SET, "a.key", "x"))), 1)
            resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=["a.key"])
            yield (
                f"description of {kind}, {about}",
                to_json(side.ask(DescribeConfigsRequest(resources=[resource]), 4), 4),
            )


def node_configs(side: Side) -> dict[str, Any]:
    resource = DescribeConfigsResource(resource_type=BROKER, resource_name=NODE)
    (result,) = side.ask(DescribeConfigsRequest(resources=[resource], include_synonyms=True), 4).results
    return {config.name: config for config in result.configs}


def quotas(side: Side) -> Iterator[tuple[str, Any]]:
    """Yield how a node's replication quotas are described: unset, set for the node and for all, to bad values."""
    yield "quotas, unset", node_quotas(side)
    changes = (NODE, "16800"), ("", " 17 "), (NODE, "x"), (NODE, "-1"), (NODE, "9" * 5_000)
    for number, (name, value) in enumerate(changes, start=9):
        # Kafka's controller describes what its metadata cache has, a moment later: the threads show that.
        settings: list[Resource] = [
            (BROKER, name, *((SET, key, value) for key in QUOTAS)),
            (BROKER, NODE, (SET, THREADS, str(number))),
        ]
        yield f"quota {value} of {name}, written", [side.outcome(change_configs(each), 1).answer for each in settings]
        wait_until(partial(has_threads, side, str(number)), 60, "the new settings")
        yield f"quota {value} of {name}", node_quotas(side)


def dynamic_values(side: Side) -> Iterator[tuple[str, Any]]:
    """Yield which dynamic values of the controller itself new topics have: all, but they are validated without them."""
    for number, (name, key, value) in enumerate(DYNAMIC_VALUES, start=20):
        yield f"{key}={value!r} of {name!r}", side.outcome(change_configs((BROKER, name, (SET, key, value))), 1)
        side.outcome(change_configs((BROKER, NODE, (SET, THREADS, str(number)))), 1)
        wait_until(partial(has_threads, side, str(number)), 60, "the new settings")
        lagging = topic(f"lag-{number}", 1, 1, max_compaction_lag_ms="4")
        asked = CreateTopicsRequest(topics=[lagging], timeout_ms=60_000)
        yield f"a topic after {key}={value!r} of {name!r}", side.outcome(asked, 7, is_chance=True)


def has_threads(side: Side, number: str) -> bool:
    return bool(node_configs(side)[THREADS].value == number)


def node_quotas(side: Side) -> dict[str, Any]:
    found = node_configs(side)
    return {key: found.get(key) for key in QUOTAS}


def observer(side: Side) -> Iterator[tuple[str, Any]]:
    """Yield how far an observer is said to have come, from the beginning of the batch in which it fetched."""
    begin, epoch = side.position
    side.ask(CreateTopicsRequest(topics=[topic("batch", 5, 1)], timeout_ms=60_000), 7)
    read = side.ask(fetch(side, begin, epoch), 17).responses[0].partitions[0].records
    batch = next(each for each in record_batch.read_batches(read) if len(each.records) > 1)
    for distance in (0, 1, len(batch.records) - 1, len(batch.records)):
        replica = ReplicaState(replica_id=70 + distance, replica_epoch=-1)
        last_epoch = batch.leader_epoch if distance else epoch
        side.ask(fetch(side, batch.base_offset + distance, last_epoch, replica_state=replica), 17)
    described = side.ask(METADATA_QUORUM, 2).topics[0].partitions[0].observers
    yield "observers", sorted((each.replica_id, each.log_end_offset - batch.base_offset) for each in described)


def fetch(side: Side, offset: int, last_epoch: int, **fields: Any) -> Any:
    fields |= {"cluster_id": side.cluster_id, "current_leader_epoch": side.leader_epoch, "max_wait_ms": 0}
    return fetch_request(offset, last_fetched_epoch=last_epoch, **fields)


def replaced_registration(side: Side) -> Iterator[tuple[str, Any]]:
    """Yield what happens after another controller has registered with the id of this one."""
    described = side.ask(DescribeClusterRequest(endpoint_type=CONTROLLERS), 1).brokers
    side.new_records()
    begin = len(side.registrations)
    listener = Listener(name="CONTROLLER", host="elsewhere", port=1, security_protocol=0)
    taken = ControllerRegistrationRequest(controller_id=3000, incarnation_id=bytes(range(16)), listeners=[listener])
    yield "taken", to_json(side.ask(taken, 0), 0)

    def is_back() -> bool:
        side.new_records()
        now = side.ask(DescribeClusterRequest(endpoint_type=CONTROLLERS), 1).brokers
        return len(side.registrations) > begin + 1 and now == described

    wait_until(is_back, 60, "the controller's own registration")
    update = FeatureUpdateKey(feature="transaction.version", max_version_level=1, upgrade_type=2)
    yield "update", side.outcome(UpdateFeaturesRequest(feature_updates=[update], timeout_ms=60_000), 2)
    yield "hosts", [each.end_points[0].host for each in side.registrations[begin:]]


def run(side: Side) -> dict[str, Any]:
    side.skip_start()
    found: dict[str, Any] = {"the node": node_configs(side)}
    for broker_id in (1, 2, 3):
        side.add_broker(broker_id)
    side.new_records()
    for part in (mixed_replication, many, names, quotas, dynamic_values, observer, replaced_registration):
        found |= dict(part(side))
    return found


def test_responses_and_records_equal_kafkas(outcomes: Any) -> None:
    theirs, ours = ({**found, "the node": None} for found in outcomes)
    assert ours == theirs


def test_all_configs_of_a_node_are_described_as_kafkas(outcomes: Any) -> None:
    theirs, ours = (found["the node"] for found in outcomes)
    assert len(theirs) > 300
    # What the two processes were started with: Kafka's file names a quorum, a directory and no linger.
    started_with = {name for name in OF_THE_PROCESS if ours.pop(name, None) != theirs.pop(name, None)}
    assert started_with == OF_THE_PROCESS
    assert ours == theirs
