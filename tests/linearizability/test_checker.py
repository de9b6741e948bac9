"""The checker on histories written by hand, linearizable and not, and on random ones that are linearizable."""

import math
from typing import Any

import pytest

from ..rows import each_row
from . import checker
from .checker import violation, violations
from .history import UNKNOWN, Operation, UnexpectedError
from .models import ABSENT, EXISTS, OK, ConfigList, Model, ProducerIds, TopicName

pytestmark = pytest.mark.one_python


def op(name: str, result: Any, called_at: float, returned_at: float, argument: Any = None) -> Operation:
    return Operation("k", name, argument, result, called_at, returned_at)


def create(result: str, called_at: float, returned_at: float) -> Operation:
    return op("create", result, called_at, returned_at)


def delete(result: str, called_at: float, returned_at: float) -> Operation:
    return op("delete", result, called_at, returned_at)


def put(value: str, called_at: float, returned_at: float, result: str = OK) -> Operation:
    return op("set", result, called_at, returned_at, value)


def append(value: str, called_at: float, returned_at: float, result: str = OK) -> Operation:
    return op("append", result, called_at, returned_at, value)


def read(called_at: float, returned_at: float, *values: str) -> Operation:
    return op("read", values, called_at, returned_at)


def allocate(result: Any, called_at: float, returned_at: float) -> Operation:
    return op("allocate", result, called_at, returned_at)


LINEARIZABLE: dict[str, tuple[Model, list[Operation]]] = {
    "nothing": (TopicName(), []),
    "create, refuse, delete, create": (
        TopicName(),
        [create("a", 0, 1), create(EXISTS, 2, 3), delete("a", 4, 5), delete(ABSENT, 6, 7), create("b", 8, 9)],
    ),
    "of two concurrent creations one is refused": (TopicName(), [create(EXISTS, 0, 3), create("a", 1, 2)]),
    "an unknown creation took effect": (TopicName(), [create(UNKNOWN, 0, 1), create(EXISTS, 2, 3), delete("a", 4, 5)]),
    "an unknown creation had no effect": (TopicName(), [create(UNKNOWN, 0, 1), create("a", 2, 3)]),
    "an unknown creation took effect late": (
        TopicName(),
        [create(UNKNOWN, 0, 1), delete(ABSENT, 2, 3), create(EXISTS, 4, 5)],
    ),
    "an unknown deletion took effect": (TopicName(), [create("a", 0, 1), delete(UNKNOWN, 2, 3), create("b", 4, 5)]),
    "concurrent reads see a write in turn": (
        ConfigList(),
        [put("1", 0, 1), put("2", 2, 9), read(3, 4, "1"), read(5, 6, "2")],
    ),
    "appends in the order of their times": (
        ConfigList(),
        [append("1", 0, 1), append("2", 2, 5), append("3", 3, 4), read(6, 7, "1", "3", "2")],
    ),
    "an unknown write is seen after a long time": (
        ConfigList(),
        [put("1", 0, 1, UNKNOWN), put("2", 2, 3), read(4, 5, "2"), read(6, 7, "1")],
    ),
    "an unknown write that nobody read": (
        ConfigList(),
        [put("1", 0, 1), append("2", 2, 3, UNKNOWN), read(4, 5, "1"), put("3", 6, 7), read(8, 9, "3")],
    ),
    "blocks with a gap of an unknown one": (
        ProducerIds(),
        [allocate(0, 0, 1), allocate(UNKNOWN, 2, 3), allocate(2000, 4, 5), allocate(3000, 4, 5)],
    ),
}

NOT_LINEARIZABLE: dict[str, tuple[Model, list[Operation]]] = {
    "two creations": (TopicName(), [create("a", 0, 1), create("b", 2, 3)]),
    "two concurrent creations": (TopicName(), [create("a", 0, 3), create("b", 1, 2)]),
    "an acknowledged creation is lost": (TopicName(), [create("a", 0, 1), delete(ABSENT, 2, 3)]),
    "an acknowledged deletion is lost": (TopicName(), [create("a", 0, 1), delete("a", 2, 3), create(EXISTS, 4, 5)]),
    "another topic is deleted": (TopicName(), [create("a", 0, 1), delete("b", 2, 3)]),
    "a refusal without a reason": (TopicName(), [create(EXISTS, 0, 1), create("a", 2, 3)]),
    "an unknown creation twice": (TopicName(), [create(UNKNOWN, 0, 1), delete("a", 2, 3), delete("b", 4, 5)]),
    "a stale read": (ConfigList(), [put("1", 0, 1), put("2", 2, 3), read(4, 5, "1")]),
    "reads that go back": (ConfigList(), [put("1", 0, 1), put("2", 2, 9), read(3, 4, "2"), read(5, 6, "1")]),
    "a lost append": (ConfigList(), [append("1", 0, 1), append("2", 2, 3), read(4, 5, "2")]),
    "appends out of the order of their times": (
        ConfigList(),
        [append("1", 0, 1), append("2", 2, 3), read(4, 5, "2", "1")],
    ),
    "a value that nobody wrote": (ConfigList(), [put("1", 0, 1), read(2, 3, "3")]),
    "an error that was not expected": (ConfigList(), [put("1", 0, 1, "UNKNOWN_SERVER_ERROR")]),
    "one block for two": (ProducerIds(), [allocate(0, 0, 3), allocate(0, 1, 2)]),
    "blocks that go back": (ProducerIds(), [allocate(1000, 0, 1), allocate(0, 2, 3)]),
    "a gap of more than the unknown ones": (
        ProducerIds(),
        [allocate(0, 0, 1), allocate(UNKNOWN, 2, 3), allocate(3000, 4, 5)],
    ),
}


@each_row(("model", "history"), LINEARIZABLE)
def test_accepts_linearizable_histories(model: Model, history: list[Operation]) -> None:
    assert violation(history, model) is None


@each_row(("model", "history"), NOT_LINEARIZABLE)
def test_refuses_other_histories(model: Model, history: list[Operation]) -> None:
    assert violation(history, model) is not None


def test_a_stale_observation_is_of_any_earlier_state_but_not_of_none() -> None:
    writes = [put("1", 0, 1), put("2", 2, 3)]
    stale = read(4, 5, "1")._replace(is_stale=True)
    assert violation([*writes, stale], ConfigList()) is None
    assert violation([*writes, stale._replace(result=("3",))], ConfigList()) is not None
    early = stale._replace(called_at=0, returned_at=1.5, result=("2",))
    assert violation([*writes, early], ConfigList()) is not None


def test_a_violation_names_the_key_the_state_and_what_is_impossible() -> None:
    history = [put("1", 0, 1)._replace(key="config a"), read(2, 3, "2")._replace(key="config a")]
    fine = create("a", 0, 1)._replace(key="topic a")
    (found,) = violations([fine, *history], {"config": ConfigList(), "topic": TopicName()})
    assert str(found).splitlines() == [
        "not linearizable: config a",
        "after",
        "  config a: set('1') -> 'ok', 0.0000 to 1.0000 s",
        "the state is ('1',); impossible next:",
        "  config a: read() -> ('2',), 2.0000 to 3.0000 s",
    ]


@each_row(
    ("model", "operation"),
    [
        (TopicName(), create("a", 0, 1)),
        (ConfigList(), put("1", 0, 1)),
        (ProducerIds(), Operation("producer-ids", "allocate", None, 0, 0, 1)),
    ],
)
def test_an_unexpected_error_is_never_a_result(model: Model, operation: Operation) -> None:
    assert violation([operation], model) is None
    assert violation([operation._replace(result=UnexpectedError("INVALID_REQUEST"))], model) is not None


def test_a_search_that_ends_at_its_limit_is_undecided(monkeypatch: pytest.MonkeyPatch) -> None:
    history = [put(str(number), 0, 9)._replace(key="config a") for number in range(4)]
    history.append(read(10, 11, "5")._replace(key="config a"))
    found = violation(history, ConfigList())
    assert found is not None
    assert str(found).startswith("not linearizable")
    monkeypatch.setattr(checker, "CONFIGURATIONS_MAX", 3)
    found = violation(history, ConfigList())
    assert str(found).startswith("undecided after 3 configurations: config a")


def test_an_operation_without_a_response_is_not_required() -> None:
    assert op("set", UNKNOWN, 0, 1, "1").latest == math.inf
