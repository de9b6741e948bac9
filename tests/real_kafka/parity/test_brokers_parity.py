"""The same life of brokers and partitions on Kafka's controller and on ours: every answer and every record.

What happens is drawn from a seed, by what each controller's own records say; both must come to say the same.
"""

import json
import random
from collections.abc import Callable, Iterator
from itertools import groupby
from typing import Any

import pytest
from mockraft.releases import release
from mockraft.server.controller.image import Image, Partition
from mockraft.wire.json_form import to_json
from mockraft.wire.messages.alter_partition_request import AlterPartitionRequest
from mockraft.wire.messages.alter_partition_request import BrokerState as IsrMember
from mockraft.wire.messages.alter_partition_request import PartitionData as IsrPartition
from mockraft.wire.messages.alter_partition_request import TopicData as IsrTopic
from mockraft.wire.messages.assign_replicas_to_dirs_request import AssignReplicasToDirsRequest, DirectoryData
from mockraft.wire.messages.assign_replicas_to_dirs_request import PartitionData as PlacedPartition
from mockraft.wire.messages.assign_replicas_to_dirs_request import TopicData as PlacedTopic
from mockraft.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from mockraft.wire.messages.broker_registration_request import BrokerRegistrationRequest, Feature, Listener
from mockraft.wire.messages.controller_registration_request import ControllerRegistrationRequest
from mockraft.wire.messages.create_topics_request import CreateTopicsRequest
from mockraft.wire.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from mockraft.wire.messages.unregister_broker_request import UnregisterBrokerRequest
from mockraft.wire.records.partition_change_record import PartitionChangeRecord

from ...configs import SET, TOPIC, change_configs
from ...topics import assigned

pytestmark = pytest.mark.real_kafka

STEPS = 220
BROKERS = 4
TOPICS = 5
FAR_OFFSET = 1 << 40
UNKNOWN_DIRECTORY = b"\x77" * 16
SPECIAL_DIRECTORIES = [bytes(15) + bytes([number]) for number in (0, 1, 2)]


def directory(broker_id: int, number: int) -> bytes:
    """Directory 2 comes before 1 in Java's signed order."""
    return bytes([0x81 if number == 2 else 0x10 + number, *[broker_id] * 15])


class Life:
    """One seeded course of events on one controller, guided by the image of its own records."""

    def __init__(self, side: Any, seed: int) -> None:
        self.side = side
        self.rng = random.Random(seed)
        self.image = Image()
        self.incarnations = dict.fromkeys(range(1, BROKERS + 1), 1)
        self.names: dict[bytes, str] = {}
        self.events: list[tuple[int, Callable[[], tuple[Any, int] | None]]] = [
            (12, self.register),
            (40, self.heartbeat),
            (2, self.unregister),
            (12, self.create_topic),
            (1, self.delete_topic),
            (6, self.set_config),
            (35, self.propose_isr),
            (25, self.assign_directories),
            (1, self.register_controller),
        ]
        self._records()

    def steps(self) -> Iterator[Any]:
        """Each event with its answer and records, ids and epochs masked."""
        weights = [weight for weight, _ in self.events]
        for _ in range(STEPS):
            (event,) = self.rng.choices([event for _, event in self.events], weights)
            asked = event()
            if asked is not None:
                request, version = asked
                result = to_json(request, version)
                answer = to_json(self.side.ask(request, version), version)
                yield json.loads(self._masked(json.dumps([event.__name__, result, answer, self._records()])))

    def register(self) -> tuple[Any, int]:
        broker_id = self._broker_id()
        registered = self.image.cluster.brokers.get(broker_id)
        if self.rng.random() < 0.2:
            self.incarnations[broker_id] += 1
        dirs = [directory(broker_id, number) for number in range(1, self.rng.randint(1, 3) + 1)]
        if self.rng.random() < 0.1:
            dirs.append(self.rng.choice([dirs[0], bytes(15) + b"\x05", directory(self._broker_id(), 1)]))
        self.rng.shuffle(dirs)
        previous = self.rng.choice([-1, registered.broker_epoch if registered else -1])
        request = BrokerRegistrationRequest(
            broker_id=broker_id,
            cluster_id=self.side.cluster_id,
            incarnation_id=bytes([broker_id, self.incarnations[broker_id]]) * 8,
            listeners=[Listener(name="P", host="h", port=9092, security_protocol=self.rng.randint(0, 3))],
            features=[
                Feature(name=name, min_supported_version=low, max_supported_version=high)
                for name, (low, high) in release().feature_ranges().items()
                if self.rng.random() < 0.995
            ],
            rack=self.rng.choice([None, "r1"]),
            log_dirs=dirs,
            previous_broker_epoch=previous,
        )
        return request, self.rng.choice([2, 3, 4])

    def heartbeat(self) -> tuple[Any, int]:
        broker_id = self._broker_id()
        own = [directory(broker_id, number) for number in (1, 2, 3)]
        cordoned = self.rng.choice([None, [], self.rng.sample(own, self.rng.randint(0, 3))])
        request = BrokerHeartbeatRequest(
            broker_id=broker_id,
            broker_epoch=self._epoch(broker_id),
            current_metadata_offset=self.rng.choice([0, FAR_OFFSET, FAR_OFFSET, FAR_OFFSET]),
            want_fence=self.rng.random() < 0.15,
            want_shut_down=self.rng.random() < 0.15,
            offline_log_dirs=self.rng.sample(own, self.rng.choice([0, 0, 0, 0, 0, 1, 2])),
            cordoned_log_dirs=cordoned,
        )
        return request, 2 if cordoned is not None else self.rng.choice([1, 2])

    def unregister(self) -> tuple[Any, int]:
        return UnregisterBrokerRequest(broker_id=self._broker_id()), 0

    def create_topic(self) -> tuple[Any, int] | None:
        registered = sorted(self.image.cluster.brokers)
        if not registered:
            return None
        size = self.rng.randint(1, min(3, len(registered)))
        replicas = [self.rng.sample(registered, size) for _ in range(self.rng.randint(1, 3))]
        name = f"t{self.rng.randrange(TOPICS)}"
        topic = assigned(name, *replicas, min_insync_replicas=str(self.rng.randint(1, 3)))
        return CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 7

    def delete_topic(self) -> tuple[Any, int] | None:
        name = f"t{self.rng.randrange(TOPICS)}"
        topic = self.image.topics.by_name.get(name)
        if topic is not None and not all(partition.isr for partition in topic.partitions.values()):
            # Kafka's controller then breaks on the next failed directory: it forgets to drop such partitions' places.
            return None
        return DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=10_000), 6

    def set_config(self) -> tuple[Any, int]:
        key, value = self.rng.choice(
            [
                ("min.insync.replicas", "1"),
                ("min.insync.replicas", "2"),
                ("unclean.leader.election.enable", "true"),
                ("unclean.leader.election.enable", "false"),
            ]
        )
        return change_configs((TOPIC, f"t{self.rng.randrange(TOPICS)}", (SET, key, value))), 1

    def propose_isr(self) -> tuple[Any, int] | None:
        found = self._partition()
        if found is None:
            return None
        topic_id, partition_id, partition = found
        leader = partition.leader if partition.leader > 0 else self._broker_id()
        others = [replica for replica in partition.replicas if replica != leader]
        members = [leader, *self.rng.sample(others, self.rng.randint(0, len(others)))]
        if self.rng.random() < 0.1:
            members = self.rng.choice([members[1:], [*members, members[0]], [*members, 9], [*members, -1]])
        data = IsrPartition(
            partition_index=partition_id if self.rng.random() < 0.97 else 9,
            leader_epoch=partition.leader_epoch + self._error(),
            partition_epoch=partition.partition_epoch + self._error(),
            leader_recovery_state=self.rng.choice([0, 0, 0, partition.leader_recovery_state, 1]),
            new_isr_with_epochs=[
                IsrMember(broker_id=member, broker_epoch=self.rng.choice([-1, self._epoch(member)]))
                for member in members
            ],
        )
        sender = leader if self.rng.random() < 0.93 else self._broker_id()
        topic = IsrTopic(topic_id=topic_id if self.rng.random() < 0.97 else bytes(16), partitions=[data])
        topics = [topic] if self.rng.random() < 0.97 else []
        return AlterPartitionRequest(broker_id=sender, broker_epoch=self._epoch(sender), topics=topics), 3

    def assign_directories(self) -> tuple[Any, int] | None:
        found = self._partition()
        if found is None:
            return None
        topic_id, partition_id, partition = found
        broker_id = self.rng.choice([*partition.replicas, *partition.replicas, *partition.replicas, 1])
        own = [directory(broker_id, number) for number in (1, 2, 3)]
        chosen = self.rng.choice([*own, *own, *own, *SPECIAL_DIRECTORIES, UNKNOWN_DIRECTORY])
        indexes = [partition_id, *self.rng.choice([[], [], [0], [7]])]
        partitions = [PlacedPartition(partition_index=index) for index in dict.fromkeys(indexes)]
        topics = [PlacedTopic(topic_id=topic_id if self.rng.random() < 0.97 else b"\x55" * 16, partitions=partitions)]
        directories = [DirectoryData(id=chosen, topics=topics)]
        epoch = self._epoch(broker_id)
        return AssignReplicasToDirsRequest(broker_id=broker_id, broker_epoch=epoch, directories=directories), 0

    def register_controller(self) -> tuple[Any, int]:
        return ControllerRegistrationRequest(controller_id=3001, incarnation_id=b"\x09" * 16), 0

    def _broker_id(self) -> int:
        return self.rng.randint(1, BROKERS)

    def _error(self) -> int:
        return self.rng.choice([0] * 18 + [1, -1])

    def _epoch(self, broker_id: int) -> int:
        """The broker's epoch as its records have it, now and then another."""
        broker = self.image.cluster.brokers.get(broker_id)
        return 0 if broker is None or self.rng.random() < 0.03 else broker.broker_epoch

    def _partition(self) -> tuple[bytes, int, Partition] | None:
        topics = [self.image.topics.by_name[name] for name in sorted(self.image.topics.by_name)]
        if not topics:
            return None
        topic = self.rng.choice(topics)
        partition_id = self.rng.choice(sorted(topic.partitions))
        return topic.topic_id, partition_id, topic.partitions[partition_id]

    def _records(self) -> list[Any]:
        """Records since the last call, applied to the image. Concurrent partition changes have no fixed order."""
        shapes: list[Any] = []
        records = self.side.new_records()
        for is_change, group in groupby(records, lambda found: isinstance(found[0], PartitionChangeRecord)):
            result = [[type(r).__name__.lstrip("_"), v, to_json(r, v)] for r, v in group]
            shapes += (
                sorted(result, key=lambda shape: (self.names_of(shape), shape[2]["partitionId"]))
                if is_change
                else result
            )
        for record, _ in records:
            self.image.apply(record, 0)
            if hasattr(record, "name") and hasattr(record, "topic_id"):
                self.names[record.topic_id] = record.name
        return shapes

    def names_of(self, shape: Any) -> str:
        return self._masked(shape[2]["topicId"])

    def _masked(self, text: str) -> str:
        for number, (topic_id, name) in enumerate(self.names.items()):
            result: Any = to_json(DeleteTopicsRequest(topics=[DeleteTopicState(topic_id=topic_id)]), 6)
            text = text.replace(result["topics"][0]["topicId"], f"{name} number {number}")
        return text


def without_chance(tree: Any) -> Any:
    """Broker epochs are offsets, which time makes differ: only whether there is one is told. So with the cluster id."""
    if isinstance(tree, list):
        return [without_chance(part) for part in tree]
    if not isinstance(tree, dict):
        return tree
    masked = {key: without_chance(value) for key, value in tree.items() if key != "clusterId"}
    for key in ("brokerEpoch", "previousBrokerEpoch"):
        if masked.get(key, 0) > 0:
            masked[key] = "an epoch"
    return masked


@pytest.mark.parametrize(
    ("level", "seed"), [(None, 0), (None, 1), ("4.0-IV3", 2), ("3.7-IV4", 3), ("3.7-IV0", 4), ("3.5-IV2", 5)]
)
def test_a_life_of_brokers_is_the_same_on_both(on_both: Any, level: str | None, seed: int) -> None:
    theirs, ours = on_both(lambda side: [without_chance(step) for step in Life(side, seed).steps()], level)
    for number, (their_step, our_step) in enumerate(zip(theirs, ours, strict=True)):
        for what, our_part, their_part in zip(
            ("event", "request", "answer", "records"), our_step, their_step, strict=True
        ):
            assert our_part == their_part, f"{what} of step {number}: {their_step[:2]}"
