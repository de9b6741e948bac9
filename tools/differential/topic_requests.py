"""Topics created, extended and deleted."""

from mockraft.conformance.requests import Tree

from .drawn import TOPICS, Draw, drawn
from .setting_requests import TOPIC_VALUES
from .steps import FuzzStep

ODD_NAMES = ("", ".", "..", "a b", "x" * 249, "x" * 250, "__cluster_metadata", "__consumer_offsets", "t/1", "ä")


@drawn(55, "CreateTopics")
def create_topics(draw: Draw) -> Tree:
    """Create topics with the given replicas, the only kind that is kept."""
    topics = []
    for _ in range(draw.one(1, 1, 1, 2, 3)):
        name = draw.rng.choice(TOPICS) if draw.maybe(0.9) else draw.rng.choice(ODD_NAMES)
        size = draw.one(1, 2, 2, 3)
        indexes = range(draw.one(1, 2, 3))
        assignments = [{"partitionIndex": index, "brokerIds": draw.some_brokers(size, size)} for index in indexes]
        placed = {"numPartitions": -1, "replicationFactor": -1, "assignments": assignments}
        topics.append({"name": name, **placed, "configs": _configs(draw)})
    return {"topics": topics, "timeoutMs": 60_000, "validateOnly": draw.maybe(0.1)}


@drawn(15, "CreateTopics")
def place_topics(draw: Draw) -> Tree:
    """Create a topic whose replicas the controller places; delete it again at once."""
    name = draw.one("placed", "placed.too")
    topic = {
        "name": name,
        "numPartitions": draw.one(1, 2, 5, -1, 0, -2),
        "replicationFactor": draw.one(1, 2, 3, -1, 0, -2, 7),
        "assignments": [],
        "configs": _configs(draw),
    }
    return {"topics": [topic], "timeoutMs": 60_000, "validateOnly": draw.maybe(0.1)}


@drawn(14, "DeleteTopics")
def delete_topics(draw: Draw) -> Tree:
    """Delete topics by name or id."""
    names = {draw.topic() for _ in range(draw.one(1, 1, 2))}
    topics: list[Tree] = [
        {"name": None, "topicId": f"$topic:{name}"} if draw.maybe(0.5) else {"name": name, "topicId": "A" * 22}
        for name in sorted(names)
    ]
    return {"topics": topics, "topicNames": sorted(names), "timeoutMs": 60_000}


@drawn(14, "CreatePartitions")
def create_partitions(draw: Draw) -> Tree:
    """Add partitions with the given replicas."""
    topics = []
    for name in sorted({draw.topic() for _ in range(draw.one(1, 1, 2))}):
        partitions = draw.model.topics.get(name, {})
        more = draw.one(1, 1, 2, 0, -1) if len(partitions) < 6 else 0
        size = len(partitions[0].replicas) if 0 in partitions else 1
        assignments = [{"brokerIds": draw.some_brokers(size, size)} for _ in range(max(1, more))]
        topics.append({"name": name, "count": len(partitions) + more, "assignments": assignments})
    return {"topics": topics, "timeoutMs": 60_000, "validateOnly": draw.maybe(0.1)}


@drawn(3, "CreatePartitions")
def place_partitions(draw: Draw) -> Tree | None:
    """Add partitions placed by the controller; delete the topic at once."""
    names = list(draw.model.topics)
    if not names:
        return None
    name = draw.rng.choice(names)
    topic = {"name": name, "count": len(draw.model.topics[name]) + draw.one(1, 3), "assignments": None}
    return {"topics": [topic], "timeoutMs": 60_000, "validateOnly": False}


def _configs(draw: Draw) -> list[Tree]:
    if draw.maybe(0.6):
        return []
    keys = draw.rng.sample(list(TOPIC_VALUES), draw.one(1, 1, 2))
    return [{"name": key, "value": draw.rng.choice(TOPIC_VALUES[key])} for key in keys]


def with_cleanup(step: FuzzStep) -> FuzzStep:
    """Compare by shape only what the controllers place at random, and delete it at once."""
    if step.api in {"CreateTopics", "CreatePartitions"}:
        names = [each["name"] for each in step.body["topics"] if not each["assignments"]]
        if names:
            topics = [{"name": name, "topicId": "A" * 22} for name in names]
            deletion = FuzzStep("DeleteTopics", 6, {"topics": topics, "timeoutMs": 60_000})
            step.is_chance, step.cleanup = True, [deletion]
    return step
