"""Round trips of random messages, found and shrunk by Hypothesis: bytes, JSON and the reading by schemas agree."""

import copy
import json
import pickle
from random import Random
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mockraft.vectors.bodies import random_body
from mockraft.wire import schema_reading
from mockraft.wire.json_form import from_json, to_json

from ..budgets import budget
from .conftest import generated_class

MANNERS = ("empty", "extreme", "plain", "mixed")
RELAXED = settings(
    max_examples=budget(40, 400), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


@RELAXED
@given(data=st.data())
def test_a_message_survives_bytes_json_and_the_schemas_reading(data: Any, pairs: Any) -> None:
    name, version = data.draw(st.sampled_from(pairs), "message")
    rng = data.draw(st.randoms(use_true_random=False), "body")
    cls = generated_class(name)
    tree = random_body(name, version, rng, data.draw(st.sampled_from(MANNERS), "manner"))

    message = from_json(cls, tree, version)
    written = message.write(version)
    assert cls.read(written, version) == message
    assert from_json(cls, json.loads(json.dumps(to_json(message, version))), version) == message
    assert schema_reading.write(name, version, schema_reading.read(name, version, written)) == written


def test_every_message_survives_in_every_version(pairs: Any) -> None:
    rng = Random(5)
    for name, version in pairs:
        cls = generated_class(name)
        bodies = (from_json(cls, random_body(name, version, rng, manner), version) for manner in MANNERS)
        for message in (cls(), *bodies):
            written = message.write(version)
            again = cls.read(written, version)
            assert again == message, (name, version)
            assert again.write(version) == written


def test_reading_in_the_middle_stops_where_the_message_ends(sample_bytes: Any) -> None:
    for (name, version), data in sample_bytes.items():
        message, end = generated_class(name).read_from(b"before" + data + b"after", version, 6)
        assert end == 6 + len(data)
        assert message == generated_class(name).read(data, version)


def test_messages_can_be_copied_and_pickled(sample_bytes: Any) -> None:
    for (name, version), data in sample_bytes.items():
        if version == generated_class(name).max_version:
            message = generated_class(name).read(data, version)
            assert copy.deepcopy(message) == copy.copy(message) == message
            assert pickle.loads(pickle.dumps(message)) == message
