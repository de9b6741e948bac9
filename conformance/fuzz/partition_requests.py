"""ISR changes, elections and reassignments."""

from collections.abc import Callable
from typing import Any

from mockraft.conformance.fuzz.drawn import Draw
from mockraft.conformance.fuzz.model import PartitionState
from mockraft.conformance.fuzz.steps import Step


def alter_partition(draw: Draw) -> Step | None:
    """Propose ISRs of partitions as their leader."""
    led: dict[int, list[tuple[str, int, PartitionState]]] = {}
    for topic, partitions in draw.model.topics.items():
        for number, partition in partitions.items():
            led.setdefault(partition.leader, []).append((topic, number, partition))
    led.pop(-1, None)
    if not led:
        return None
    leader = draw.chance.choice(sorted(led))
    chosen: dict[str, list[dict[str, Any]]] = {}
    for topic, number, partition in draw.chance.sample(led[leader], min(len(led[leader]), draw.one(1, 1, 2, 4))):
        chosen.setdefault(topic, []).append(_proposal(draw, topic, number, partition))
    topics = [{"topicId": f"$topic:{topic}", "partitions": of_topic} for topic, of_topic in chosen.items()]
    body = {"brokerId": leader, "brokerEpoch": f"$epoch:{leader}", "topics": topics}
    return Step("AlterPartition", 0, body)


def _proposal(draw: Draw, topic: str, number: int, partition: PartitionState) -> dict[str, Any]:
    active = [
        replica
        for replica in partition.replicas
        if (broker := draw.model.brokers.get(replica)) and not broker.fenced and not broker.in_controlled_shutdown
    ]
    if draw.maybe(0.65):
        isr = draw.chance.sample(active, len(active))
    else:
        others = [replica for replica in partition.replicas if replica != partition.leader]
        isr = [partition.leader, *draw.chance.sample(others, draw.chance.randint(0, len(others)))]
    with_epochs = draw.maybe(0.5)
    return {
        "partitionIndex": number,
        "leaderEpoch": f"$leaderEpoch:{topic}:{number}",
        "newIsr": isr,
        "newIsrWithEpochs": [
            {"brokerId": member, "brokerEpoch": f"$epoch:{member}" if with_epochs else -1} for member in isr
        ],
        "leaderRecoveryState": 0 if draw.maybe(0.85) else partition.recovery,
        "partitionEpoch": f"$partitionEpoch:{topic}:{number}",
    }


def elect(draw: Draw) -> Step | None:
    """Elect leaders, preferred or unclean, of some partitions or all."""
    places = draw.some_partitions()
    if not places:
        return None
    request = [{"topic": topic, "partitions": numbers} for topic, numbers in places.items()]
    body = {
        "electionType": draw.one(0, 1),
        "topicPartitions": None if draw.maybe(0.2) else request,
        "timeoutMs": 60_000,
    }
    return Step("ElectLeaders", 0, body)


def reassign(draw: Draw) -> Step | None:
    """Reassign partitions, or cancel reassignments."""
    places = draw.some_partitions()
    if not places:
        return None
    topics = []
    for topic, numbers in places.items():
        partitions = []
        for number in numbers:
            partition = draw.model.topics[topic][number]
            target = None
            if not partition.is_reassigning or draw.maybe(0.5):
                target = draw.one(draw.some_brokers(), list(partition.replicas), list(reversed(partition.replicas)),
                                  partition.replicas[:1], [*partition.replicas[1:], draw.broker_id()])  # fmt: skip
            partitions.append({"partitionIndex": number, "replicas": target})
        topics.append({"name": topic, "partitions": partitions})
    body = {"timeoutMs": 60_000, "allowReplicationFactorChange": draw.maybe(0.8), "topics": topics}
    return Step("AlterPartitionReassignments", 0, body)


def list_reassignments(draw: Draw) -> Step:
    """List reassignments."""
    places = [{"name": topic, "partitionIndexes": numbers} for topic, numbers in draw.some_partitions().items()]
    return Step("ListPartitionReassignments", 0, {"timeoutMs": 60_000, "topics": None if draw.maybe(0.5) else places})


DRAWS: list[tuple[int, str, Callable[[Draw], Step | None]]] = [
    (150, "AlterPartition", alter_partition),
    (45, "ElectLeaders", elect),
    (75, "AlterPartitionReassignments", reassign),
    (8, "ListPartitionReassignments", list_reassignments),
]
