"""An expectation reports the first difference of a response, and ignores everything it does not name."""

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
