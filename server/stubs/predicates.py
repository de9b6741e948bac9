"""Conditions on a value: equal, one of a list, or operators."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from typing import Any, NamedTuple

from mockraft.kafka_api.linear_patterns import PatternError, compiled
from mockraft.server.stubs.errors import StubError, unknown
from mockraft.wire.names import snake

Test = Callable[[Any], bool]
Convert = Callable[[object], object]


class Operator(NamedTuple):
    """An operator by its name in JSON. `make` gets the operand, converted to the field's type if `typed`."""

    name: str
    summary: str
    make: Callable[[Any], Test]
    typed: bool = True


def _starts_with(start: object) -> Test:
    return lambda value: isinstance(value, str) and value.startswith(str(start))


def _regex(pattern: object) -> Test:
    try:
        found = compiled(str(pattern))
    except PatternError as wrong:
        raise StubError(str(wrong)) from None
    return lambda value: isinstance(value, str) and found.search(value)


def _differs(other: object) -> Test:
    return lambda value: bool(value != other)


def _one_of(values: object) -> Test:
    assert isinstance(values, Container)
    return lambda value: value in values


OPERATORS = {
    operator.name: operator
    for operator in (
        Operator("eq", "is equal", lambda other: lambda value: bool(value == other)),
        Operator("ne", "is not equal", _differs),
        Operator("in", "is one of a list", _one_of),
        Operator(
            "contains",
            "a text has this part, a list this element",
            lambda part: lambda value: value is not None and part in value,
        ),
        Operator("startsWith", "a text begins with this", _starts_with, typed=False),
        Operator("regex", "a part of a text matches this regular expression", _regex, typed=False),
        Operator("gt", "is greater", lambda other: lambda value: value is not None and bool(value > other)),
        Operator("gte", "is greater or equal", lambda other: lambda value: value is not None and bool(value >= other)),
        Operator("lt", "is less", lambda other: lambda value: value is not None and bool(value < other)),
        Operator("lte", "is less or equal", lambda other: lambda value: value is not None and bool(value <= other)),
        Operator(
            "exists",
            "true: there is a value; false: there is none",
            lambda wanted: lambda value: (value is not None) is wanted,
            typed=False,
        ),
        Operator("not", "does not match this: a value, a list or operators", _differs, typed=False),
    )
}

NAMES_IN_PYTHON = {
    spelling: name for name in OPERATORS for spelling in (name, snake(name), name.lower(), snake(name) + "_")
}
"""Spellings of operators after `__`: `client_id__starts_with`, `broker_id__in`."""


def predicate(expected: object, convert: Convert, field: str, part: Convert | None = None) -> Test:
    """Compile the test for an expected value; `convert` converts a given value to the field's type.

    `part` does so for something contained in a value, if that differs. Raise StubError for an unknown operator or a
    value that the field cannot have; `field` is the path in the error.
    """
    if callable(expected):
        return lambda value: bool(expected(value))
    if isinstance(expected, Mapping):
        return _all_of([_operator(name, operand, convert, field, part) for name, operand in expected.items()])
    if isinstance(expected, list | tuple | set | frozenset | range):
        return _operator("in", expected, convert, field, part)
    return _operator("eq", expected, convert, field, part)


def any_of(test: Test) -> Test:
    """Return the test for the list of values of a path with `[]`: any of them may match."""
    return lambda values: isinstance(values, Iterable) and any(map(test, values))


def _all_of(tests: list[Test]) -> Test:
    if len(tests) == 1:
        return tests[0]
    return lambda value: all(test(value) for test in tests)


def _operator(name: str, operand: object, convert: Convert, field: str, part: Convert | None) -> Test:
    spelled = NAMES_IN_PYTHON.get(name)
    if spelled is None:
        raise StubError(unknown("operator", name, OPERATORS), field)
    operator = OPERATORS[spelled]
    if spelled == "not":
        inner = predicate(operand, convert, field, part)
        return lambda value: not inner(value)
    if spelled == "in":
        if not isinstance(operand, list | tuple | set | frozenset | range):
            raise StubError(f"in needs a list, got {operand!r}", field)
        operand = operand if isinstance(operand, range) else [convert(element) for element in operand]
    elif spelled == "exists" and not isinstance(operand, bool):
        raise StubError(f"exists needs true or false, got {operand!r}", field)
    elif spelled in ("startsWith", "regex") and not isinstance(operand, str):
        raise StubError(f"{spelled} needs a text, got {operand!r}", field)
    elif operator.typed:
        operand = (part or convert if spelled == "contains" else convert)(operand)
    if operand is None and spelled in ("gt", "gte", "lt", "lte", "contains"):
        raise StubError(f"{spelled} needs a value, got null", field)
    try:
        return operator.make(operand)
    except StubError as wrong:
        raise StubError(wrong.what, field) from None
