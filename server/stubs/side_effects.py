"""Answers that differ from call to call: a list, any iterable, or a function that is called each time."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from mockraft.server.stubs.actions import (
    Action,
    Answer,
    InjectError,
    Keys,
    PassThrough,
    Resolver,
    action_from_json,
    known_actions,
)
from mockraft.server.stubs.errors import StubError
from mockraft.server.stubs.fields import shown
from mockraft.wire import error_codes
from mockraft.wire.message import Message

if TYPE_CHECKING:
    from mockraft.server.stubs.match import StubRequest
    from mockraft.server.stubs.plan import Plan
    from mockraft.wire.json_form import Json, Tree

EXHAUSTED = ("stick", "passThrough")

Values = Callable[..., object] | Iterable[object]

ValueSource = Callable[["StubRequest"], object]


@dataclass(frozen=True)
class Answers(Action):
    """One of `values` for each call, or what the function returns for a request.

    A value is a response (a message, or its fields), an error's name or number, an action or several, an exception
    (the answer is UNKNOWN_SERVER_ERROR, the journal has the traceback), a function, or None for the controller's own
    answer. A function gets the request and, if it takes two arguments, its context (`StubRequest`). After the end of a
    list its last value is repeated, unless `exhausted` is "passThrough".
    """

    values: Values
    exhausted: str = "stick"
    name = "answers"
    summary = (
        "One for each call, in order: actions, in Python also responses, functions and any iterable. The "
        "last one is repeated, unless `exhausted` is `passThrough`."
    )
    example: ClassVar[Json] = [{"injectError": "NOT_CONTROLLER"}, "passThrough"]
    main = "values"
    takes_whole = True

    def __post_init__(self) -> None:
        exhausted = "passThrough" if self.exhausted == "pass_through" else self.exhausted
        object.__setattr__(self, "exhausted", exhausted)
        if exhausted not in EXHAUSTED:
            raise StubError(f"expected {' or '.join(EXHAUSTED)}, got {exhausted!r}", "exhausted")
        if isinstance(self.values, str | bytes | Mapping) or not (
            callable(self.values) or isinstance(self.values, Iterable)
        ):
            raise StubError(f"expected a list of answers, got {self.values!r}")
        if isinstance(self.values, list | tuple):
            if not self.values:
                raise StubError("expected at least one answer")
            object.__setattr__(self, "values", tuple(_read(each, index) for index, each in enumerate(self.values)))

    def extend(self, plan: Plan) -> None:
        """Mark the plan as different for each call."""
        plan.take_answer()
        plan.varies = True

    def check(self, keys: Keys) -> None:
        """Check the answers that are known beforehand against the APIs."""
        for index, value in enumerate(self.values if isinstance(self.values, list | tuple) else ()):
            if callable(value) or isinstance(value, BaseException):
                continue
            try:
                for action in as_actions(value):
                    action.check(keys)
            except StubError as wrong:
                raise wrong.within(f"[{index}]") from None

    def to_json(self) -> Tree:
        """Return the action as JSON, as far as JSON can express it."""
        values = self.values
        tree = [_json(value) for value in values] if isinstance(values, list | tuple) else shown_source(values)
        return {self.name: tree, **({"exhausted": self.exhausted} if self.exhausted != "stick" else {})}

    def resolver(self) -> Resolver:
        """Return the resolver of each call; an iterable begins anew with each stub that uses the action."""
        next_value = self._values()

        def resolve(number: int, received: StubRequest) -> Sequence[Action]:
            # A function may give another one.
            value = _value_source(next_value(number)(received))(received)
            if isinstance(value, BaseException) or (isinstance(value, type) and issubclass(value, BaseException)):
                raise value
            return as_actions(value)

        return resolve

    def _values(self) -> Callable[[int], ValueSource]:
        """Return a function from call number to answer source."""
        values, sticks = self.values, self.exhausted == "stick"
        if callable(values):
            asking = _value_source(values)
            return lambda number: asking
        if isinstance(values, list | tuple):
            each = [*map(_value_source, values), *(() if sticks else (_value_source(None),))]
            return lambda number: each[min(number, len(each)) - 1]
        rest: Iterator[object] | None = None
        last: object = None

        def following(number: int) -> ValueSource:
            nonlocal rest, last
            rest = iter(values) if rest is None else rest
            last = next(rest, last if sticks else None)
            return _value_source(last)

        return following


def as_actions(value: object) -> Sequence[Action]:
    """Return the actions that a value of `answers` stands for. Raise StubError."""
    if value is None:
        return (PassThrough(),)
    if isinstance(value, Action):
        return (value,)
    if isinstance(value, list | tuple):
        return tuple(action_from_json(each) for each in value)
    if type(value) is int:
        return (InjectError(value),)
    if isinstance(value, str):
        is_error = value.upper() in error_codes.NAMES.values()
        return (InjectError(value) if is_error else action_from_json(value),)
    if isinstance(value, Mapping) and value.keys() & known_actions().keys():
        return (action_from_json(value),)
    if isinstance(value, Message | Mapping) or hasattr(value, "__dataclass_fields__"):
        return (Answer(value),)
    raise StubError(f"expected a response, an error's name or an action, got {value!r}")


def shown_source(values: object) -> str:
    """Return the JSON form of a function or an iterator."""
    return str(shown(values)) if callable(values) else f"<python {type(values).__name__}>"


def _read(value: object, index: int) -> object:
    """Return a value of a list as actions, unless it is called or raised later."""
    if callable(value) or isinstance(value, BaseException):
        return value
    try:
        return tuple(as_actions(value))
    except StubError as wrong:
        raise wrong.within(f"[{index}]") from None


def _json(value: object) -> Json:
    if callable(value) or isinstance(value, BaseException):
        return shown_source(value)
    actions = [action.to_json() for action in as_actions(value)]
    return actions[0] if len(actions) == 1 else actions


def _value_source(value: object) -> ValueSource:
    """Return a function that gets the value for a request: it calls a function with as many arguments as it takes."""
    if not callable(value) or isinstance(value, type):
        return lambda received: value
    try:
        inspect.signature(value).bind(None, None)
    except (TypeError, ValueError):
        return lambda received: value(received.request)
    return lambda received: value(received.request, received)


ACTIONS: Sequence[type[Action]] = (Answers,)
