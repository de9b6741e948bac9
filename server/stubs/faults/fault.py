"""One fault: its kind and parameters, the connections it affects, and how often it took effect."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from random import Random
from typing import TYPE_CHECKING, NamedTuple

from mockraft.server.stubs.faults.kinds import InForce, Kind, Params, Undo
from mockraft.wire.names import camel, did_you_mean, snake

if TYPE_CHECKING:
    from mockraft.wire.json_form import Json, Tree


class ClientEnd(NamedTuple):
    """The client end of a connection; `client_id` (or None) and `broker_id` (or -1) come from its requests."""

    client_id: str | None
    broker_id: int
    connection: int
    listener: str
    node: int
    address: str


_INTEGERS = {"broker_id", "connection", "node"}


@dataclass(frozen=True, slots=True)
class ConnectionMatch:
    """The connections a fault affects: those that agree with every scope given, each as one of its values.

    `address` is the client's host without its port.
    """

    client_id: tuple[str, ...] = ()
    broker_id: tuple[int, ...] = ()
    connection: tuple[int, ...] = ()
    listener: tuple[str, ...] = ()
    node: tuple[int, ...] = ()
    address: tuple[str, ...] = ()

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
        wanted = ((getattr(self, scope), getattr(client, scope)) for scope in ClientEnd._fields)
        return all(not values or actual in values for values, actual in wanted)

    def to_json(self) -> Tree:
        """Return the scopes as JSON, a single value without its list."""
        given = {scope.name: getattr(self, scope.name) for scope in fields(self)}
        return {
            camel(name): values[0] if len(values) == 1 else list(values) for name, values in given.items() if values
        }


class Fault:
    """A fault as it was added; `params_now` are its parameters at this point of a ramp, `met` the counts of its toxics.

    `error` is why it could not be switched on when no caller was there to get the exception.
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
        self.error: str | None = None
        self.in_force: InForce | None = None

    @property
    def fired(self) -> int:
        """Number of effects: chunks for delays and slicing, bytes for corrupt, calls for presets."""
        return self.met + (self.in_force.fired() if self.in_force is not None else 0)

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

    def switch_on(self, do: Callable[[], Undo | InForce]) -> None:
        """Switch on, with what the preset's `on` returns."""
        done = do()
        self.in_force = done if isinstance(done, InForce) else InForce(done, lambda: 1)

    def switch_off(self) -> None:
        """Take back what it did; its count stays."""
        if self.in_force is not None:
            self.met, in_force, self.in_force = self.fired, self.in_force, None
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
