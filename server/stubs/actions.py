"""Actions: what a stub does in place of, before or after the controller's answer. Each extends the stub's plan.

    {"injectError": "NOT_CONTROLLER"}   {"delayOn": {"ms": 500}}   "drop"

An action that works on an answer (a change, an edit of its bytes) lets the controller answer if no earlier action in
the chain does. Answers of actions before `disconnectOn` or `reset` are still sent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any, ClassVar

from mockraft.server.stubs.errors import StubError, read_parameters, unknown, write_parameters
from mockraft.server.stubs.fields import FieldPath, error_code, field_path, message_from_tree, shown
from mockraft.wire import messages
from mockraft.wire.errors import WireError
from mockraft.wire.kio_entities import from_kio, is_kio
from mockraft.wire.message import Message
from mockraft.wire.names import camel

if TYPE_CHECKING:
    from mockraft.kafka_api.api import Api as ServedApi
    from mockraft.server.stubs.match import StubRequest
    from mockraft.server.stubs.plan import Plan
    from mockraft.wire.json_form import Json, Tree

Resolver = Callable[[int, "StubRequest"], Sequence["Action"]]
"""Return the actions for a call, given its number (from 1) and the request."""

Keys = frozenset[int]
"""API keys that a stub is about; empty for any."""

FieldChange = Mapping[str, object] | Callable[[Any], Message | None]
"""New values by field path, or a function that gets the message and changes it or returns another."""


@dataclass(frozen=True)
class Action:
    """Base of all actions: `name` in JSON, and `main`, the parameter that may be given alone."""

    name: ClassVar[str]
    summary: ClassVar[str]
    example: ClassVar[Json] = True
    main: ClassVar[str | None] = None
    takes_whole: ClassVar[bool] = False

    def extend(self, plan: Plan) -> None:
        """Add the action to a plan. Raise StubError if it cannot follow what the plan has."""
        raise AssertionError(f"{self.name} does nothing")

    def resolver(self) -> Resolver:
        """Return a per-stub resolver that keeps state between calls."""
        return lambda number, received: (self,)

    def check(self, keys: Keys) -> None:
        """Check that the action fits the stub's APIs. Raise StubError that names the field that does not."""

    def to_json(self) -> Tree:
        """Return the action's shortest JSON."""
        parameters = {name: shown(value) for name, value in write_parameters(self).items()}
        main = self.main and camel(self.main)
        if not parameters:
            return {self.name: True}
        if main in parameters and (self.takes_whole or len(parameters) == 1):
            return {self.name: parameters.pop(main), **parameters}
        return {self.name: parameters}


@dataclass(frozen=True)
class PassThrough(Action):
    """Let the controller answer."""

    name = "passThrough"
    summary = "The controller answers, as without the stub."

    def extend(self, plan: Plan) -> None:
        """Let the controller answer."""
        plan.take_answer()
        plan.passes = True


@dataclass(frozen=True)
class InjectError(Action):
    """Answer with an error in the API's error form; the controller does not see the request."""

    error: str | int
    message: str | None = None
    name = "injectError"
    summary = "An error in the API's own error form; the controller does not see the request."
    example = "NOT_CONTROLLER"
    main = "error"
    takes_whole = True

    def __post_init__(self) -> None:
        if self.message is not None and not isinstance(self.message, str):
            raise StubError(f"expected a text, got {self.message!r}", "message")
        assert error_code(self.error, "") is not None

    def extend(self, plan: Plan) -> None:
        """Answer with the API's error form."""
        plan.take_answer()
        code, message = error_code(self.error, ""), self.message
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

    def check(self, keys: Keys) -> None:
        """Check a tree of fields against the response of the stub's API."""
        if isinstance(self.body, Mapping):
            if not keys:
                raise StubError("the match must name the API of this answer")
            for key in keys:
                message_from_tree(messages.response(key), self.body)

    def extend(self, plan: Plan) -> None:
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

    def check(self, keys: Keys) -> None:
        """Check that each field exists in every API that the stub is about."""
        for side, of_api in (("request", messages.request), ("response", messages.response)):
            change = getattr(self, side)
            for path, value in () if callable(change) else change.items():
                for key in keys:
                    try:
                        field_path(of_api(key), path).value(value)
                    except StubError as wrong:
                        raise StubError(wrong.what, f"{side}.{path}") from None

    def extend(self, plan: Plan) -> None:
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

    def extend(self, plan: Plan) -> None:
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

    def extend(self, plan: Plan) -> None:
        """Add the delay."""
        ms, jitter_ms, seed = self.ms, self.jitter_ms, self.seed

        def delay_ms(call: int) -> int:
            return max(0, ms + Random(f"{seed}/{call}").randint(-jitter_ms, jitter_ms))

        waits_before = self.before and not plan.has_answer
        (plan.delays_before if waits_before else plan.delays).append(delay_ms if jitter_ms else lambda _call: ms)


def as_message(value: object, api: ServedApi[Message, Message]) -> Message:
    """Return a response from a message or a tree of its fields. Raise StubError."""
    if isinstance(value, Message):
        return value
    if isinstance(value, Mapping):
        return message_from_tree(api.response, value)
    raise StubError(f"expected a {api.response.__name__} or its fields, got {value!r}", "answer")


def bytes_of(text: str, name: str = "hex") -> bytes:
    """Return bytes from hexadecimal digits, spaces allowed. Raise StubError."""
    try:
        return bytes.fromhex(text)
    except (TypeError, ValueError):
        raise StubError(f"expected hexadecimal digits, got {text!r}", name) from None


def known_actions() -> dict[str, type[Action]]:
    """Return the actions by their name in JSON, in the order of the documentation."""
    from mockraft.server.stubs import endings, frame_edits, side_effects

    groups = (ACTIONS, side_effects.ACTIONS, endings.ACTIONS, frame_edits.ACTIONS)
    return {kind.name: kind for actions in groups for kind in actions}


def action_from_json(tree: object) -> Action:
    """Read an action from JSON. Raise StubError that names the field."""
    if isinstance(tree, Action):
        return tree
    if isinstance(tree, str):
        tree = {tree: True}
    if not isinstance(tree, Mapping):
        raise StubError(f"expected an action such as {{'injectError': 'NOT_CONTROLLER'}}, got {tree!r}")
    kinds = known_actions()
    given = {camel(str(name)): value for name, value in tree.items()}
    named = [name for name in given if name in kinds]
    if not named:
        raise StubError(unknown("action", next(iter(given), ""), kinds))
    if len(named) > 1:
        raise StubError(f"{' and '.join(named)} are separate actions: put each into its own object of the list")
    kind, value = kinds[named[0]], given.pop(named[0])
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


def _changer(change: FieldChange) -> Callable[[Message], Message | None]:
    if callable(change):
        return change
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


ACTIONS: Sequence[type[Action]] = (
    PassThrough,
    InjectError,
    Answer,
    Change,
    UnknownTaggedField,
    DelayOn,
)
