"""Bodies as text: the same as Kafka's JSON form by way of a tree, for every message, version and kind of value."""

import json
from random import Random
from typing import Any

import pytest
from mockraft.codegen.every_release import every_release
from mockraft.spark_replay.decoding.json_text import json_text, of_float
from mockraft.vectors.bodies import MANNERS, random_body
from mockraft.wire import messages
from mockraft.wire.json_form import from_json, to_json
from mockraft.wire.message import Message
from mockraft.wire.overlay import using
from mockraft.wire.redaction.messages import masked


def by_way_of_a_tree(message: Message, version: int) -> str:
    return json.dumps(to_json(message, version), separators=(",", ":"), ensure_ascii=False)


@pytest.mark.parametrize("part", range(4))
def test_text_of_every_message_in_every_version_is_that_of_its_tree(part: int) -> None:
    rng = Random(part)
    every, compared = every_release(), 0
    with using(every):
        for name in sorted({*every.requests.values(), *every.responses.values()})[part::4]:
            cls: Any = every.by_name(name)
            for version in range(cls.min_version, cls.max_version + 1):
                for manner in MANNERS:
                    data = from_json(cls, random_body(name, version, rng, manner), version).write(version)
                    for message in ((decoded := cls.read(data, version)), masked(decoded, every)):
                        assert json_text(message, version) == by_way_of_a_tree(message, version), (name, version)
                        compared += 1
    assert compared > 1000


def test_unknown_tags_come_last_in_every_struct() -> None:
    state = messages.fetch_request.ReplicaState(replica_id=1, unknown_tagged_fields=[(9, b"inner")])
    request = messages.FetchRequest(replica_state=state, unknown_tagged_fields=[(7, b"seven"), (300, b"")])
    message = messages.FetchRequest.read(request.write(17), 17)
    assert json_text(message, 17) == by_way_of_a_tree(message, 17)
    unknown = '"_unknownTaggedFields":[{"tag":7,"data":"c2V2ZW4="},{"tag":300,"data":""}]'
    assert json_text(message, 17).endswith(f",{unknown}}}")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf"), -0.0, 1e300, 0.1])
def test_floats_are_written_as_kafka_does(value: float) -> None:
    ops = [messages.alter_client_quotas_request.OpData(key="rate", value=value)]
    entries = [messages.alter_client_quotas_request.EntryData(ops=ops)]
    message = messages.AlterClientQuotasRequest(entries=entries)
    assert of_float(value) in json_text(message, 1)
    assert json_text(message, 1) == by_way_of_a_tree(message, 1)
