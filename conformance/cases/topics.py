"""CreateTopics and DeleteTopics."""

from __future__ import annotations

from mockraft.conformance.case import case
from mockraft.conformance.records import record
from mockraft.conformance.world import TIMEOUT_MS, World
from mockraft.wire.error_codes import TOPIC_ALREADY_EXISTS, UNKNOWN_TOPIC_OR_PARTITION

AREA = "topics"
TEST = "ReplicationControlManagerTest"


@case("a topic's records are the topic, then its partitions by index", AREA, f"{TEST}.testCreateTopics")
async def _(world: World) -> None:
    a, b = await world.brokers(2)
    asked = world.creatable("t", [a, b], [b, a])
    told = await world.ask(
        "CreateTopics", {"topics": [asked], "timeoutMs": TIMEOUT_MS}, answer={"topics": [{"errorCode": 0}]}
    )
    topic_id = told["topics"][0]["topicId"]
    await world.wrote(
        record("Topic", name=asked["name"], topicId=topic_id),
        record("Partition", topicId=topic_id, partitionId=0, replicas=[a.id, b.id], isr=[a.id, b.id], leader=a.id),
        record("Partition", topicId=topic_id, partitionId=1, replicas=[b.id, a.id], isr=[b.id, a.id], leader=b.id),
    )


@case("a topic that exists is refused", AREA, f"{TEST}.testCreateTopics")
async def _(world: World) -> None:
    a = await world.broker()
    topic = await world.topic([a])
    asked = world.creatable("t", [a])
    await world.ask(
        "CreateTopics",
        {"topics": [asked], "timeoutMs": TIMEOUT_MS},
        answer={
            "topics": [{"errorCode": TOPIC_ALREADY_EXISTS, "errorMessage": f"Topic '{topic.name}' already exists."}]
        },
    )
    await world.wrote()


@case("a topic that is deleted is one record", AREA, f"{TEST}.testDeleteTopics")
async def _(world: World) -> None:
    topic = await world.topic([await world.broker()])
    asked = {"topics": [{"name": topic.name}, {"name": world.name("none")}], "timeoutMs": TIMEOUT_MS}
    await world.ask("DeleteTopics", asked)
    await world.wrote(record("RemoveTopic", topicId=topic.id))
    await world.ask(
        "DeleteTopics",
        {"topics": [{"name": topic.name}], "timeoutMs": TIMEOUT_MS},
        answer={"responses": [{"name": topic.name, "errorCode": UNKNOWN_TOPIC_OR_PARTITION}]},
    )
