"""Matches: select requests by API, version, broker, client, connection, listener, node, principal and fields.

A match is data; its conditions are compiled once, so that testing one costs a few attribute reads and comparisons.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, NamedTuple, cast

from mockraft.kafka_api.connections import sender, sender_by_client_id
from mockraft.kafka_api.journal.exchange import no_topic_name
from mockraft.server.api_modules import MODULES, OF_SIMULATED_BROKERS
from mockraft.server.stubs.entities import ENTITIES, Selection, TopicName
from mockraft.server.stubs.errors import StubError, check_known, unknown
from mockraft.server.stubs.fields import FieldPath, field_path, shown
from mockraft.server.stubs.predicates import NAMES_IN_PYTHON, OPERATORS, Test, any_of, predicate
from mockraft.wire import api_keys, messages
from mockraft.wire.message import Message
from mockraft.wire.names import camel, similar_names, snake
from mockraft.wire.redaction.masks import HIDDEN
from mockraft.wire.redaction.secret_fields import is_secret_path

if TYPE_CHECKING:
    from mockraft.kafka_api.journal import Exchange
    from mockraft.wire.api_keys import ApiName
    from mockraft.wire.json_form import Json, Tree

CONTROLLER = "the controller"
"""Shown as the broker that received a request if none did."""

_KEYS = {name.lower(): key for key, name in api_keys.NAMES.items()}


@dataclass(slots=True, eq=False)
class StubRequest:
    """A request as matches see it.

    `broker_id` is the sending broker, -1 if it is not a broker's; `broker` the simulated broker that received it, -1 if
    a controller did. `in_session` is the request with what its session adds, None for an API without sessions.
    """

    api_key: int
    api_version: int
    client_id: str | None
    connection: int
    listener: str
    node: int
    principal: str
    broker_id: int
    request: Message
    broker: int = -1
    topic_name: TopicName = no_topic_name
    in_session: Message | None = None


RequestTest = Callable[[StubRequest], bool]


class Condition(NamedTuple):
    """One condition of a match: what it looks at, what it expects, its test, and a reader of the actual value."""

    path: str
    expected: object
    test: RequestTest
    actual: Callable[[StubRequest], object]


@dataclass(frozen=True)
class Match:
    """Conditions on a request; what is left out may have any value.

    `api` is a name (`BrokerHeartbeat`) or number, or several of them. Every other condition is one value, a list (one
    of them) or an object of operators (`{"gte": 5}`); a version may be `{"min": 1, "max": 2}`. `where` has such
    conditions by the path of a request's field (`currentMetadataOffset`, `features[].name`). Raises StubError.

    It is about requests to controllers, and to simulated brokers if `broker` is given, or if only those serve the API,
    as they alone do with a Fetch of a topic.

    From `topic` on, a condition selects entities that the request names, one or more of them, as in `entities`: the
    request matches, and an error of the stub is for these alone. Several of them select in one place: partition 1 of b.
    """

    api: ApiName | int | Iterable[ApiName | int] | None = None
    version: object = None
    broker_id: object = None
    client_id: object = None
    connection: object = None
    listener: object = None
    node: object = None
    principal: object = None
    broker: object = None
    topic: object = None
    partition: object = None
    group: object = None
    transactional_id: object = None
    producer_id: object = None
    resource: object = None
    directory: object = None
    feature: object = None
    user: object = None
    where: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "api", self.api_names)
        assert self.conditions is not None

    def __call__(self, exchange: Exchange | StubRequest) -> bool:
        """Return True if an exchange of the journal, or a StubRequest, matches."""
        received = exchange if isinstance(exchange, StubRequest) else ExchangeRequest(exchange)
        return self.is_meant(received) and all(condition.test(received) for condition in self.conditions)

    def is_meant(self, received: StubRequest) -> bool:
        """Return True if it is about requests of this API to the kind of node that received it."""
        is_brokers_own = bool(self.api_names) and received.api_key not in MODULES
        is_brokers_own |= received.api_key == api_keys.FETCH and self.topic is not None
        return received.broker < 0 or self.broker is not None or is_brokers_own

    @property
    def of_clients_at_brokers(self) -> Match | None:
        """The same match of clients' requests to simulated brokers; None if it names the receiver or the sender."""
        if (self.broker, self.node, self.connection, self.broker_id) != (None, None, None, None):
            return None
        return replace(self, broker={"gte": 0}, broker_id=-1)

    @cached_property
    def api_names(self) -> tuple[ApiName | int, ...]:
        """APIs that it is about, by name as far as they have one; empty for any."""
        return _names(self.api)

    @cached_property
    def api_keys(self) -> frozenset[int]:
        """API keys that it is about; empty for any."""
        return frozenset(map(api_key, self.api_names))

    @cached_property
    def conditions(self) -> tuple[Condition, ...]:
        """All conditions, the cheap ones first."""
        found: list[Condition] = []
        where = _conditions(self.where)
        if self.api:
            keys = self.api_keys
            wanted = self.api_names[0] if len(self.api_names) == 1 else list(self.api_names)
            found.append(Condition("api", wanted, lambda received: received.api_key in keys, _api))
        for name, expected in self._scopes().items():
            found.append(_scope(name, expected))
        if self.selection is not None:
            found.append(self._of_entities(self.selection))
        return (*found, *(_where(path, expected, self.api_keys) for path, expected in where.items()))

    @cached_property
    def selection(self) -> Selection | None:
        """The entities that it selects, None if it selects none. Raise StubError."""
        tests = {}
        for name, expected in self._entities().items():
            convert = _integer if ENTITIES[name].is_number else _text
            tests[name] = predicate(expected, partial(convert, name=name), camel(name))
        if not tests:
            return None
        selection = Selection(tests)
        for key in self.api_keys:
            selection.check(key)
        if not self.api and not any(map(selection.is_in, api_keys.NAMES)):
            raise StubError(f"no request names {selection} in one place")
        return selection

    def check_reach(self, nodes: Collection[int], brokers: Collection[int], listeners: Collection[str]) -> None:
        """Raise StubError if no request can match: of these nodes' APIs, or of these brokers', if there are any yet."""
        for key in self.api_keys & api_keys.NAMES.keys():
            if key not in OF_SIMULATED_BROKERS and (self.broker is not None or key not in MODULES):
                servers = "a simulated broker" if key in MODULES else "a controller or simulated broker"
                raise StubError(f"{api_keys.NAMES[key]} is no API of {servers}", "match.api")
        for name, known in (("broker", brokers), ("node", [*nodes, *brokers])):
            if (expected := getattr(self, name)) is not None:
                check_known(name, shown(expected), known, _scope_test(name, expected))
        if self.listener is not None and not _has_function(self.listener):
            check_known("listener", shown(self.listener), listeners, _scope_test("listener", self.listener))

    def is_on_secret(self, path: str) -> bool:
        """Return True if the condition on the field at a path may be on a secret, so that texts do not quote it."""
        return is_secret_path(path, [expected for name, expected in self.where.items() if name.endswith("name")])

    @cached_property
    def scope_tests(self) -> tuple[tuple[str, RequestTest], ...]:
        """Tests of scopes, each with the one attribute of StubRequest that it depends on."""
        given = ((_SCOPES[name][0], _scope(name, value).test) for name, value in self._scopes(pure=True).items())
        return (("broker", self.is_meant), *given)

    @cached_property
    def other_tests(self) -> tuple[RequestTest, ...]:
        """All other tests except of the API: of fields, and of scopes by a function that a test gave."""
        pure = {camel(name) for name in self._scopes(pure=True)} | {"api"}
        return tuple(
            condition.test
            for condition in self.conditions
            if condition.path not in pure or condition.path in self.where
        )

    def to_json(self, *, show_secrets: bool = True) -> Tree:
        """Return the match as JSON, which `from_json` reads if it has its secrets."""
        tree: Tree = {}
        if self.api:
            tree["api"] = self.api_names[0] if len(self.api_names) == 1 else list(self.api_names)
        tree |= {camel(name): shown(expected) for name, expected in (self._scopes() | self._entities()).items()}
        where: dict[str, object] = {
            path: expected if show_secrets or not self.is_on_secret(path) else HIDDEN
            for path, expected in self.where.items()
        }
        return tree | ({"where": shown(where)} if where else {})

    @classmethod
    def from_json(cls, tree: Json) -> Match:
        """Read a match from a JSON object. Raise StubError that names the field."""
        if not isinstance(tree, Mapping):
            raise StubError(f"expected an object, got {tree!r}")
        for name in tree:
            if snake(str(name)) not in cls.__dataclass_fields__:
                known = map(camel, cls.__dataclass_fields__)
                raise StubError(unknown("match by", name, known) + "; a field of the request goes into where", name)
        given = {snake(name): value for name, value in tree.items()}
        return cls(api=_names(given.pop("api", None)), where=_conditions(given.pop("where", {})), **given)

    def and_where(self, **conditions: object) -> Match:
        """Return the match with more conditions, as keywords of `stub`."""
        scopes, where = keywords(conditions, self)
        return replace(self, api=self.api, where=where, **scopes)

    def _entities(self) -> dict[str, object]:
        return {name: value for name in ENTITIES if (value := getattr(self, name)) is not None}

    def _of_entities(self, selection: Selection) -> Condition:
        def whole(received: StubRequest) -> Message:
            return received.in_session or received.request

        def test(received: StubRequest) -> bool:
            return selection.of(whole(received), received.api_version, received.topic_name) is not None

        def actual(received: StubRequest) -> object:
            return selection.named(whole(received), received.api_version, received.topic_name)

        given = self._entities()
        return Condition(str(selection), next(iter(given.values())) if len(given) == 1 else given, test, actual)

    def _scopes(self, *, pure: bool = False) -> dict[str, object]:
        given = {name: value for name in _SCOPES if (value := getattr(self, name)) is not None}
        return {name: value for name, value in given.items() if not (pure and _has_function(value))}


def api_key(api: object) -> int:
    """Return the number of an API from its name in any spelling (`BrokerHeartbeat`, `BROKER_HEARTBEAT`) or its number.

    Raise StubError.
    """
    if type(api) is int:
        return api
    if not isinstance(api, str):
        raise StubError(f"expected an API's name or number, got {api!r}", "api")
    name = api.lower().replace("_", "")
    found = _KEYS.get(name, _KEYS.get(name.removesuffix("request")))
    if found is None:
        raise StubError(unknown("API", api, api_keys.NAMES.values()), "api")
    return found


def keywords(given: Mapping[str, object], match: Match | None = None) -> tuple[dict[str, object], dict[str, object]]:
    """Return a match's scopes and its conditions on fields, from keywords.

    Examples: `broker_id=1`, `client_id__startswith="raft"`, `epoch__gte=5`.

    Two underscores precede an operator or a nested field. A name that is no scope is a field of the request.
    """
    parts: dict[str, object] = {}
    where: dict[str, object] = dict(match.where) if match is not None else {}
    for keyword, expected in given.items():
        *names, last = keyword.split("__")
        operator = NAMES_IN_PYTHON.get(last) if names else None
        path = names if operator else [*names, last]
        value = expected if operator is None else {operator: expected}
        name = ".".join(map(camel, path))
        into, key = (parts, path[0]) if len(path) == 1 and path[0] in _KEYWORDS else (where, name)
        before = into.get(key)
        into[key] = {**before, **value} if isinstance(before, dict) and isinstance(value, dict) else value
    return parts, where


class ExchangeRequest(StubRequest):
    """The request of an exchange of the journal, decoded on first access; `is_shown`: as people may see it."""

    __slots__ = ("_exchange", "_is_shown")

    def __init__(self, exchange: Exchange, *, is_shown: bool = False) -> None:
        self._exchange = exchange
        self._is_shown = is_shown
        self.api_key = exchange.api_key
        self.api_version = exchange.api_version
        self.client_id = exchange.client_id
        self.connection = exchange.connection_id
        self.listener = exchange.client.listener
        self.node = exchange.node_id
        self.broker = exchange.node_id if exchange.at_broker else -1
        self.principal = exchange.principal
        self.topic_name = exchange.topic_name
        self.in_session = None

    def __getattr__(self, name: str) -> Message | int:
        if name == "request":
            self.request = self._exchange.shown_request if self._is_shown else self._exchange.request
            return self.request
        if name == "broker_id":
            named = sender(self.request)
            authenticated = self._exchange.broker_id
            if named >= 0:
                self.broker_id = named
            elif authenticated >= 0:
                self.broker_id = authenticated
            else:
                self.broker_id = sender_by_client_id(self.client_id)
            return self.broker_id
        raise AttributeError(name)


def _has_function(expected: object) -> bool:
    inner = expected.values() if isinstance(expected, Mapping) else ()
    return callable(expected) or any(map(_has_function, inner))


def _conditions(where: object) -> Mapping[str, object]:
    if not isinstance(where, Mapping):
        raise StubError(f"expected an object of conditions by field, got {where!r}", "where")
    return where


def _names(api: object) -> tuple[ApiName | int, ...]:
    if api is None:
        return ()
    given = api if isinstance(api, list | tuple | set | frozenset) else (api,)
    names = (api_keys.NAMES.get(key, key) for key in map(api_key, given))
    return cast("tuple[ApiName | int, ...]", tuple(names))


def _api(received: StubRequest) -> str:
    return api_keys.name(received.api_key)


def _integer(value: object, name: str) -> object:
    if type(value) is not int:
        raise StubError(f"expected an integer, got {value!r}", camel(name))
    return value


def _text(value: object, name: str) -> object:
    if not isinstance(value, str):
        raise StubError(f"expected a text, got {value!r}", camel(name))
    return value


_SCOPES: dict[str, tuple[str, Callable[[object, str], object], str]] = {
    "version": ("api_version", _integer, "version of the request"),
    "broker_id": ("broker_id", _integer, "id of the sending broker"),
    "client_id": ("client_id", _text, "the client id"),
    "connection": ("connection", _integer, "number of the connection, from 1"),
    "listener": ("listener", _text, "name of the listener"),
    "node": ("node", _integer, "id of the controller or simulated broker that received it"),
    "principal": ("principal", _text, "the authenticated principal, as User:name"),
    "broker": ("broker", _integer, "id of the simulated broker that received it"),
}

_KEYWORDS = _SCOPES.keys() | ENTITIES.keys()

SCOPES = (
    {"api": "name or number of the API"}
    | {camel(name): summary for name, (_, _, summary) in _SCOPES.items()}
    | {camel(name): f"{each.summary} that the request names" for name, each in ENTITIES.items()}
)
"""Request properties that can be matched besides the fields, with descriptions."""


def _scope_test(name: str, expected: object) -> Test:
    convert = _SCOPES[name][1]
    if name == "version" and isinstance(expected, Mapping) and expected.keys() <= {"min", "max"} and expected:
        expected = {"gte" if bound == "min" else "lte": value for bound, value in expected.items()}
    return predicate(expected, lambda value: None if value is None else convert(value, name), camel(name))


def _scope(name: str, expected: object) -> Condition:
    attribute, test = _SCOPES[name][0], _scope_test(name, expected)

    def actual(received: StubRequest) -> object:
        return CONTROLLER if name == "broker" and received.broker < 0 else getattr(received, attribute)

    if type(expected) is int:
        return Condition(camel(name), expected, lambda received: getattr(received, attribute) == expected, actual)
    return Condition(camel(name), expected, lambda received: test(getattr(received, attribute)), actual)


class _InApi(NamedTuple):
    """Compile a `where` for one API's request: how to read the field, and its test."""

    read: Callable[[Message], object]
    test: Test


def _where(path: str, expected: object, keys: frozenset[int]) -> Condition:
    field_name = f"where.{path}"

    def in_api(key: int) -> _InApi:
        try:
            found = _request_field(key, path)
            is_list = found.spec.is_array and not found.is_element
            wanted = {"eq": expected} if is_list and isinstance(expected, list | tuple) else expected
            test = predicate(wanted, found.value, field_name, found.part)
        except StubError as wrong:
            raise StubError(wrong.what, field_name) from None
        return _InApi(found.reader(), any_of(test) if found.is_many else test)

    if keys:
        by_api: dict[int, _InApi | None] = {key: in_api(key) for key in keys}
    else:
        by_api = _in_every_api(in_api, path)

    def test(received: StubRequest) -> bool:
        found = by_api.get(received.api_key)
        return found is not None and found.test(found.read(received.request))

    def actual(received: StubRequest) -> object:
        found = by_api.get(received.api_key)
        return None if found is None else found.read(received.request)

    return Condition(path, expected, test, actual)


def _request_field(key: int, path: str) -> FieldPath:
    """Return a field of a request. The StubError names an operator or a scope that may have been meant."""
    try:
        return field_path(messages.request(key), path)
    except StubError as wrong:
        of, _, last = path.rpartition(".")
        near = similar_names(snake(last), map(snake, OPERATORS) if of else _KEYWORDS)
        if not near or "did you mean" in wrong.what:
            raise
        raise StubError(f"{wrong.what}; did you mean {' or '.join(near)}?") from None


def _in_every_api(in_api: Callable[[int], _InApi], path: str) -> dict[int, _InApi | None]:
    by_api: dict[int, _InApi | None] = {}
    for key in api_keys.NAMES:
        try:
            by_api[key] = in_api(key)
        except StubError:
            continue
    if not by_api:
        raise StubError("no request has such a field", f"where.{path}")
    return by_api
