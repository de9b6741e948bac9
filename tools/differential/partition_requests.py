"""ISR changes, elections and reassignments."""

from mockraft.conformance.records import PartitionState
from mockraft.conformance.requests import Tree

from .drawn import Draw, drawn


@drawn(150, "AlterPartition")
def alter_partition(draw: Draw) -> Tree | None:
    """Propose ISRs of partitions as their leader."""
    led: dict[int, list[tuple[str, int, PartitionState]]] = {}
    for topic, partitions in draw.model.topics.items():
        for number, partition in partitions.items():
            led.setdefault(partition.leader, []).append((topic, number, partition))
    led.pop(-1, None)
    if not led:
        return None
    leader = draw.rng.choice(sorted(led))
    chosen: dict[str, list[Tree]] = {}
    for topic, number, partition in draw.rng.sample(led[leader], min(len(led[leader]), draw.one(1, 1, 2, 4))):
        chosen.setdefault(topic, []).append(_proposal(draw, topic, number, partition))
    topics = [{"topicId": f"$topic:{topic}", "partitions": of_topic} for topic, of_topic in chosen.items()]
    return {"brokerId": leader, "brokerEpoch": f"$epoch:{leader}", "topics": topics}


def _proposal(draw: Draw, topic: str, number: int, partition: PartitionState) -> Tree:
    active = [
        replica
        for replica in partition.replicas
        if (broker := draw.model.brokers.get(replica)) and not broker.fenced and not broker.in_controlled_shutdown
    ]
    if draw.maybe(0.65):
        isr = draw.rng.sample(active, len(active))
    else:
        others = [replica for replica in partition.replicas if replica != partition.leader]
        isr = [partition.leader, *draw.rng.sample(others, draw.rng.randint(0, len(others)))]
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


@drawn(45, "ElectLeaders")
def elect(draw: Draw) -> Tree | None:
    """Elect leaders, preferred or unclean, of some partitions or all."""
    places = draw.some_partitions()
    if not places:
        return None
    request = [{"topic": topic, "partitions": numbers} for topic, numbers in places.items()]
    return {
        "electionType": draw.one(0, 1),
        "topicPartitions": None if draw.maybe(0.2) else request,
        "timeoutMs": 60_000,
    }


@drawn(75, "AlterPartitionReassignments")
def reassign(draw: Draw) -> Tree | None:
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
    return {"timeoutMs": 60_000, "allowReplicationFactorChange": draw.maybe(0.8), "topics": topics}


@drawn(8, "ListPartitionReassignments")
def list_reassignments(draw: Draw) -> Tree:
    """Ask for the reassignments of some partitions, or of all."""
    places = [{"name": topic, "partitionIndexes": numbers} for topic, numbers in draw.some_partitions().items()]
    return {"timeoutMs": 60_000, "topics": None if draw.maybe(0.5) else places}
