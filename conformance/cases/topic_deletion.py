"""DeleteTopics, by name and by id."""

from __future__ import annotations

from collections.abc import Callable

from mockraft.conformance.case import Rank, case, cases
from mockraft.conformance.cases.topics import create
from mockraft.conformance.expectation import InAnyOrder, expect
from mockraft.conformance.log import METADATA_TOPIC_ID
from mockraft.conformance.records import record
from mockraft.conformance.requests import Tree
from mockraft.conformance.world import TIMEOUT_MS, Topic, World
from mockraft.wire import error_codes as codes
from mockraft.wire.topic_names import CLUSTER_METADATA

TEST = "ControllerApisTest"
NO_ID = "AAAAAAAAAAAAAAAAAAAAAA"


async def delete(world: World, *topics: Tree, answer: list[Tree]) -> None:
    request = {"topics": list(topics), "timeoutMs": TIMEOUT_MS}
    await world.send("DeleteTopics", request, answer={"responses": InAnyOrder(answer)})


def by_id(topic_id: str) -> Tree:
    return {"name": None, "topicId": topic_id}


KINDS: list[tuple[str, str, Callable[[Topic], Tree]]] = [
    ("name", "Name", lambda topic: {"name": topic.name}),
    ("id", "Id", lambda topic: by_id(topic.id)),
]


@cases("a topic is deleted by {} with one record", f"{TEST}.testDeleteTopicsBy{{1}}", KINDS)
async def topic_is_deleted_with_one_record(world: World, _test: str, named: Callable[[Topic], Tree]) -> None:
    topic, _ = await world.replicated(1)
    await delete(world, named(topic), answer=[{"name": topic.name, "topicId": topic.id, "errorCode": 0}])
    await world.wrote(record("RemoveTopic", topicId=topic.id))


@case("a topic that was deleted may be created again under a new id", "ReplicationControlManagerTest.testDeleteTopics")
async def topic_that_was_deleted_may_be_created_again_under_new_id(world: World) -> None:
    first, a = await world.replicated(1)
    await delete(world, {"name": first.name}, answer=[{"errorCode": 0}])
    second = await world.topic([a])
    expect("whether the id is another", True, second.id != first.id)


@case("a deleted topic's configs are gone", "ReplicationControlManagerTest.testDeleteTopics")
async def deleted_topics_configs_are_gone(world: World) -> None:
    topic, a = await world.replicated(1, flush_ms="4")
    await delete(world, {"name": topic.name}, answer=[{"errorCode": 0}])
    response = await create(world, world.creatable("t", [a]), answer=[{"errorCode": 0}])
    (flush,) = [each for each in response["topics"][0]["configs"] if each["name"] == "flush.ms"]
    expect("flush.ms", {"configSource": 5}, flush)


@case("an unknown name is refused", f"{TEST}.testDeleteTopicsByName")
async def unknown_name_is_refused(world: World) -> None:
    name = world.name("none")
    await delete(world, {"name": name}, answer=[{"name": name, "errorCode": codes.UNKNOWN_TOPIC_OR_PARTITION}])
    await world.wrote()


@case("an unknown id is refused", f"{TEST}.testDeleteTopicsById")
async def unknown_id_is_refused(world: World) -> None:
    topic_id = world.uuid()
    answer = [{"name": None, "topicId": topic_id, "errorCode": codes.UNKNOWN_TOPIC_ID}]
    await delete(world, by_id(topic_id), answer=answer)


REFUSALS: list[tuple[str, Callable[[Topic], list[Tree]], str]] = [
    ("neither name nor id is", lambda topic: [by_id(NO_ID)], "Neither topic name nor id were specified."),
    ("both name and id are", lambda topic: [by_id(topic.id) | {"name": topic.name}], "You may not specify both topic name and topic id."),
    ("a name given twice is", lambda topic: [{"name": topic.name}] * 2, "Duplicate topic name."),
    ("an id given twice is", lambda topic: [by_id(topic.id)] * 2, "Duplicate topic id."),
]  # fmt: skip


@cases("{} refused", f"{TEST}.testInvalidDeleteTopicsRequest", REFUSALS)
async def invalid_deletion_is_refused(world: World, named: Callable[[Topic], list[Tree]], message: str) -> None:
    topic, _ = await world.replicated(1)
    topics = named(topic)
    duplicate = topics[0] if len(topics) == 2 else {}  # it is named once in the response
    await delete(world, *topics, answer=[{**duplicate, "errorCode": codes.INVALID_REQUEST, "errorMessage": message}])
    await world.wrote()


@case("a topic given by name and by id is refused", f"{TEST}.testInvalidDeleteTopicsRequest", Rank.SHOULD)
async def topic_given_by_name_and_by_id_is_refused(world: World) -> None:
    topic = await world.topic([await world.broker()])
    message = "The provided topic name maps to an ID that was already supplied."
    answer = [{"errorCode": codes.INVALID_REQUEST, "errorMessage": message}]
    await delete(world, {"name": topic.name}, by_id(topic.id), answer=answer)
    await world.wrote()


@case("good and bad names are told apart", f"{TEST}.testDeleteTopicsByName")
async def bad_name_does_not_affect_good_ones(world: World) -> None:
    topic = await world.topic([await world.broker()])
    none = world.name("none")
    answer = [{"name": topic.name, "errorCode": 0}, {"name": none, "errorCode": codes.UNKNOWN_TOPIC_OR_PARTITION}]
    await delete(world, {"name": none}, {"name": topic.name}, answer=answer)
    await world.wrote(record("RemoveTopic", topicId=topic.id))


@case("old versions delete by name", "DeleteTopicsRequest.json", Rank.SHOULD)
async def old_versions_delete_by_name(world: World) -> None:
    a = await world.broker()
    for version in (1, 5):
        topic = await world.topic([a], name=f"v{version}")
        request = {"topicNames": [topic.name], "timeoutMs": TIMEOUT_MS}
        answer = {"responses": [{"name": topic.name, "errorCode": 0}]}
        await world.send("DeleteTopics", request, answer=answer, version=version)
        await world.wrote(record("RemoveTopic", topicId=topic.id))


@case("topics that were to be deleted in no time are refused", "QuorumController.deleteTopics", Rank.SHOULD)
async def topics_that_were_to_be_deleted_in_no_time_are_refused(world: World) -> None:
    topic = await world.topic([await world.broker()])
    request = {"topics": [{"name": topic.name}], "timeoutMs": 0}
    answer = {"responses": [{"errorCode": codes.REQUEST_TIMED_OUT}]}
    await world.send("DeleteTopics", request, answer=answer)
    await world.wrote()


@case("the metadata topic cannot be deleted", "ControllerApis.deleteTopics")
async def metadata_topic_cannot_be_deleted(world: World) -> None:
    await delete(world, {"name": CLUSTER_METADATA}, answer=[{"errorCode": codes.UNKNOWN_TOPIC_OR_PARTITION}])
    await delete(world, by_id(METADATA_TOPIC_ID), answer=[{"errorCode": codes.UNKNOWN_TOPIC_ID}])
