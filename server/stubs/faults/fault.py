"""A fault: its kind and parameters, the connections it affects, its work on their bytes, how often it took effect."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from enum import Enum
from random import Random
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeAlias

from mockraft.server.stubs.errors import check_known
from mockraft.wire.names import camel, did_you_mean, snake

if TYPE_CHECKING:
    from mockraft.server.raft.quorum_state import VoterChange
    from mockraft.server.stubs.stub import Stub
    from mockraft.server.stubs.stub_list import StubList
    from mockraft.server.views import BrokerView, QuorumView, RecordLike
    from mockraft.wire.json_form import Json, Tree


class _Script(Protocol):
    @property
    def stubs(self) -> StubList: ...


class _State(Protocol):
    def broker(self, broker_id: int) -> BrokerView: ...
    def brokers(self) -> Sequence[BrokerView]: ...
    def quorum(self) -> QuorumView: ...
    def snapshots(self) -> Sequence[object]: ...
    def snapshot(self) -> object: ...
    def append(self, records: Iterable[RecordLike]) -> object: ...
    def fence(self, broker_id: int) -> None: ...
    def unfence(self, broker_id: int) -> None: ...
    def expire_session(self, broker_id: int) -> None: ...
    def fail_log_dir(self, broker_id: int, directory: str | bytes) -> None: ...
    def resign(self) -> None: ...
    def elect_controller(self, node_id: int) -> None: ...
    def add_voter(self, node_id: int, port: int | None) -> VoterChange: ...
    def remove_voter(self, node_id: int) -> VoterChange: ...


class FaultTarget(Protocol):
    """A running controller, or quorum, that a fault acts on."""

    def nodes(self) -> Collection[int]:
        """Return the ids of the running nodes."""

    @property
    def script(self) -> _Script:
        """The stubs of all nodes."""

    @property
    def state(self) -> _State:
        """State of the controller, and commands that change it."""

    def restart_in_place(self, node_id: int | None) -> None:
        """Restart the only controller, or a node of a quorum, with its log."""

    def lose_disk(self, node_id: int) -> None:
        """Restart a node of a quorum with an empty data directory."""


class Required(Enum):
    """Default of a required parameter."""

    REQUIRED = "required"


REQUIRED: Final = Required.REQUIRED

_TYPES: dict[str, tuple[type, ...]] = {
    "int": (int,),
    "float": (int, float),
    "string": (str,),
    "choice": (str,),
    "bool": (bool,),
    "json": (dict, list, str, int, float, bool, type(None)),
}


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a kind of fault; `type` is int, float, string, bool, choice or json.

    `default` is REQUIRED where there is none. Numbers are from `minimum` to `maximum`. `grows`: a plan's ramp raises it
    from 0. `drawn` are the lowest and highest value that chaos draws; without it chaos leaves the default.
    """

    name: str
    type: str
    default: Json | Required
    help: str
    choices: tuple[str, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    grows: bool = False
    drawn: tuple[float, float] | None = None

    def read(self, value: Json) -> Json:
        """Return the checked value. Raise ValueError that names the allowed values."""
        field = f"params.{camel(self.name)}={value!r}"
        is_bool = isinstance(value, bool) and self.type not in ("bool", "json")
        if is_bool or not isinstance(value, _TYPES[self.type]):
            raise ValueError(f"{field}: must be a{'n' if self.type == 'int' else ''} {self.type} ({self.help})")
        if self.choices and value not in self.choices:
            raise ValueError(f"{field}: must be one of {', '.join(self.choices)}")
        if isinstance(value, int | float):
            if self.minimum is not None and value < self.minimum:
                raise ValueError(f"{field}: must be at least {self.minimum:g} ({self.help})")
            if self.maximum is not None and value > self.maximum:
                raise ValueError(f"{field}: must be at most {self.maximum:g} ({self.help})")
        return value

    def to_json(self) -> Tree:
        """Return what a form needs to show an input for it."""
        tree: Tree = {
            "name": camel(self.name),
            "type": self.type,
            "required": self.default is REQUIRED,
            "default": None if self.default is REQUIRED else self.default,
            "help": self.help,
        }
        return tree | ({"choices": self.choices} if self.choices else {})


class Params(dict[str, "Json"]):
    """Checked parameters of a fault by snake_case name, read as the type that the table of its kind gives them."""

    def number(self, name: str) -> float:
        """Return a number; AssertionError if the table gives the parameter another type or no value."""
        value = self[name]
        assert isinstance(value, int | float), name
        return value

    def integer(self, name: str) -> int:
        """Return an integer, as `number`."""
        value = self[name]
        assert isinstance(value, int), name
        return value

    def text(self, name: str) -> str:
        """Return a text, as `number`."""
        value = self[name]
        assert isinstance(value, str), name
        return value


Undo = Callable[[], None]


class InForce(NamedTuple):
    """A preset that is switched on: how to take it back, how often it took effect so far, and its stubs.

    `refusal` returns the error of a controller that decides later, None if there is none.
    """

    undo: Undo
    fired: Callable[[], int]
    stubs: Sequence[Stub] = ()
    refusal: Callable[[], str | None] | None = None


SwitchOn: TypeAlias = "Callable[[FaultTarget, Params], Undo | InForce]"


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of fault: a preset, switched on by `on(double, params)`, or a toxic of connections' bytes.

    `params` have every parameter by its snake_case name. What `on` returns takes the preset's work back again.
    """

    name: str
    summary: str
    parameters: tuple[Parameter, ...]
    on: SwitchOn | None = None
    toxic: type[Toxic] | None = None

    def check_names(self, names: Iterable[str], spelled: Callable[[str], str] = str) -> None:
        """Raise ValueError for a name that is no parameter's; the names are shown as JSON spells them, or Python."""
        known = [parameter.name for parameter in self.parameters]
        for name in names:
            if name not in known:
                hint = did_you_mean(name, map(spelled, known))
                raise ValueError(f"params.{spelled(name)}: {self.name} has no such parameter; {hint}")

    def read(self, params: Mapping[str, Json]) -> Params:
        """Return all parameters by snake_case name, from names in either case. ValueError names the parameter."""
        given = {snake(name): value for name, value in params.items()}
        self.check_names(given, camel)
        checked = Params()
        for parameter in self.parameters:
            name = parameter.name
            if name in given:
                checked[name] = parameter.read(given[name])
            elif parameter.default is REQUIRED:
                raise ValueError(f"params.{camel(name)}: {self.name} requires it ({parameter.help})")
            else:
                checked[name] = parameter.default
        return checked

    def to_json(self) -> Tree:
        """Return the kind as the live page and the command line list it."""
        return {
            "name": self.name,
            "summary": self.summary,
            "preset": self.on is not None,
            "parameters": [parameter.to_json() for parameter in self.parameters],
        }


class ClientEnd(NamedTuple):
    """The client end of a connection; `client_id` (or None) and `broker_id` (or -1) come from its requests.

    `broker` is the simulated broker that it is connected to, -1 for a controller.
    """

    client_id: str | None
    broker_id: int
    connection: int
    listener: str
    node: int
    address: str
    broker: int = -1


_INTEGERS = {"broker_id", "connection", "node", "broker"}


@dataclass(frozen=True, slots=True)
class ConnectionMatch:
    """The connections a fault affects: those that agree with every scope given, each as one of its values.

    `address` is the client's host without its port. `broker` names the simulated brokers whose clients are affected;
    without it, a fault affects connections to controllers.
    """

    client_id: tuple[str, ...] = ()
    broker_id: tuple[int, ...] = ()
    connection: tuple[int, ...] = ()
    listener: tuple[str, ...] = ()
    node: tuple[int, ...] = ()
    address: tuple[str, ...] = ()
    broker: tuple[int, ...] = ()

    @classmethod
    def read(cls, tree: Mapping[str, Json]) -> ConnectionMatch:
        """Return a match from scopes with a value or a list of them, in either case. ValueError names the scope."""
        names = [scope.name for scope in fields(cls)]
        match = cls()
        for key, value in tree.items():
            scope = snake(key)
            if scope not in names:
                raise ValueError(
                    f"match.{key}: a fault of connections has no such scope; {did_you_mean(key, map(camel, names))}"
                )
            values = tuple(value) if isinstance(value, list | tuple | set) else (value,)
            wanted = int if scope in _INTEGERS else str
            if not values or any(not isinstance(one, wanted) or isinstance(one, bool) for one in values):
                kind = "number" if wanted is int else "text"
                raise ValueError(f"match.{key}={value!r}: must be a {kind} or a list of them")
            match = replace(match, **{scope: values})
        return match

    @property
    def depends_on_requests(self) -> bool:
        """True if the match depends on what a client has sent."""
        return bool(self.client_id or self.broker_id)

    def meets(self, client: ClientEnd) -> bool:
        """Return True if the connection matches."""
        if client.broker >= 0 and not self.broker:
            return False
        wanted = ((getattr(self, scope), getattr(client, scope)) for scope in ClientEnd._fields)
        return all(not values or actual in values for values, actual in wanted)

    def check_reach(self, nodes: Collection[int], brokers: Collection[int], listeners: Collection[str]) -> None:
        """Raise StubError, a ValueError, if it names none of these nodes, brokers or listeners, if there are any."""
        given = self.to_json()
        for scope, known in (("broker", brokers), ("node", [*nodes, *brokers])):
            if scope in given:
                check_known(scope, given[scope], known, getattr(self, scope).__contains__)
        if self.listener:
            check_known("listener", given["listener"], listeners, self.listener.__contains__)

    def to_json(self) -> Tree:
        """Return the scopes as JSON, a single value without its list."""
        given = {scope.name: getattr(self, scope.name) for scope in fields(self)}
        return {
            camel(name): values[0] if len(values) == 1 else list(values) for name, values in given.items() if values
        }


class Fault:
    """A fault as it was added; `params_now` are its parameters at this point of a ramp, `met` the counts of its toxics.

    `error` is why it could not be switched on when no caller was there to get the exception, or what was refused later.
    """

    def __init__(
        self, fault_id: str, kind: Kind, match: ConnectionMatch, toxicity: float, seed: int, params: Params
    ) -> None:
        self.id = fault_id
        self.name: str | None = None
        self.kind = kind
        self.match = match
        self.toxicity = toxicity
        self.toxicity_now = toxicity
        self.seed = seed
        self.params = params
        self.params_now = Params(params)
        self.enabled = False
        self.met = 0
        self._error: str | None = None
        self.in_force: InForce | None = None
        self.is_told = False
        """True if the newest event of it says that it is on."""

    @property
    def error(self) -> str | None:
        """The error of this fault, if there is one."""
        refusal = self.in_force.refusal if self.in_force is not None else None
        return self._error or (refusal() if refusal is not None else None)

    @error.setter
    def error(self, error: str | None) -> None:
        self._error = error

    @property
    def fired(self) -> int:
        """Number of effects: chunks for delays and slicing, bytes for corrupt, calls for presets."""
        return self.met + (self.in_force.fired() if self.in_force is not None else 0)

    @property
    def is_pending(self) -> bool:
        """True if it failed, or its controller has not decided yet."""
        decides_later = self.in_force is not None and self.in_force.refusal is not None
        return self.error is not None or (decides_later and not self.fired)

    @property
    def title(self) -> str:
        """Its name in events."""
        return f"fault {self.name or self.id}"

    def may_meet(self, broker_id: int) -> bool:
        """Return True if its scopes do not exclude a broker whose client id is the usual one."""
        match = self.match
        return (
            not (match.connection or match.broker)
            and (not match.broker_id or broker_id in match.broker_id)
            and (not match.client_id or str(broker_id) in match.client_id)
        )

    def works_on(self, direction: str) -> bool:
        """Return True if the toxic works on this direction; one that ends a connection works on that to the client."""
        return self.params.get("direction", "downstream") in (direction, "both")

    def meets(self, client: ClientEnd) -> bool:
        """Return True if it affects this connection; toxicity is drawn once for each, the same in every run."""
        if not self.match.meets(client):
            return False
        return self.toxicity_now >= 1 or self.rng(client, "toxicity").random() < self.toxicity_now

    def rng(self, client: ClientEnd, what: str) -> Random:
        """Return this fault's random draws for one purpose on one connection."""
        return Random(f"{self.seed}/{self.kind.name}/{client.node}/{client.connection}/{what}")

    def ramped(self, share: float) -> None:
        """Scale the fault from 0 to 1: its parameters that can grow, else its toxicity."""
        grown = [parameter for parameter in self.kind.parameters if parameter.grows]
        self.params_now = Params(self.params)
        self.toxicity_now = self.toxicity
        for parameter in grown:
            value = self.params.number(parameter.name) * share
            self.params_now[parameter.name] = round(value) if parameter.type == "int" else value
        if not grown:
            self.toxicity_now *= share

    def switch_on(self, do: Callable[[], Undo | InForce]) -> InForce:
        """Switch on, with what the preset's `on` returns, and return how to take it back."""
        done = do()
        self.in_force = done if isinstance(done, InForce) else InForce(done, lambda: 1)
        return self.in_force

    def switch_off(self) -> None:
        """Take back what it did; its count stays."""
        if self.in_force is not None:
            self._error, self.met, in_force, self.in_force = self.error, self.fired, self.in_force, None
            in_force.undo()

    def to_json(self) -> Tree:
        """Return options and counts, as the admin API has them."""
        tree: Tree = {
            "id": self.id,
            "kind": self.kind.name,
            "enabled": self.enabled,
            "params": {camel(name): value for name, value in self.params.items()},
            "fired": self.fired,
        }
        if self.kind.toxic is not None:
            tree |= {"match": self.match.to_json(), "toxicity": self.toxicity, "seed": self.seed}
        if self.name is not None:
            tree["name"] = self.name
        if self.error is not None:
            tree["error"] = self.error
        return tree


class End(Enum):
    """The way in which a direction ends."""

    CLOSE = "close"
    RESET = "reset"


Item = tuple[float, bytes | End]


class Toxic:
    """A fault at work on one direction of one connection since `began_ms`; the base class lets everything pass."""

    def __init__(self, fault: Fault, rng: Random, began_ms: int) -> None:
        self.fault = fault
        self.lost = False
        """True if bytes of the stream are lost, so that it can never be whole again."""
        self._rng = rng
        self._last_ms = float(began_ms)

    @property
    def params(self) -> Params:
        """The fault's current parameters: a ramp changes them."""
        return self.fault.params_now

    def data(self, at_ms: float, data: bytes) -> Iterator[Item]:
        """Return the pieces that go on for bytes that arrive."""
        yield at_ms, data

    def close(self, at_ms: float) -> float:
        """Return when the end of the stream goes on that arrives at a time."""
        return at_ms

    def end(self) -> tuple[float, End] | None:
        """When and how the toxic ends the connection by itself."""
        return None
