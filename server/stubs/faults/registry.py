"""The faults of a controller or of all nodes of a quorum: switched by name, by hand or by a plan."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Protocol

from mockraft.kafka_api.api import NEVER_MS
from mockraft.server.events import Change, Events
from mockraft.wire.names import did_you_mean, snake

if TYPE_CHECKING:
    from mockraft.server.stubs.faults.fault import ConnectionMatch, Fault, FaultTarget, Kind
    from mockraft.server.stubs.faults.plan import Plan
    from mockraft.wire.json_form import Json, Tree

_SCOPES = ("client_id", "broker_id", "connection", "listener", "node", "address", "broker")
_FIELDS = ("id", "name", "kind", "enabled", "match", "toxicity", "seed", "params")
_READ_ONLY = ("fired", "error")


class Wire(Protocol):
    """The sockets of a node, as faults use them."""

    def now_ms(self) -> int:
        """Return the time by the node's clock."""

    def faults_changed(self) -> None:
        """Match faults and connections again, and rearm the timer."""


class Faults:
    """Faults by id, in the order in which they were added, and the plan that switches some of them.

    `toxics` are the toxics that are on, `depends_on_requests` is True if one of them depends on a client's requests,
    and `next_ms` is when `tick` has to be called.
    """

    def __init__(self, events: Events | None = None) -> None:
        self.events = events or Events()
        self.toxics: tuple[Fault, ...] = ()
        self.depends_on_requests = False
        self.next_ms = NEVER_MS
        self.double: FaultTarget | None = None
        self.check: Callable[[ConnectionMatch], None] = lambda match: None
        """Raises StubError for a match that no connection can meet."""
        self._faults: dict[str, Fault] = {}
        self._wires: list[Wire] = []
        self._made = 0
        self._waiting: list[Fault] = []
        self._plan: Plan | None = None
        self._planned: list[Fault] = []

    @property
    def kinds(self) -> Mapping[str, Kind]:
        """Return every kind of fault by its name."""
        from mockraft.server.stubs.faults.presets import KINDS

        return KINDS

    def add(
        self,
        kind: str,
        *,
        toxicity: float = 1.0,
        seed: int = 0,
        enabled: bool = True,
        id: str | None = None,  # noqa: A002 - the same name in Python, HTTP and on the command line
        name: str | None = None,
        **params: Json,
    ) -> Fault:
        """Add a fault of a kind, switched on unless `enabled` is False.

        `params` are the kind's parameters and, for a toxic of bytes, the scopes of its match (`client_id="admin"`).
        `toxicity` is the share of connections that it affects, from 0 to 1, drawn by `seed`. ValueError names what
        is wrong, and what a preset raises when it cannot be switched on.
        """
        tree: Tree = {"kind": kind, "toxicity": toxicity, "seed": seed, "enabled": enabled, "id": id, "name": name}
        scopes: Tree = {}
        if kind in self.kinds and self.kinds[kind].toxic is not None:
            scopes = {scope: params.pop(scope) for scope in _SCOPES if scope in params}
        if kind in self.kinds:
            self.kinds[kind].check_names(params)
        return self.add_json(tree | {"match": scopes, "params": params})

    def add_json(self, tree: Json) -> Fault:
        """Add a fault from its JSON form; see `add`. Fields that only the controller writes (`fired`) are ignored."""
        fault = self._read(tree)
        self._faults[fault.id] = fault
        assert isinstance(tree, Mapping)
        if tree.get("enabled", True):
            try:
                self._switch(fault, True)
            except BaseException:
                del self._faults[fault.id]
                raise
        return fault

    def get(self, fault_id: str) -> Fault:
        """Return the fault of this id. Raise KeyError."""
        return self._faults[fault_id]

    @property
    def all(self) -> list[Fault]:
        """Return every fault, in order."""
        return list(self._faults.values())

    @property
    def active(self) -> list[Fault]:
        """Return the faults that are switched on."""
        return [fault for fault in self._faults.values() if fault.enabled]

    def unfired(self) -> list[Fault]:
        """Return the faults that never took effect so far, so that a test does not pass without them."""
        return [fault for fault in self._faults.values() if not fault.fired]

    def remove(self, fault_id: str) -> None:
        """Switch a fault off and forget it. Raise KeyError, and what a preset raises that cannot be taken back."""
        fault = self._faults[fault_id]
        try:
            self._switch(fault, False)
        finally:
            del self._faults[fault_id]

    def enable(self, fault_id: str, is_enabled: bool = True) -> Fault:
        """Switch a fault on or off. Raise KeyError, and what a preset raises when it cannot be switched on."""
        fault = self._faults[fault_id]
        self._switch(fault, is_enabled)
        return fault

    def change_json(self, fault_id: str, tree: Mapping[str, Json]) -> Fault:
        """Change fields of a fault: `enabled`, `toxicity`, `params` (those that are named), `match`, `name`.

        A preset that is on is switched off and on again. Raise KeyError, and ValueError that names what is wrong.
        """
        fault = self._faults[fault_id]
        for fixed in ("id", "kind", "seed"):
            if fixed in tree and tree[fixed] != fault.to_json().get(fixed):
                raise ValueError(f"{fixed}: cannot be changed; remove the fault and add another")
        merged = fault.to_json() | dict(tree) | {"params": fault.params | _object(tree, "params", snake)}
        changed = self._read({**merged, "id": None})
        was_enabled = fault.enabled
        if fault.kind.on is not None:
            self._switch(fault, False)
        fault.params, fault.match, fault.toxicity, fault.name = (
            changed.params,
            changed.match,
            changed.toxicity,
            changed.name,
        )
        fault.ramped(1.0)
        self._switch(fault, bool(tree.get("enabled", was_enabled)))
        self._changed()
        return fault

    def reset(self) -> None:
        """Switch off and forget every fault, and the plan; all of them, also when one raises (see `remove`)."""
        self.stop_plan()
        with ExitStack() as removals:
            for fault_id in reversed(self._faults):
                removals.callback(self.remove, fault_id)
        self._planned.clear()
        self._made = 0

    def run(self, plan: Iterable[Json] | Mapping[str, Json]) -> None:
        """Switch faults by a plan from now on, or once the controller runs; it replaces the current plan.

        A plan is a list of steps: `{"at": ms, "duration": ms?, "ramp": ms?, "fault": {…}}`, or
        `{"chaos": {"seed": 7, …}}` for one that `chaos` draws. Faults of the plan before are forgotten.
        Raise ValueError.
        """
        if isinstance(plan, Mapping) and set(plan) == {"chaos"}:
            from mockraft.server.stubs.faults.chaos import chaos_from_json

            plan = chaos_from_json(_object(plan, "chaos"))
        from mockraft.server.stubs.faults.plan import Plan, read_plan

        steps = read_plan(plan, self._read)
        self.stop_plan()
        for fault in self._planned:
            if self._faults.get(fault.id) is fault:
                self.remove(fault.id)
        self._planned.clear()
        self._plan = Plan(steps, self._add_planned, self._switch)
        if self._wires:
            self.tick(self._wires[0].now_ms())
            self._changed()

    def stop_plan(self) -> None:
        """End the plan; the faults that it switched on are switched off and stay listed."""
        if self._plan is not None:
            plan, self._plan = self._plan, None
            plan.stop()
        self.next_ms = NEVER_MS

    def plan_json(self) -> list[Tree]:
        """Return the plan's steps in their JSON form, each with its `state`: waiting, on, over."""
        return self._plan.to_json() if self._plan is not None else []

    def attach(self, wire: Wire) -> None:
        """Register a node whose sockets are open."""
        self._wires.append(wire)
        wire.faults_changed()

    def detach(self, wire: Wire) -> None:
        """Forget a node whose sockets are closed."""
        if wire in self._wires:
            self._wires.remove(wire)

    def begin(self, now_ms: int) -> None:
        """Switch on the presets that were added before the controller ran, and begin the plan.

        One that fails (a quorum has no leader yet) is tried again at the next call.
        """
        waiting, self._waiting = self._waiting, []
        for fault in waiting:
            if fault.enabled and fault.in_force is None:
                self._put_in_force(fault)
                if fault.error is not None:
                    self._waiting.append(fault)
        for fault in self.active:
            self._tell(fault)
        if self._plan is not None:
            self.tick(now_ms)
            self._changed()

    def tick(self, now_ms: int) -> None:
        """Do what is due in the plan; several nodes may pass the same time."""
        if self._plan is not None:
            before = self.toxics
            self.next_ms = self._plan.tick(now_ms)
            if self._plan.ramps or before != self.toxics:
                self._changed()

    def _read(self, tree: Json) -> Fault:
        # Imported here: a controller without faults starts sooner.
        from mockraft.server.stubs.faults.fault import ConnectionMatch, Fault

        kinds = self.kinds
        if not isinstance(tree, Mapping):
            raise ValueError(f"a fault must be an object, not {tree!r}")
        for field in tree:
            if field not in _FIELDS and field not in _READ_ONLY:
                raise ValueError(f"{field}: a fault has no such field; {did_you_mean(field, _FIELDS)}")
        kind_name = tree.get("kind")
        if not isinstance(kind_name, str) or kind_name not in kinds:
            raise ValueError(
                f"kind={kind_name!r}: there is no such kind of fault; {did_you_mean(str(kind_name), kinds)}"
            )
        kind = kinds[kind_name]
        toxicity, seed = tree.get("toxicity", 1.0), tree.get("seed", 0)
        if isinstance(toxicity, bool) or not isinstance(toxicity, int | float) or not 0 <= toxicity <= 1:
            raise ValueError(f"toxicity={toxicity!r}: must be the share of affected connections, from 0 to 1")
        if isinstance(seed, bool) or not isinstance(seed, int):
            raise ValueError(f"seed={seed!r}: must be an integer")
        if not isinstance(tree.get("enabled", True), bool):
            raise ValueError(f"enabled={tree['enabled']!r}: must be true or false")
        match = _object(tree, "match")
        if match and kind.toxic is None:
            raise ValueError(f"match: {kind.name} is no toxic of connections; give its parameters instead")
        params = kind.read(_object(tree, "params"))
        on_connections = ConnectionMatch.read(match)
        self.check(on_connections)
        name, fault_id = _text(tree, "name"), _text(tree, "id") or self._new_id(kind)
        if fault_id in self._faults:
            raise ValueError(f"id={fault_id!r}: there is a fault of this id already")
        fault = Fault(fault_id, kind, on_connections, float(toxicity), seed, params)
        fault.name = name
        return fault

    def _new_id(self, kind: Kind) -> str:
        while True:
            self._made += 1
            fault_id = f"{kind.name}-{self._made}"
            if fault_id not in self._faults:
                return fault_id

    def _add_planned(self, fault: Fault) -> None:
        if fault.id in self._faults:
            fault.id = self._new_id(fault.kind)
        self._faults[fault.id] = fault
        self._planned.append(fault)

    def _switch(self, fault: Fault, is_on: bool) -> None:
        if fault.enabled == is_on:
            return
        fault.enabled = is_on
        if fault.kind.on is None:
            self._changed()
        elif not is_on:
            fault.switch_off()
        elif self._wires and self.double is not None:
            try:
                self._put_in_force(fault, raises=True)
            except BaseException:
                fault.enabled = False
                raise
        else:
            self._waiting.append(fault)
        self._tell(fault)

    def _tell(self, fault: Fault) -> None:
        """Add an event if a fault was switched on or off; before the controller runs, `begin` does so."""
        is_on = fault.enabled and fault.error is None
        if self._wires and is_on != fault.is_told:
            fault.is_told = is_on
            change = Change("fault", fault.title.removeprefix("fault "), "on" if is_on else "off")
            self.events.add(change, self._wires[0].now_ms())

    def _put_in_force(self, fault: Fault, raises: bool = False) -> None:
        on, double = fault.kind.on, self.double
        assert on is not None
        assert double is not None
        before, self.events.cause = self.events.cause, lambda: fault.title
        try:
            if stubs := fault.switch_on(lambda: on(double, fault.params)).stubs:
                double.script.stubs.belong_to(fault.title, stubs)
            fault.error = None
        except Exception as error:
            if raises:
                raise
            fault.error = f"could not be switched on: {error}"
        finally:
            self.events.cause = before

    def _changed(self) -> None:
        self.toxics = tuple(fault for fault in self._faults.values() if fault.enabled and fault.kind.toxic is not None)
        self.depends_on_requests = any(fault.match.depends_on_requests for fault in self.toxics)
        for wire in list(self._wires):
            wire.faults_changed()


def _text(tree: Mapping[str, Json], field: str) -> str | None:
    value = tree.get(field)
    if value is not None and not isinstance(value, str):
        raise ValueError(f"{field}={value!r}: must be a text")
    return value


def _object(tree: Mapping[str, Json], field: str, name_of: Callable[[str], str] = str) -> Tree:
    value = tree.get(field) or {}
    if not isinstance(value, Mapping):
        raise ValueError(f"{field}={value!r}: must be an object")
    return {name_of(name): one for name, one in value.items()}
