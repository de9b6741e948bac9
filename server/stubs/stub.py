"""A stub: which requests, when, and what is done. `stub("BrokerHeartbeat").once().drop()` makes one.

Every method returns another stub, so a stub can be kept, varied and used again. `StubList.add` returns the live one,
which counts its calls; a method of a live stub changes it where it is, and returns it.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

from mockraft.server.stubs import frame_edits
from mockraft.server.stubs.action import Action, AnswerPlan
from mockraft.server.stubs.actions import (
    Answer,
    Answers,
    Blackhole,
    Change,
    DelayOn,
    DisconnectOn,
    Drop,
    FieldChange,
    InjectError,
    PassThrough,
    Reset,
    UnknownTaggedField,
    Values,
    actions_from_json,
)
from mockraft.server.stubs.errors import StubError, read_parameters, unknown, write_parameters
from mockraft.server.stubs.fault_proxy import is_rule, read_rule
from mockraft.server.stubs.fields import shown
from mockraft.server.stubs.match import Match, keywords
from mockraft.server.stubs.triggers import OnCall, Once, Times, Trigger, WithProbability, trigger_from_json

if TYPE_CHECKING:
    from mockraft.kafka_api.journal import Exchange
    from mockraft.server.request_types import Conditions
    from mockraft.wire.api_keys import ApiName
    from mockraft.wire.error_codes import ErrorName
    from mockraft.wire.json_form import Json, Tree

T = TypeVar("T")

CALLS_KEPT = 32
PRIORITY_MAX = (1 << 63) - 1

_ID = re.compile(r"[\w.-]+")
_RESERVED_IDS = ("unused", ".", "..")
"""Ids that the admin API, or a client that normalizes the path, takes for another path."""
ID_RULE = f"letters, digits, . _ - and none of {', '.join(_RESERVED_IDS)}"

_FIELDS = ("id", "name", "priority", "enabled", "match", "trigger", "scenario", "actions")
_READ_ONLY = ("calls", "matched", "lastServedMs")


@dataclass(frozen=True, slots=True)
class Scenario:
    """A stub's part in a scenario: it serves only in the state `requires` (None: in any), and then sets `then`."""

    name: str
    requires: str | None = None
    then: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise StubError(f"expected a name, got {self.name!r}", "name")
        for name, state in (("requires", self.requires), ("then", self.then)):
            if state is not None and not isinstance(state, str):
                raise StubError(f"expected a state's name, got {state!r}", name)

    def allows(self, state: str) -> bool:
        """Return True if the stub serves in this state."""
        return self.requires is None or self.requires == state


def _no_calls() -> deque[Exchange]:
    return deque(maxlen=CALLS_KEPT)


@dataclass(slots=True)
class Stub:
    """A stub, as a value and, in a StubList, live. A copy of a live one is a value.

    Among those that match, the one of the highest `priority` serves, among equals the newest. Live: `call_count` is how
    often it served, `match_count` how often it matched in the right state of its scenario (the trigger may have
    declined), `calls` the last exchanges that it served (32 at most), `last_served_ms` the time of the last one. Raises
    StubError.
    """

    match: Match = field(default_factory=Match)
    trigger: Trigger = field(default_factory=Trigger)
    actions: tuple[Action, ...] = ()
    scenario: Scenario | None = None
    priority: int = 0
    name: str = ""
    id: str = ""
    enabled: bool = True
    call_count: int = field(default=0, init=False, compare=False)
    match_count: int = field(default=0, init=False, compare=False)
    last_served_ms: int | None = field(default=None, init=False, compare=False)
    calls: deque[Exchange] = field(default_factory=_no_calls, init=False, compare=False, repr=False)
    plan: AnswerPlan = field(init=False, compare=False, repr=False)
    change_live: Callable[[Stub, Stub], Stub] | None = field(default=None, init=False, compare=False, repr=False)
    """Changes a live stub in its list."""

    def __post_init__(self) -> None:
        try:
            self.plan = AnswerPlan(self.actions, self.match.selection)
            for index, action in enumerate(self.actions):
                try:
                    action.check(self.match)
                except StubError as wrong:
                    raise wrong.within(action.name).within(f"[{index}]") from None
        except StubError as wrong:
            raise wrong.within("actions") from None

    def __reduce__(self) -> tuple[type[Stub], tuple[object, ...]]:
        """Return what makes a copy: neither live nor counted."""
        return Stub, tuple(getattr(self, each.name) for each in fields(self) if each.init)

    def _with(self, **changes: Any) -> Stub:
        changed = replace(self, **changes)
        return changed if self.change_live is None else self.change_live(self, changed)

    if not TYPE_CHECKING:  # a type checker knows the methods, and refuses others

        def __getattr__(self, name: str) -> object:
            known = [each for each in dir(Stub) if not each.startswith("_")]
            raise AttributeError(unknown("member of a stub", name, known))

    @property
    def called(self) -> bool:
        """True if it has served."""
        return self.call_count > 0

    @property
    def is_spent(self) -> bool:
        """True if its trigger never fires again."""
        return self.trigger.is_spent(self.match_count)

    def once(self) -> Stub:
        """Serve the first matching request only."""
        return self._with(trigger=Once())

    def on_call(self, number: int) -> Stub:
        """Serve only the matching request of this number, counted from 1."""
        return self._with(trigger=OnCall(number))

    def times(self, times: int) -> Stub:
        """Serve the first `n` matching requests."""
        return self._with(trigger=Times(times))

    def every_time(self) -> Stub:
        """Serve every matching request (the default)."""
        return self._with(trigger=Trigger())

    def with_probability(self, probability: float, seed: int = 0) -> Stub:
        """Serve each matching request with this probability; the same seed picks the same ones."""
        return self._with(trigger=WithProbability(probability, seed))

    def in_scenario(self, name: str, *, requires: str | None = None, then: str | None = None) -> Stub:
        """Serve only while the scenario is in the state `requires`, and then put it into `then`."""
        return self._with(scenario=Scenario(name, requires, then))

    def with_priority(self, priority: int) -> Stub:
        """Set the priority: higher precedes lower, 0 is the default."""
        return self._with(priority=priority)

    def named(self, name: str, *, id: str = "") -> Stub:  # noqa: A002
        """Set a name for people and an id."""
        return self._with(name=name, id=id or self.id)

    def where(self, conditions: Mapping[str, object] | None = None, **fields: Unpack[Conditions]) -> Stub:
        """Add conditions on the request's fields."""
        more = replace(self.match, where={**self.match.where, **(conditions or {})})
        return self._with(match=more.and_where(**fields))

    def then(self, *actions: Action | Mapping[str, object] | str) -> Stub:
        """Add actions, as objects or as JSON."""
        return self._with(actions=(*self.actions, *actions_from_json(actions)))

    def inject_error(self, error: ErrorName | int, message: str | None = None) -> Stub:
        """Answer with an error in the API's error form, or with one for the entities that the match selects.

        `stub("CreateTopics", topic="b").inject_error("POLICY_VIOLATION")` refuses b; other topics are created.
        """
        return self.then(InjectError(error, message))

    def answer(self, body: object = None, /, **fields: object) -> Stub:
        """Answer with a response message, or one made of these fields; the others keep their defaults."""
        if body is not None and fields:
            raise StubError("give a response or its fields, not both", "answer")
        return self.then(Answer(fields if body is None else body))

    def answers(self, values: Values, *, exhausted: str = "stick") -> Stub:
        """Answer call by call: see `Answers`. The last value is repeated, unless `exhausted="pass_through"`."""
        return self.then(Answers(values, exhausted))

    def change(self, *, request: FieldChange | None = None, response: FieldChange | None = None) -> Stub:
        """Let the controller answer, but change fields of the request before or of the response after."""
        return self.then(Change(request or {}, response or {}))

    def pass_through(self) -> Stub:
        """Let the controller answer; the stub only counts, or acts on that answer."""
        return self.then(PassThrough())

    def drop(self) -> Stub:
        """Send no answer; the connection stays open."""
        return self.then(Drop())

    def delay_on(self, ms: int, jitter_ms: int = 0, *, before: bool = False, seed: int = 0) -> Stub:
        """Delay the answer by milliseconds; with `before` the controller sees the request only then."""
        return self.then(DelayOn(ms, jitter_ms, before, seed))

    def disconnect_on(self) -> Stub:
        """Close the connection, after an answer of the actions before it."""
        return self.then(DisconnectOn())

    def reset(self) -> Stub:
        """Break the connection with a TCP reset, after an answer of the actions before it."""
        return self.then(Reset())

    def blackhole(self, by: str = "clientId") -> Stub:
        """Stop answering this client (or, by "connection", this connection) until it is released."""
        return self.then(Blackhole("clientId" if by == "client_id" else by))

    def unknown_tagged_field(self, tag: int, data: bytes | str = b"") -> Stub:
        """Add a tagged field that no schema knows to the response; `data` are bytes or hexadecimal digits."""
        return self.then(UnknownTaggedField(tag, data.hex() if isinstance(data, bytes) else data))

    def wrong_correlation_id(self, by: int = 1) -> Stub:
        """Answer with a correlation id that is off by this number."""
        return self.then(frame_edits.WrongCorrelationId(by))

    def wrong_length(self, by: int = 1) -> Stub:
        """Answer with a frame whose length is off by this number."""
        return self.then(frame_edits.WrongLength(by))

    def truncate(self, bytes: int) -> Stub:  # noqa: A002
        """Send only the first bytes of the answer."""
        return self.then(frame_edits.Truncate(bytes))

    def corrupt(self, bytes: int = 1, *, seed: int = 0) -> Stub:  # noqa: A002
        """Change this number of bytes of the answer's body."""
        return self.then(frame_edits.Corrupt(bytes, seed))

    def duplicate(self, times: int = 2) -> Stub:
        """Send the answer this number of times."""
        return self.then(frame_edits.Duplicate(times))

    def raw(self, data: bytes | str) -> Stub:
        """Send these bytes (or hexadecimal digits) as they are in place of an answer."""
        return self.then(frame_edits.Raw(data.hex() if isinstance(data, bytes) else data))

    def to_json(self) -> Tree:
        """Return the stub as JSON, with its counts."""
        tree: Tree = {
            "id": self.id,
            "name": self.name,
            "priority": self.priority,
            "enabled": self.enabled,
            "match": self.match.to_json(),
            "trigger": self.trigger.to_json(),
            "scenario": None if self.scenario is None else shown(write_parameters(self.scenario)),
            "actions": [action.to_json() for action in self.actions],
            "calls": self.call_count,
            "matched": self.match_count,
            "lastServedMs": self.last_served_ms,
        }
        return {name: value for name, value in tree.items() if value not in ("", None)}

    @classmethod
    def from_json(cls, tree: Json) -> Stub:
        """Read a stub, or a rule of Kafka's fault proxy, from JSON, ignoring what only a live stub has.

        Raise StubError that names the field.
        """
        if not isinstance(tree, Mapping):
            raise StubError(f"expected an object, got {tree!r}")
        if is_rule(tree):
            return read_rule(tree, cls.from_json)
        for name in tree:
            if name not in _FIELDS and name not in _READ_ONLY:
                raise StubError(unknown("field of a stub", name, _FIELDS), str(name))
        return cls(
            _part(tree, "match", Match.from_json, Match()),
            _part(tree, "trigger", trigger_from_json, Trigger()),
            _part(tree, "actions", actions_from_json, ()),
            _part(tree, "scenario", _scenario, None),
            _priority(tree),
            _plain(tree, "name", ""),
            _id(tree),
            _plain(tree, "enabled", True),
        )


def _plain(tree: Mapping[str, Json], name: str, default: T) -> T:
    value, kind = tree.get(name, default), type(default)
    if not isinstance(value, kind) or type(value) is not kind:
        raise StubError(f"expected {kind.__name__}, got {value!r}", name)
    return value


def _priority(tree: Mapping[str, Json]) -> int:
    priority = _plain(tree, "priority", 0)
    if not -PRIORITY_MAX - 1 <= priority <= PRIORITY_MAX:
        raise StubError("expected an integer of 64 bits", "priority")
    return priority


def _id(tree: Mapping[str, Json]) -> str:
    stub_id = _plain(tree, "id", "")
    if stub_id and (not _ID.fullmatch(stub_id) or stub_id in _RESERVED_IDS):
        raise StubError(f"{stub_id!r} is no id: {ID_RULE}", "id")
    return stub_id


def _part(tree: Mapping[str, Json], name: str, read: Callable[[Json], T], default: T) -> T:
    if tree.get(name) is None:
        return default
    try:
        return read(tree[name])
    except StubError as wrong:
        raise wrong.within(name) from None


def _scenario(tree: Json) -> Scenario | None:
    if not isinstance(tree, Mapping):
        raise StubError(f"expected an object with a name, got {tree!r}")
    return read_parameters(Scenario, tree, "scenario")


def stub(*api: ApiName | int, **match: Unpack[Conditions]) -> Stub:
    """Return a stub for requests of an API, of one of several, or of any; without actions the controller answers.

    Keywords are the scopes `version`, `broker_id`, `client_id`, `connection`, `listener`, `node`, `principal` and
    `broker`; entities that a request names (topic, partition, group, transactional_id, producer_id, resource,
    directory, feature, user), for which alone an error is then; and fields of the request, with `__` before an operator
    or a nested field. Every condition may be one value, a list (one of them) or an object of operators; so may those of
    `where`, by field path:

        stub("BrokerHeartbeat", broker_id=1, want_fence=True, current_metadata_offset__gte=5).times(2).drop()

    Raise StubError, a ValueError, that names the field and similar ones.
    """
    where = match.pop("where", None) or {}
    scopes, conditions = keywords(match)
    return Stub(Match(api=api or None, where={**where, **conditions}, **scopes))
