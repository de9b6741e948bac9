"""Comparison with Kafka's own generated classes: bytes and JSON of every message."""

import json
from random import Random
from typing import Any

import pytest
from mockraft.codegen.every_release import every_release
from mockraft.kafka.message_oracle import ask_java, without_records
from mockraft.releases import SUPPORTED, release
from mockraft.vectors.bodies import MANNERS, NOT_GENERATED, random_struct
from mockraft.vectors.making import scratched
from mockraft.wire import schema_reading
from mockraft.wire.errors import WireError
from mockraft.wire.json_form import from_json, to_json
from mockraft.wire.message import Message
from mockraft.wire.schema_files import Schema, load, parse, schema

from ..budgets import budget
from ..rows import each_row
from .conftest import foreign_body, generated_class, message_tree

pytestmark = pytest.mark.real_kafka

CHANGED_IN_EARLY_ACCESS = {("ConsumerGroupDescribeResponse", 0), ("ReadShareGroupStateSummaryResponse", 0)}
"""Messages and versions that have other bytes in newer releases (see `every_release`)."""

RENAMED_FIELDS = {
    "ListClientMetricsResourcesResponse",
    "PartitionChangeRecord",
    "PartitionRecord",
    "StreamsGroupHeartbeatResponse",
    "TxnOffsetCommitRequest",
    "VoteRequest",
}
"""Messages with the same bytes in every release, whose fields newer releases call otherwise."""


def test_there_are_678_messages_and_versions(pairs: Any) -> None:
    assert len(pairs) == 678
    assert len({name for name, _ in pairs}) == 222


def test_kafka_takes_every_random_body(kafka_bodies: Any, pairs: Any) -> None:
    assert [(b.name, b.version, b.answer.error) for b in kafka_bodies if b.answer.error] == []
    assert {(b.name, b.version) for b in kafka_bodies} == set(pairs)


def test_reads_kafkas_bytes_and_writes_them_again(kafka_bodies: Any) -> None:
    for body in kafka_bodies:
        message = generated_class(body.name).read(body.answer.data, body.version)
        assert message.write(body.version) == body.answer.data, (body.name, body.version)


def test_json_is_kafkas_json(kafka_bodies: Any) -> None:
    for body in kafka_bodies:
        message = generated_class(body.name).read(body.answer.data, body.version)
        assert without_records(to_json(message, body.version)) == body.answer.tree, (body.name, body.version)


def test_json_given_to_kafka_gives_the_same_bytes_here(kafka_bodies: Any) -> None:
    for body in kafka_bodies:
        message = from_json(generated_class(body.name), body.given, body.version)
        assert message.write(body.version) == body.answer.data, (body.name, body.version)


def test_reading_by_schemas_reads_the_same_and_writes_the_same(kafka_bodies: Any) -> None:
    for body in kafka_bodies:
        tree = schema_reading.read(body.name, body.version, body.answer.data)
        message = generated_class(body.name).read(body.answer.data, body.version)
        assert message_tree(message, body.version) == tree, (body.name, body.version)
        assert schema_reading.write(body.name, body.version, tree) == body.answer.data, (body.name, body.version)


def test_unknown_tagged_fields_survive_as_they_do_in_kafka(kafka_bodies: Any) -> None:
    flexible = [b for b in kafka_bodies if schema(b.name).flexible.covers(b.version)]
    chosen = [b for index, b in enumerate(flexible) if index % 5 in (1, 3)]
    questions = [("tags", body.name, body.version, json.dumps(body.given)) for body in chosen]
    for (_, name, version, _), answer in zip(questions, ask_java(questions), strict=True):
        assert answer.error == ""
        message = generated_class(name).read(answer.data, version)
        assert message.unknown_tagged_fields
        assert message.write(version) == answer.data, (name, version)
        again = from_json(generated_class(name), to_json(message, version), version)
        assert again.write(version) == answer.data, (name, version)
        tree = schema_reading.read(name, version, answer.data)
        assert schema_reading.write(name, version, tree) == answer.data, (name, version)


def test_a_field_of_another_version_is_dropped_or_refused_as_in_kafka(pairs: Any) -> None:
    rng = Random(99)
    bodies = [(n, v, tree) for n, v in pairs for _ in range(4) if (tree := foreign_body(n, v, rng)) is not None]
    answers = ask_java([("json", name, version, json.dumps(tree)) for name, version, tree in bodies])
    refusals = 0
    for (name, version, tree), answer in zip(bodies, answers, strict=True):
        message = from_json(generated_class(name), tree, version)
        if "UnsupportedVersionException" in answer.error:
            refusals += 1
            with pytest.raises(WireError):
                message.write(version)
            with pytest.raises(WireError):
                to_json(message, version)
        else:
            assert answer.error == "", (name, version)
            assert message.write(version) == answer.data, (name, version)
    assert refusals > 100
    assert len(bodies) - refusals > 100


def test_records_become_their_size_as_in_kafkas_request_log(kafka_bodies: Any) -> None:
    bodies = [b for b in kafka_bodies if '"records"' in json.dumps(b.given)]
    assert {b.name for b in bodies} == {"FetchResponse", "ProduceRequest", "ShareFetchResponse"}
    answers = ask_java([("log", b.name, b.version, b.answer.data.hex()) for b in bodies])
    for body, answer in zip(bodies, answers, strict=True):
        message = generated_class(body.name).read(body.answer.data, body.version)
        assert to_json(message, body.version, records_as_size=True) == answer.tree


def test_refuses_bytes_that_kafka_refuses(sample_bytes: Any) -> None:
    rng = Random(77)
    questions = [(n, v, scratched(data, rng)) for (n, v), data in sample_bytes.items() if data for _ in range(15)]
    answers = ask_java([("read", name, version, data.hex()) for name, version, data in questions])
    refused = [question for question, answer in zip(questions, answers, strict=True) if answer.error]
    for name, version, data in refused:
        with pytest.raises(WireError):
            generated_class(name).read(data, version)
    assert len(questions) // 4 < len(refused) < len(questions)


@each_row("kafka_version", SUPPORTED)
def test_messages_of_every_release_are_those_of_its_own_classes(kafka_version: str) -> None:
    """Bodies made from the release's own specs, read as captures are: in all versions that it sends or stores."""
    rng = Random(38)
    manners = MANNERS[-budget(1, len(MANNERS)) :]
    specs = [parse(load(text)) for text in release(kafka_version).specs.values()]
    bodies = [
        (spec, version, random_struct(spec.root, version, rng, manner))
        for spec in specs
        if spec.name not in NOT_GENERATED
        for version in range(spec.valid.low, spec.valid.high + 1)
        for manner in manners
    ]
    questions = [("json", spec.name, version, json.dumps(tree)) for spec, version, tree in bodies]
    changed = set()
    for (spec, version, tree), answer in zip(bodies, ask_java(questions, kafka_version), strict=True):
        assert answer.error == "", (spec.name, version)
        cls: Any = class_for_captures(spec)
        if (spec.name, version) in CHANGED_IN_EARLY_ACCESS:
            continue
        message = cls.read(answer.data, version)
        assert message.write(version) == answer.data, (spec.name, version)
        if without_records(to_json(message, version)) != answer.tree:
            changed.add(spec.name)
        else:
            assert from_json(cls, tree, version).write(version) == answer.data, (spec.name, version)
    assert changed <= RENAMED_FIELDS


def class_for_captures(spec: Schema) -> type[Message]:
    """Return the class that reads a release's message: by its number, as ListClientMetricsResources was renamed."""
    union = every_release()
    by_number = {"request": union.request, "response": union.response}.get(spec.kind)
    return by_number(spec.api_key) if by_number else union.by_name(spec.name)
