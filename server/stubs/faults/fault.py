"""One fault with its name, whom it meets and how often it did."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

from mockraft.server.stubs.faults.chance import ToxicChance
from mockraft.server.stubs.faults.kinds import InForce, Kind, camel, near, snake


class Speaker(NamedTuple):
    """Who is at the other end of a connection; `client_id` (or None) and `broker_id` (or -1) were said on it."""

    client_id: str | None
    broker_id: int
    connection: int
    listener: str
    node: int
    address: str


_INTEGERS = {"broker_id", "connection", "node"}


@dataclass(frozen=True, slots=True)
class ConnectionMatch:
    """Which connections a fault meets: those that agree with all that is said here, each as one of the values.

    `address` is the client's host without its port.
    """

    client_id: tuple[str, ...] = ()
    broker_id: tuple[int, ...] = ()
    connection: tuple[int, ...] = ()
    listener: tuple[str, ...] = ()
    node: tuple[int, ...] = ()
    address: tuple[str, ...] = ()

    @classmethod
    def read(cls, tree: Mapping[str, Any]) -> ConnectionMatch:
        """A match from scopes with a value or a list of them, in either case. ValueError names the scope."""
        names = [scope.name for scope in fields(cls)]
        said: dict[str, tuple[Any, ...]] = {}
        for key, value in tree.items():
            scope = snake(key)
            if scope not in names:
                raise ValueError(f"match.{key}: a fault of connections has no such scope{near(key, map(camel, names))}")
            values = tuple(value) if isinstance(value, list | tuple | set) else (value,)
            wanted = int if scope in _INTEGERS else str
            if not values or any(not isinstance(one, wanted) or isinstance(one, bool) for one in values):
                kind = "number" if wanted is int else "text"
                raise ValueError(f"match.{key}={value!r}: it is a {kind} or a list of them")
            said[scope] = values
        return cls(**said)

    @property
    def heeds_speech(self) -> bool:
        """Whether it depends on what was said on a connection."""
        return bool(self.client_id or self.broker_id)

    def meets(self, speaker: Speaker) -> bool:
        """Whether it is about this connection."""
        return (
            (not self.client_id or speaker.client_id in self.client_id)
            and (not self.broker_id or speaker.broker_id in self.broker_id)
            and (not self.connection or speaker.connection in self.connection)
            and (not self.listener or speaker.listener in self.listener)
            and (not self.node or speaker.node in self.node)
            and (not self.address or speaker.address in self.address)
        )

    def to_json(self) -> dict[str, Any]:
        """What was said, a single value without its list."""
        said = {scope.name: getattr(self, scope.name) for scope in fields(self)}
        return {camel(name): values[0] if len(values) == 1 else list(values) for name, values in said.items() if values}


class Fault:
    """A fault as it was added; `params_now` are its parameters on the way of a ramp, `met` what toxics count.

    `error` is why it could not be switched on when nobody was there to be told.
    """

    def __init__(
        self, fault_id: str, kind: Kind, match: ConnectionMatch, toxicity: float, seed: int, params: dict[str, Any]
    ) -> None:
        self.id = fault_id
        self.name: str | None = None
        self.kind = kind
        self.match = match
        self.toxicity = toxicity
        self.toxicity_now = toxicity
        self.seed = seed
        self.params = params
        self.params_now = dict(params)
        self.enabled = False
        self.met = 0
        self.error: str | None = None
        self.in_force: InForce | None = None

    @property
    def fired(self) -> int:
        """How often it did something: chunks for what delays or slices, bytes for corrupt, calls for presets."""
        return self.met + (self.in_force.fired() if self.in_force is not None else 0)

    def works_on(self, direction: str) -> bool:
        """Whether its toxic works on this direction; what ends a connection works on the one to the client."""
        return self.params.get("direction", "downstream") in (direction, "both")

    def meets(self, speaker: Speaker) -> bool:
        """Whether it works on this connection; toxicity decides once for each, the same in every run."""
        if not self.match.meets(speaker):
            return False
        return self.toxicity_now >= 1 or self.chance(speaker, "toxicity").random() < self.toxicity_now

    def chance(self, speaker: Speaker, what: str) -> ToxicChance:
        """ToxicChance of this fault for one thing about one connection."""
        return ToxicChance(f"{self.seed}/{self.kind.name}/{speaker.node}/{speaker.connection}/{what}")

    def ramped(self, share: float) -> None:
        """Be so much of itself, from 0 to 1: what grows is its parameters that can, else its toxicity."""
        grown = [parameter for parameter in self.kind.parameters if parameter.grows]
        self.params_now = dict(self.params)
        self.toxicity_now = self.toxicity
        for parameter in grown:
            value = self.params[parameter.name] * share
            self.params_now[parameter.name] = round(value) if parameter.type == "int" else value
        if not grown:
            self.toxicity_now *= share

    def switch_on(self, do: Callable[[], Any]) -> None:
        """Be in force by what a preset's `on` gives."""
        done = do()
        self.in_force = done if isinstance(done, InForce) else InForce(done, lambda: 1)

    def switch_off(self) -> None:
        """Take back what it did; how often it was met stays known."""
        if self.in_force is not None:
            self.met, in_force, self.in_force = self.fired, self.in_force, None
            in_force.undo()

    def to_json(self) -> dict[str, Any]:
        """The fault as every door says it."""
        tree: dict[str, Any] = {
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
