"""Entities of requests: in every list of every API that can refuse one of them, found by Kafka's specs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import partial
from operator import contains, eq
from typing import Any

from mockraft import Controller
from mockraft.kafka_api.journal.exchange import first_error
from mockraft.server.stubs.entities import ENTITIES, Listed, Refusal, Selection, Shape, shape_of
from mockraft.server.stubs.fields import message_from_tree
from mockraft.wire import api_keys, error_codes, messages
from mockraft.wire.json_form import Json
from mockraft.wire.messages.describe_topic_partitions_request import DescribeTopicPartitionsRequest, TopicRequest
from mockraft.wire.messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest
from mockraft.wire.uuids import text_of

from ...rows import each_row
from ...topics import ask

IDS = {"a": bytes(15) + b"\5", "b": bytes(15) + b"\6"}


def value(entity: str, field: str, name: str) -> Json:
    if ENTITIES[entity].is_number:
        return "ab".index(name) + 1
    return text_of(IDS[name]) if field in ("topic_id", "id") else name


def tree(shape: Shape, name: str = "a") -> Any:
    """Return a struct, named, with the elements a and b in each of its lists; or a value."""
    own: dict[str, Json] = {field: value(entity, field, name) for entity, field in shape.own}
    return own.get("", own | {each.asked: [tree(each.shape, "a"), tree(each.shape, "b")] for each in shape.lists})


def ways(shape: Shape, *way: Listed) -> Iterator[tuple[Listed, ...]]:
    """Yield the lists whose elements can be refused, each after those around it."""
    for each in shape.lists:
        if each.has_errors:
            yield from [(*way, each)] if each.shape.entities else []
            yield from ways(each.shape, *way, each)


def rows() -> dict[str, tuple[int, int, tuple[Listed, ...]]]:
    found = {}
    for key, api in api_keys.NAMES.items():
        cls = messages.request(key)
        for version in range(cls.min_version, cls.max_version + 1):
            for way in ways(shape_of(key, version)):
                found[f"{api} v{version} {'.'.join(each.asked for each in way)}"] = (key, version, way)
    return found


def topic_name(topic_id: bytes) -> str | None:
    return next((name for name, known in IDS.items() if known == topic_id), None)


@each_row(("key", "version", "way"), rows())
def test_one_entity_is_taken_out_of_the_request_and_refused(key: int, version: int, way: tuple[Listed, ...]) -> None:
    request = message_from_tree(messages.request(key), tree(shape_of(key, version)))
    kinds = {entity for each in way for entity, _ in each.shape.own} - {"group", "transactional_id"}
    kinds |= {entity for entity, _ in way[-1].shape.own[:1]}
    a, b = (
        Selection({each: partial(contains, (number, name, text_of(IDS[name]))) for each in kinds})
        for number, name in enumerate("ab", 1)
    )

    taken = b.of(request, version, topic_name)
    assert taken is not None
    taken.remove()
    assert (b.of(request, version, topic_name), a.of(request, version, topic_name) is None) == (None, False)

    response = messages.response(key)()
    taken.refuse(response, Refusal(error_codes.POLICY_VIOLATION, "not b"))
    read = messages.response(key).read(response.write(version), version)
    assert first_error(read) == error_codes.POLICY_VIOLATION


def test_the_error_of_the_only_topic_of_a_group_is_not_the_groups() -> None:
    asked = {"groups": [{"groupId": "g", "topics": [{"name": "t", "partitionIndexes": [0]}]}]}
    request = message_from_tree(messages.request(api_keys.OFFSET_FETCH), asked)
    taken = Selection({"topic": partial(eq, "t")}).of(request, 8, topic_name)
    assert taken is not None
    taken.remove()
    response: Any = messages.response(api_keys.OFFSET_FETCH)()
    taken.refuse(response, Refusal(error_codes.POLICY_VIOLATION, None))
    (group,) = response.groups
    assert group.error_code == error_codes.NONE
    assert [each.error_code for each in group.topics[0].partitions] == [error_codes.POLICY_VIOLATION]


@each_row(
    ("request", "version", "topics"),
    [
        (DescribeTopicPartitionsRequest(topics=[TopicRequest(name="b")]), 0, {"b": error_codes.POLICY_VIOLATION}),
        (UpdateFeaturesRequest(feature_updates=[FeatureUpdateKey(feature="b", max_version_level=1)]), 2, {}),
    ],
)
def test_a_request_of_which_nothing_is_left_is_not_one_for_everything(
    request: Any, version: int, topics: dict[str, int]
) -> None:
    selected: dict[str, Any] = {"topic" if topics else "feature": "b"}
    with Controller.sync(brokers=1) as controller:
        for name in "ab":
            controller.state.create_topic(name)
        api: Any = type(request).__name__.removesuffix("Request")
        controller.stub(api, **selected).inject_error("POLICY_VIOLATION")
        at_broker = request.api_key == api_keys.DESCRIBE_TOPIC_PARTITIONS
        where = controller.bootstrap_servers if at_broker else f"{controller.host}:{controller.port}"
        answered: Any = asyncio.run(ask(where, request, version))
    assert {each.name: each.error_code for each in getattr(answered, "topics", ())} == topics
    assert first_error(answered) == error_codes.POLICY_VIOLATION
