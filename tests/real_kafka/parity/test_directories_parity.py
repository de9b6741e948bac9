"""Directories from registration to placement, on Kafka's controller and on mockraft's: equal responses and records."""

import json
from itertools import groupby
from typing import Any

import pytest
from mockraft.releases import release
from mockraft.wire.json_form import to_json
from mockraft.wire.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from mockraft.wire.messages.alter_partition_request import AlterPartitionRequest, BrokerState, PartitionData, TopicData
from mockraft.wire.messages.assign_replicas_to_dirs_request import AssignReplicasToDirsRequest, DirectoryData
from mockraft.wire.messages.assign_replicas_to_dirs_request import PartitionData as PlacedPartition
from mockraft.wire.messages.assign_replicas_to_dirs_request import TopicData as PlacedTopic
from mockraft.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from mockraft.wire.messages.create_partitions_request import CreatePartitionsRequest, CreatePartitionsTopic
from mockraft.wire.messages.create_topics_request import CreateTopicsRequest
from mockraft.wire.messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest

from ...configs import APPEND, BROKER, DELETE, SET, SUBTRACT, change_configs
from ...topics import topic as new_topic

pytestmark = pytest.mark.real_kafka

FAR_OFFSET = 1 << 40
MIGRATING, UNASSIGNED, LOST = (bytes(15) + bytes([number]) for number in range(3))
UNKNOWN = b"\x77" * 16


def directory(broker_id: int, number: int) -> bytes:
    return bytes([broker_id, number]) * 8


class Story:
    """A request to one controller by name, with its answer and records."""

    def __init__(self, side: Any, name: str = "t") -> None:
        self.side = side
        self.outcomes: dict[str, Any] = {}
        self.topic = name
        side.new_records()

    def ask(self, name: str, message: Any, version: int) -> None:
        assert name not in self.outcomes
        answer, records = self.side.outcome(message, version)
        self.outcomes[name] = [answer, comparable(records)]

    def register(self, name: str, broker_id: int, *dirs: bytes) -> None:
        supported = release().feature_ranges()
        answer = self.side.ask(self.side.registration(broker_id, supported, log_dirs=list(dirs)), 4)
        if answer.error_code == 0:
            self.side.epochs[broker_id] = answer.broker_epoch
        records = [self.shape(*record) for record in self.side.new_records()]
        self.outcomes[name] = [answer.error_code, comparable(records)]

    def shape(self, record: Any, version: int) -> Any:
        if hasattr(record, "broker_epoch"):
            record.broker_epoch = 0
        return [type(record).__name__, version, to_json(record, version)]

    def heartbeat(self, name: str, broker_id: int, version: int = 2, **fields: Any) -> None:
        epoch = self.side.epochs[broker_id]
        request = BrokerHeartbeatRequest(
            broker_id=broker_id, broker_epoch=epoch, current_metadata_offset=FAR_OFFSET, **fields
        )
        self.ask(name, request, version)

    def create(self, name: str, *replicas: int, topic: str = "", factor: int = 0, validate_only: bool = False) -> None:
        placed = [(0, list(replicas))] if replicas else []
        creatable = new_topic(topic or self.topic, -1 if replicas else 1, factor or -1, placed)
        self.ask(name, CreateTopicsRequest(topics=[creatable], timeout_ms=10_000, validate_only=validate_only), 7)

    def assign(self, name: str, broker_id: int, directory_id: bytes, topic: str = "") -> None:
        topic_id = self.side.topic_ids[topic or self.topic]
        topics = [PlacedTopic(topic_id=topic_id, partitions=[PlacedPartition(partition_index=0)])]
        request = AssignReplicasToDirsRequest(
            broker_id=broker_id,
            broker_epoch=self.side.epochs[broker_id],
            directories=[DirectoryData(id=directory_id, topics=topics)],
        )
        self.ask(name, request, 0)

    def in_sync(self, name: str, leader: int, partition_epoch: int, *isr: int, leader_epoch: int = 0) -> None:
        data = PartitionData(
            partition_index=0,
            leader_epoch=leader_epoch,
            partition_epoch=partition_epoch,
            new_isr_with_epochs=[BrokerState(broker_id=member, broker_epoch=-1) for member in isr],
        )
        topics = [TopicData(topic_id=self.side.topic_ids[self.topic], partitions=[data])]
        epoch = self.side.epochs[leader]
        self.ask(name, AlterPartitionRequest(broker_id=leader, broker_epoch=epoch, topics=topics), 3)

    def reassign(self, name: str, *replicas: int, topic: str = "") -> None:
        target = ReassignablePartition(partition_index=0, replicas=list(replicas))
        topics = [ReassignableTopic(name=topic or self.topic, partitions=[target])]
        self.ask(name, AlterPartitionReassignmentsRequest(topics=topics, timeout_ms=10_000), 1)

    def configure(self, name: str, value: str | None, operation: int = SET, *, forwarded: bool = False) -> None:
        request = change_configs((BROKER, "1", (operation, "cordoned.log.dirs", value)))
        if not forwarded:
            self.ask(name, request, 1)
            return
        answer = self.side.forward(request, 1, "admin")
        records = [self.shape(*record) for record in self.side.new_records()]
        self.outcomes[name] = [to_json(answer, 1), comparable(records)]


def comparable(records: list[Any]) -> list[Any]:
    """Sort adjacent changes of partitions, which have no fixed order."""
    result: list[Any] = []
    for name, group in groupby(records, lambda record: record[0]):
        found = list(group)
        result += sorted(found, key=json.dumps) if name == "PartitionChangeRecord" else found
    return result


def directories(side: Any) -> Any:
    """Directories fail, are assigned, are told anew; leaders follow by the order of replicas (KIP-18's rule)."""
    story = Story(side)
    story.register("one directory", 1, directory(1, 1))
    story.register("two directories", 2, directory(2, 2), directory(2, 1))
    story.register("three directories", 3, *(directory(3, number) for number in (1, 2, 3)))
    story.register("another's directory", 4, directory(1, 1))
    story.register("a reserved directory", 4, LOST)
    story.register("a directory twice", 4, directory(4, 1), directory(4, 1))
    story.register("no directory", 4)
    for broker_id in (1, 2, 3):
        story.heartbeat(f"broker {broker_id} is unfenced", broker_id)
    story.create("default directories", 1, 2, 3)
    story.in_sync("the ISR is told in another order", 1, 0, 3, 2, 1)
    story.assign("a directory of one of two", 2, directory(2, 1))
    story.assign("the same again", 2, directory(2, 1))
    story.heartbeat("the leader's directory fails", 1, offline_log_dirs=[directory(1, 1)])
    story.heartbeat("it is told again", 1, offline_log_dirs=[directory(1, 1)])
    story.heartbeat("unknown directories fail", 3, offline_log_dirs=[UNKNOWN, directory(2, 1)])
    story.heartbeat("a follower in no directory stays", 3, offline_log_dirs=[directory(3, 2)])
    story.assign("a follower's directory is not online", 3, directory(3, 2))
    story.assign("unassigned is a plain value", 3, UNASSIGNED)
    story.assign("migrating is a plain value", 3, MIGRATING)
    story.assign("the leader's replica is lost", 2, LOST)
    story.heartbeat("a broker whose replica is lost is fenced", 2, want_fence=True)
    story.heartbeat("and unfenced", 2)
    story.register("told anew without a directory that is used", 2, directory(2, 2))
    story.register("told anew with others", 3, directory(3, 9), directory(3, 8))
    story.create("after that", 2, 3, topic="u")
    return story.outcomes


def cordoned(side: Any) -> Any:
    """Cordoned directories: heartbeats, placement, the requests that look at them and those that do not."""
    story = Story(side)
    for broker_id, dirs in ((1, 2), (2, 2)):
        story.register(f"broker {broker_id}", broker_id, *(directory(broker_id, n) for n in range(1, dirs + 1)))
        story.heartbeat(f"broker {broker_id} is unfenced", broker_id)
    story.create("assigned", 2, 1)
    story.heartbeat("nothing is cordoned", 1, cordoned_log_dirs=[])
    story.heartbeat("one of two is cordoned", 1, cordoned_log_dirs=[directory(1, 1)])
    story.create("a broker with one uncordoned directory is used", topic="a", factor=2, validate_only=True)
    story.heartbeat("both are cordoned", 1, cordoned_log_dirs=[directory(1, 2), directory(1, 1)])
    story.create("too few brokers", topic="u", factor=2)
    story.create("assigned to a cordoned broker", 1, topic="v")
    story.create("placed beside it", topic="w", factor=1)
    story.reassign("moved to a cordoned broker", 1, topic="w")
    more = [CreatePartitionsTopic(name="t", count=2)]
    story.ask("more partitions", CreatePartitionsRequest(topics=more, timeout_ms=10_000), 3)
    story.heartbeat("all are cordoned", 2, cordoned_log_dirs=[directory(2, 1), directory(2, 2), UNKNOWN])
    story.create("nobody is left", topic="x", factor=1)
    story.ask("nor for more partitions", CreatePartitionsRequest(topics=more, timeout_ms=10_000), 3)
    story.heartbeat("an older heartbeat tells nothing", 2, version=1)
    story.heartbeat("null tells nothing", 2, cordoned_log_dirs=None)
    story.heartbeat("fenced and uncordoned at once", 2, want_fence=True, cordoned_log_dirs=[])
    story.heartbeat("only a fenced one is left", 2, want_fence=True)
    story.create("a fenced one leads nothing", topic="x", factor=1)
    story.register("told anew, nothing is known", 1, directory(1, 1), directory(1, 2))
    story.create("so it is used", topic="x", factor=1)
    story.configure("a direct change", "/a,/b")
    story.configure("a forwarded change", "/a,/b", forwarded=True)
    story.configure("a direct change to less", " /b ")
    story.configure("a direct change to more", "/a,/b")
    story.configure("appended directly", "/c", APPEND)
    story.configure("appended by a broker", "/c,*", APPEND, forwarded=True)
    story.configure("subtracted directly", "/c", SUBTRACT)
    story.configure("deleted directly", None, DELETE)
    return story.outcomes


def below(side: Any) -> Any:
    """Below 3.7-IV2 there are no directories, below 4.3-IV0 none is cordoned; then the level is raised."""
    story = Story(side)
    story.register("without a directory", 1)
    story.heartbeat("unfenced", 1, offline_log_dirs=[UNKNOWN], cordoned_log_dirs=[UNKNOWN])
    story.create("a topic", 1)
    story.assign("an assignment", 1, directory(1, 1))
    for level in (17, 29, 30):
        raised = [FeatureUpdateKey(feature="metadata.version", max_version_level=level, upgrade_type=1)]
        story.ask(f"to level {level}", UpdateFeaturesRequest(feature_updates=raised, timeout_ms=10_000), 2)
        story.create(f"at level {level}", 1, topic=f"t{level}")
        story.heartbeat(f"heartbeat at level {level}", 1, cordoned_log_dirs=[UNKNOWN])
        story.configure(f"config at level {level}", "")
    story.assign("an assignment at last", 1, directory(1, 1))
    story.register("told anew with a directory", 1, directory(1, 1))
    story.heartbeat("with a directory", 1, cordoned_log_dirs=[directory(1, 1)])
    return story.outcomes


@pytest.mark.parametrize(("story", "level"), [(directories, None), (cordoned, None), (below, "3.6-IV2")])
def test_directories_develop_as_in_kafka(on_both: Any, story: Any, level: str | None) -> None:
    theirs, ours = on_both(story, level)
    assert list(theirs) == list(ours)
    for name, result in theirs.items():
        assert ours[name] == result, name
