"""Bodies for every message and version: random JSON trees made from the specs, and Kafka's own bytes of them."""

import json
import sys
from random import Random
from typing import Any, NamedTuple

import pytest
from mockraft.kafka.message_oracle import Answer, ask_java
from mockraft.vectors.bodies import MANNERS, NOT_GENERATED, random_body, random_struct, value_of
from mockraft.wire import messages, records
from mockraft.wire.json_form import from_json
from mockraft.wire.schema_files import FieldSpec, StructSpec, names, schema
from mockraft.wire.schema_reading import UNKNOWN_TAGS

Tree = dict[str, Any]


def all_pairs() -> list[tuple[str, int]]:
    """Every (message, version) that Kafka sends or stores: 678."""
    valid = [(name, schema(name).valid) for name in names() if name not in NOT_GENERATED]
    return [(name, version) for name, versions in valid for version in range(versions.low, versions.high + 1)]


def generated_class(name: str) -> Any:
    return records.by_name(name) if name in records.NAMES else messages.by_name(name)


def foreign_body(name: str, version: int, rng: Random) -> Tree | None:
    """A body that also says one plain field its version lacks; None where the version lacks none.

    No structs: Kafka's converter refuses to read one at a version that has none, whether it may be ignored or not.
    """
    spec = schema(name)
    absent = [f for f in spec.root.fields if not f.versions.covers(version) and f.struct is None]
    if not absent:
        return None
    field = rng.choice(absent)
    tree = random_struct(spec.root, version, rng, "mixed")
    home = max(field.versions.low, spec.valid.low)
    tree[field.json_name] = value_of(field, min(home, field.versions.high), rng, "plain")
    return tree


def message_tree(message: Any, version: int) -> Tree:
    """Convert a generated object to a tree of `schema_reading`: tagged fields only if they were written."""
    spec = schema(type(message).__name__)

    def struct_tree(struct: StructSpec, value: Any) -> Tree:
        plain = getattr(sys.modules[type(value).__module__], struct.name)()
        tree = {f.json_name: field_tree(f, getattr(value, f.attribute)) for f in struct.untagged(version)}
        for field in struct.tagged(version).values():
            content = getattr(value, field.attribute)
            if content != getattr(plain, field.attribute):
                tree[field.json_name] = field_tree(field, content)
        if value.unknown_tagged_fields:
            tree[UNKNOWN_TAGS] = list(value.unknown_tagged_fields)
        return tree

    def field_tree(field: FieldSpec, value: Any) -> Any:
        if field.struct is None or value is None:
            return value
        return [struct_tree(field.struct, v) for v in value] if field.is_array else struct_tree(field.struct, value)

    return struct_tree(spec.root, message)


class KafkaBody(NamedTuple):
    """A random body as given to Kafka, with Kafka's bytes and JSON for it."""

    name: str
    version: int
    given: Tree
    answer: Answer


@pytest.fixture(scope="session")
def kafka_bodies() -> list[KafkaBody]:
    """Five bodies for each of the 678 pairs, in different manners, written by Kafka's own classes."""
    rng = Random(431)
    given = [(n, v, random_body(n, v, rng, manner)) for n, v in all_pairs() for manner in MANNERS]
    answers = ask_java([("json", name, version, json.dumps(tree)) for name, version, tree in given])
    return [KafkaBody(*body, answer) for body, answer in zip(given, answers, strict=True)]


@pytest.fixture(scope="session")
def pairs() -> list[tuple[str, int]]:
    return all_pairs()


@pytest.fixture(scope="session")
def sample_bytes(pairs: list[tuple[str, int]]) -> dict[tuple[str, int], bytes]:
    """One mixed body as bytes for each pair, without Java: written by the codec from a random tree."""
    rng = Random(7)

    def body(name: str, version: int) -> bytes:
        message = from_json(generated_class(name), random_body(name, version, rng, "mixed"), version)
        data: bytes = message.write(version)
        return data

    return {pair: body(*pair) for pair in pairs}
