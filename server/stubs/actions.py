"""Actions: what a stub does in place of, before or after the controller's answer. Each extends the stub's plan.

    {"injectError": "NOT_CONTROLLER"}   {"delayOn": {"ms": 500}}   "drop"

An action that works on an answer (a change, an edit of its bytes) lets the controller answer if no earlier action in
the chain does. Answers of actions before `disconnectOn` or `reset` are still sent.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any, ClassVar

from mockraft.kafka_api.api import call_of_test
from mockraft.server.stubs.action import Action, AnswerPlan, Resolver
from mockraft.server.stubs.entities import Refusal
from mockraft.server.stubs.errors import StubError, read_parameters, unknown
from mockraft.server.stubs.fields import FieldPath, error_code, field_path, message_from_tree, shown
from mockraft.server.stubs.frame_edits import (
    Corrupt,
    Duplicate,
    Raw,
    Truncate,
    WrongCorrelationId,
    WrongLength,
    bytes_of,
)
from mockraft.wire import error_codes, messages
from mockraft.wire.errors import WireError
from mockraft.wire.kio_entities import from_kio, is_kio
from mockraft.wire.message import Message
from mockraft.wire.names import camel

if TYPE_CHECKING:
    from mockraft.kafka_api.api import Api
    from mockraft.server.stubs.match import Match, StubRequest
    from mockraft.wire.json_form import Json, Tree

EXHAUSTED = ("stick", "passThrough")

Values = Callable[..., object] | Iterable[object]

ValueSource = Callable[["StubRequest"], object]


FieldChange = Mapping[str, object] | Callable[[Any], Message | None]
"""New values by field path, or a function that gets the message and changes it or returns another."""


@dataclass(frozen=True)
class PassThrough(Action):
    """Let the controller answer."""

    name = "passThrough"
    summary = "The controller answers, as without the stub."

    def extend(self, plan: AnswerPlan) -> None:
        """Let the controller answer."""
        plan.take_answer()
        plan.passes = True


@dataclass(frozen=True)
class InjectError(Action):
    """Answer with an error in the API's error form; the controller does not see the request.

    If the match selects entities, the error is for these only, and the controller sees the request without them.
    """

    error: str | int
    message: str | None = None
    name = "injectError"
    summary = (
        "An error in the API's own error form; the controller does not see the request. If the match selects a topic, "
        "group or another entity, the error is for that alone, and the controller sees the rest."
    )
    example = "NOT_CONTROLLER"
    main = "error"
    takes_whole = True

    def __post_init__(self) -> None:
        if self.message is not None and not isinstance(self.message, str):
            raise StubError(f"expected a text, got {self.message!r}", "message")
        if (code := error_code(self.error, "")) == error_codes.NONE or code not in error_codes.NAMES:
            what = "no error" if code == error_codes.NONE else "no error of Kafka's"
            raise StubError(f"{code} is {what}: change the response, or give it with answer")

    def check(self, match: Match) -> None:
        """Check that the responses can refuse the selected entities alone."""
        if match.selection is None:
            return
        if not match.api_keys:
            raise StubError(f"the match must name the API whose {match.selection} is refused")
        for key in match.api_keys:
            match.selection.check_refusal(key)

    def extend(self, plan: AnswerPlan) -> None:
        """Answer with the API's error form."""
        plan.take_answer()
        code, message = error_code(self.error, ""), self.message
        if plan.entities is not None:
            plan.refusal, plan.passes = Refusal(code, message), True
            return
        plan.refused_with = code
        plan.respond = lambda api, received: api.error(received.request, code, message)


@dataclass(frozen=True)
class Answer(Action):
    """Answer with a given response; the controller does not see the request."""

    body: object
    name = "answer"
    summary = (
        "This response: its fields as JSON, the others at their defaults. The controller does not see the request."
    )
    example: ClassVar[Json] = {"isFenced": True, "shouldShutDown": False}
    main = "body"
    takes_whole = True

    def __post_init__(self) -> None:
        if is_kio(self.body):
            try:
                object.__setattr__(self, "body", from_kio(self.body)[0])
            except (TypeError, WireError) as wrong:
                raise StubError(str(wrong), "body") from wrong

    def check(self, match: Match) -> None:
        """Check a tree of fields against the response of the stub's API."""
        if isinstance(self.body, Mapping):
            if not match.api_keys:
                raise StubError("the match must name the API of this answer")
            for key in match.api_keys:
                message_from_tree(messages.response(key), self.body)
        elif not isinstance(self.body, Message):
            about = "; a function that returns one is for answers(…)" if callable(self.body) else ""
            raise StubError(f"expected a response or its fields, got {self.body!r}{about}", "body")

    def extend(self, plan: AnswerPlan) -> None:
        """Answer with the response."""
        plan.take_answer()
        body = self.body
        plan.respond = lambda api, received: as_message(body, api)

    def to_json(self) -> Tree:
        """Return the action as JSON; a message as far as JSON can express it."""
        if isinstance(self.body, Message):
            from mockraft.wire.json_form import to_json

            return {self.name: to_json(self.body, self.body.max_version)}
        return {self.name: shown(self.body)}


@dataclass(frozen=True)
class Change(Action):
    """Change fields of the request before the controller sees it, or of the response before it is sent."""

    request: FieldChange = field(default_factory=dict)
    response: FieldChange = field(default_factory=dict)
    name = "change"
    summary = (
        "New values of `request` fields before the controller sees them, of `response` fields before they are sent."
    )
    example: ClassVar[Json] = {"response": {"shouldShutDown": True}}

    def __post_init__(self) -> None:
        for side in ("request", "response"):
            change = getattr(self, side)
            if not callable(change) and not isinstance(change, Mapping):
                raise StubError(f"expected an object of values by field, got {change!r}", side)
        if not self.request and not self.response:
            raise StubError("nothing to change: give request, response or both")

    def check(self, match: Match) -> None:
        """Check that each field exists in every API that the stub is about."""
        for side, of_api in (("request", messages.request), ("response", messages.response)):
            change = getattr(self, side)
            for path, value in () if callable(change) else change.items():
                for key in match.api_keys:
                    try:
                        field_path(of_api(key), path).value(value)
                    except StubError as wrong:
                        raise StubError(wrong.what, f"{side}.{path}") from None

    def extend(self, plan: AnswerPlan) -> None:
        """Let the controller answer unless another action does, and set the fields on the way in and out."""
        if self.request:
            if plan.has_answer and not plan.passes:
                raise StubError("the controller does not see the request: an earlier action answers", "request")
            plan.request_changes.append(_changer(self.request))
        plan.let_pass()
        if self.response:
            plan.response_changes.append(_changer(self.response))

    def to_json(self) -> Tree:
        """Return the action as JSON."""
        return {
            self.name: {side: shown(getattr(self, side)) for side in ("request", "response") if getattr(self, side)}
        }


@dataclass(frozen=True)
class UnknownTaggedField(Action):
    """Add a tagged field that no schema knows to the response; a client must skip it."""

    tag: int
    hex: str = ""
    name = "unknownTaggedField"
    summary = "A tagged field that no schema knows, in the response: a client must skip it."
    example: ClassVar[Json] = {"tag": 9000, "hex": "cafe"}

    def __post_init__(self) -> None:
        if not 0 <= self.tag < 1 << 31:
            raise StubError(f"a tag is a number from 0 on, got {self.tag!r}", "tag")
        assert bytes_of(self.hex) is not None

    def extend(self, plan: AnswerPlan) -> None:
        """Add the field to the response."""
        plan.let_pass()
        tag, data = self.tag, bytes_of(self.hex)

        def add(response: Message) -> None:
            response.unknown_tagged_fields = sorted([*response.unknown_tagged_fields, (tag, data)])

        plan.response_changes.append(add)


@dataclass(frozen=True)
class DelayOn(Action):
    """Delay the answer; the connection's next requests wait, as when Kafka mutes a channel."""

    ms: int
    jitter_ms: int = 0
    before: bool = False
    seed: int = 0
    name = "delayOn"
    summary = (
        "The answer comes `ms` later, give or take `jitterMs`; with `before` true (in Python `before=True`) the "
        "controller sees the request only then. The connection's next requests wait."
    )
    example: ClassVar[Json] = {"ms": 500, "jitterMs": 100}
    main = "ms"

    def __post_init__(self) -> None:
        for name in ("ms", "jitter_ms"):
            if type(getattr(self, name)) is not int or getattr(self, name) < 0:
                raise StubError(f"expected milliseconds from 0 on, got {getattr(self, name)!r}", camel(name))

    def extend(self, plan: AnswerPlan) -> None:
        """Add the delay."""
        ms, jitter_ms, seed = self.ms, self.jitter_ms, self.seed

        def delay_ms(call: int) -> int:
            return max(0, ms + Random(f"{seed}/{call}").randint(-jitter_ms, jitter_ms))

        waits_before = self.before and not plan.has_answer
        (plan.delays_before if waits_before else plan.delays).append(delay_ms if jitter_ms else lambda _call: ms)


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

    def extend(self, plan: AnswerPlan) -> None:
        """Mark the plan as different for each call."""
        plan.take_answer()
        plan.varies = True

    def check(self, match: Match) -> None:
        """Check the answers that are known beforehand against the APIs."""
        for index, value in enumerate(self.values if isinstance(self.values, list | tuple) else ()):
            if callable(value) or isinstance(value, BaseException):
                continue
            try:
                for action in as_actions(value):
                    action.check(match)
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

        return lambda number, received: call_of_test(resolve, number, received)

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


@dataclass(frozen=True)
class Drop(Action):
    """Send no answer; the connection stays open."""

    name = "drop"
    summary = (
        "No answer; the connection goes on. Alone, the controller does not see the request; after `passThrough` it "
        "does, and its answer is lost."
    )

    def extend(self, plan: AnswerPlan) -> None:
        """Send nothing."""
        plan.is_sent = False
        plan.reason.append("dropped")


@dataclass(frozen=True)
class DisconnectOn(Action):
    """Close the connection after the answer of an earlier action."""

    name = "disconnectOn"
    summary = "The connection is closed, after the answer of an earlier action is sent."

    def extend(self, plan: AnswerPlan) -> None:
        """Close the connection."""
        plan.end = "close"
        plan.reason.append("disconnected")


@dataclass(frozen=True)
class Reset(Action):
    """Break the connection with a TCP reset after the answer of an earlier action."""

    name = "reset"
    summary = "The connection is reset (TCP RST), after the answer of an earlier action is sent."

    def extend(self, plan: AnswerPlan) -> None:
        """Reset the connection."""
        plan.end = "reset"
        plan.reason.append("reset")


@dataclass(frozen=True)
class Blackhole(Action):
    """Stop answering the client, or only the connection, until it is released."""

    by: str = "clientId"
    name = "blackhole"
    summary = (
        "This client (`by`: clientId), or only this connection (`by`: connection), gets no more answers, whatever "
        "it requests, until it is released or the stub is removed; then the controller answers what waits."
    )
    example: ClassVar[Json] = {"by": "connection"}
    main = "by"

    def __post_init__(self) -> None:
        if self.by not in ("clientId", "connection"):
            raise StubError(f"expected clientId or connection, got {self.by!r}", "by")

    def extend(self, plan: AnswerPlan) -> None:
        """Hold the client or connection."""
        plan.take_answer()
        plan.held_by = self.by
        plan.reason.append("blackholed")


def as_message(value: object, api: Api[Message, Message]) -> Message:
    """Return a response from a message or a tree of its fields. Raise StubError."""
    if isinstance(value, Message):
        wanted, given = (kind.__name__ for kind in (api.response, _public(value)))
        if given != wanted:
            raise StubError(f"expected a {wanted}, got {given}", wanted.removesuffix("Response"))
        return value
    if isinstance(value, Mapping):
        return message_from_tree(api.response, value)
    raise StubError(f"expected a {api.response.__name__} or its fields, got {value!r}", "answer")


def action_from_json(tree: object) -> Action:
    """Read an action from JSON. Raise StubError that names the field."""
    if isinstance(tree, Action):
        return tree
    if isinstance(tree, str):
        tree = {tree: True}
    if not isinstance(tree, Mapping):
        raise StubError(f"expected an action such as {{'injectError': 'NOT_CONTROLLER'}}, got {tree!r}")
    given = {camel(str(name)): value for name, value in tree.items()}
    named = [name for name in given if name in ACTIONS]
    if not named:
        raise StubError(unknown("action", next(iter(given), ""), ACTIONS))
    if len(named) > 1:
        raise StubError(f"{' and '.join(named)} are separate actions: put each into its own object of the list")
    kind, value = ACTIONS[named[0]], given.pop(named[0])
    if kind.main is not None and (kind.takes_whole or not isinstance(value, Mapping)):
        given = {camel(kind.main): value, **given}
        if value is True and not kind.takes_whole:
            del given[camel(kind.main)]
    elif isinstance(value, Mapping):
        given = {**value, **given}
    elif value is not True:
        raise StubError(f"expected true or an object of parameters, got {value!r}", named[0])
    try:
        return read_parameters(kind, given, named[0])
    except StubError as wrong:
        raise wrong.within(named[0]) from None


def actions_from_json(tree: object) -> tuple[Action, ...]:
    """Read a chain of actions; a single one needs no list. Raise StubError."""
    if not isinstance(tree, list | tuple):
        tree = [tree]
    actions = []
    for index, each in enumerate(tree):
        try:
            actions.append(action_from_json(each))
        except StubError as wrong:
            raise wrong.within(f"[{index}]") from None
    return tuple(actions)


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
    if isinstance(value, Mapping) and value.keys() & ACTIONS.keys():
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


def _changer(change: FieldChange) -> Callable[[Message], Message | None]:
    if callable(change):
        return lambda message: call_of_test(change, message)
    by_class: dict[type, list[tuple[FieldPath, object]]] = {}
    wanted = dict(change)

    def assign(message: Message) -> None:
        found = by_class.get(message.__class__)
        if found is None:
            paths = [(field_path(_public(message), path), value) for path, value in wanted.items()]
            found = by_class[message.__class__] = [(path, path.value(value)) for path, value in paths]
        for path, value in found:
            path.assign(message, value)

    return assign


def _public(message: Message) -> type:
    kind = type(message)
    return kind.__mro__[1] if kind.__qualname__.startswith("_") else kind


ACTIONS: dict[str, type[Action]] = {
    kind.name: kind
    for kind in (
        PassThrough, InjectError, Answer, Change, UnknownTaggedField, DelayOn, Answers,
        Drop, DisconnectOn, Reset, Blackhole,
        WrongCorrelationId, WrongLength, Truncate, Corrupt, Duplicate, Raw,
    )
}  # fmt: skip
"""The actions by their name in JSON, in the order of the documentation."""
