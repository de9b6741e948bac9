"""A request from a JSON tree, and the first difference of a response, of the named fields only."""

from typing import Any

import pytest
from mockraft.conformance.expectation import (
    ANYTHING,
    MISSING,
    NOT_EMPTY,
    InAnyOrder,
    NotAsExpectedError,
    Only,
    above,
    difference,
    either,
    expect,
    like,
)
from mockraft.conformance.requests import request
from mockraft.wire.errors import WireError

from ..rows import each_row


@each_row(
    ("expected", "got"),
    [
        ({"a": 1}, {"a": 1, "b": 2}),
        ({"a": [{"b": 1}]}, {"a": [{"b": 1, "c": 2}]}),
        (Only(a=1), {"a": 1}),
        ({"a": MISSING}, {"b": 1}),
        (InAnyOrder([1, 2, 2]), [2, 1, 2]),
        (InAnyOrder([{"a": 2}, {"a": 1}]), [{"a": 1, "b": 0}, {"a": 2}]),
        ({"a": ANYTHING, "b": NOT_EMPTY}, {"a": None, "b": [0]}),
        (above(3), 3.5),
        (like("a.*"), "a\nb"),
        (either(1, 2), 2),
        ({"a": either({"b": 1}, {"b": 2, "c": []})}, {"a": {"b": 2, "c": [], "d": 3}}),
        ((1, 2), [1, 2]),
    ],
)
def test_matching_values_have_no_difference(expected: Any, got: Any) -> None:
    assert difference(expected, got) is None


@each_row(
    ("expected", "got", "path"),
    [
        ({"a": 1}, {"a": 2}, "a"),
        ({"a": 1}, {}, "a"),
        ({"a": [{"b": 1}]}, {"a": [{"b": 2}]}, "a[0].b"),
        ({"a": [1]}, {"a": [1, 2]}, "a[1]"),
        ({"a": [1, 2]}, {"a": [1]}, "a[1]"),
        (Only(a=1), {"a": 1, "b": 2}, "b"),
        ({"a": MISSING}, {"a": None}, "a"),
        ({"a": InAnyOrder([1, 2])}, {"a": [1, 1]}, "a"),
        ({"a": InAnyOrder([1])}, {"a": [1, 1]}, "a"),
        ({"a": True}, {"a": 1}, "a"),
        ({"a": {}}, {"a": None}, "a"),
        ({"a": []}, {"a": None}, "a"),
        ({"a": above(3)}, {"a": 3}, "a"),
        ({"a": like("a")}, {"a": "ab"}, "a"),
        ({"a": either({"b": 1}, {"b": 2})}, {"a": {"b": 3}}, "a"),
    ],
)
def test_the_first_difference_has_its_path(expected: Any, got: Any, path: str) -> None:
    found = difference(expected, got)
    assert found is not None
    assert found.path == path


def test_a_difference_is_a_sentence() -> None:
    with pytest.raises(NotAsExpectedError, match=r"^the answer: a\[0\] should be <over 3>, is 2$"):
        expect("the answer", {"a": [above(3)]}, {"a": [2]})
    with pytest.raises(NotAsExpectedError, match=r"^the records: it should be \[\], is None$"):
        expect("the records", [], None)


def test_omitted_fields_have_kafkas_defaults() -> None:
    asked: Any = request("CreateTopics", {"topics": [{"name": "t", "configs": [{"name": "a"}]}]}, 7)
    assert (asked.timeout_ms, asked.validate_only) == (60_000, False)
    (topic,) = asked.topics
    assert (topic.name, topic.num_partitions, topic.assignments, topic.configs[0].value) == ("t", 0, [], "")


def test_structs_uuids_and_bytes_have_defaults_too() -> None:
    fetch: Any = request("FetchSnapshot", {"topics": [{"partitions": [{}]}]}, 1)
    assert fetch.topics[0].partitions[0].snapshot_id.epoch == 0
    registration: Any = request("BrokerRegistration", {}, 4)
    assert registration.incarnation_id == bytes(16)
    envelope: Any = request("Envelope", {}, 0)
    assert envelope.request_data == b""


def test_errors_name_the_field() -> None:
    with pytest.raises(WireError, match="numPartition"):
        request("CreateTopics", {"topics": [{"numPartition": 1}]}, 7)
