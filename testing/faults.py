"""Faults of a controller or quorum, switched on and off by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from mockraft.server.stubs.faults.fault import Fault
from mockraft.server.stubs.faults.registry import Faults
from mockraft.testing.fault_kinds import FaultKinds
from mockraft.wire.names import did_you_mean

if TYPE_CHECKING:
    from mockraft.testing.in_thread import Call
    from mockraft.wire.json_form import Json


__tracebackhide__ = True  # pytest leaves this module's frames out of tracebacks


class SwitchedOn:
    """A fault that is switched on; as a context manager it ends with the block."""

    def __init__(self, fault: Fault, faults: Faults, call: Call) -> None:
        self.fault = fault
        self._faults = faults
        self._call = call

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id}, fired {self.fired} times>"

    @property
    def id(self) -> str:
        """Id of the fault."""
        return self.fault.id

    @property
    def fired(self) -> int:
        """Number of times that it acted."""
        return self._call(lambda: self.fault.fired)

    def switch_off(self) -> None:
        """End it; it stays listed, so that a fault that never acted is still reported."""
        self._call(self._faults.enable, self.id, False)

    def switch_on(self) -> None:
        """Begin it again."""
        self._call(self._faults.enable, self.id, True)

    def remove(self) -> None:
        """End and forget it."""
        self._call(self._faults.remove, self.id)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if any(fault is self.fault for fault in self._call(lambda: self._faults.active)):
            self.switch_off()


class ControllerFaults(FaultKinds):
    """Faults of a double. Every kind is a method: `faults.latency(latency_ms=100)`, `faults.not_controller()`.

    `kinds` lists them; `mockraft faults kinds` prints them with their parameters.
    """

    def __init__(self, faults: Faults, call: Call) -> None:
        self._faults = faults
        self._call = call

    def add(self, kind: str | Mapping[str, Json], **params: Any) -> SwitchedOn:
        """Switch a fault on, by its kind and parameters, or by its JSON; for good, or as a block.

        Beside the kind's own parameters there are `toxicity`, `seed`, `match` and, for toxics of bytes, the scopes of
        connections (`client_id`, `broker_id`, `connection`, `listener`, `node`). ValueError names what is wrong.
        """
        try:
            if isinstance(kind, str):
                fault = self._call(lambda: self._faults.add(kind, **params))
            else:
                fault = self._call(self._faults.add_json, kind)
        except ValueError as error:
            # The frames inside mockraft do not help the test's author.
            raise error.with_traceback(None) from None
        return SwitchedOn(fault, self._faults, self._call)

    if not TYPE_CHECKING:  # a type checker knows the kinds, and refuses others

        def __getattr__(self, kind: str) -> object:
            raise AttributeError(f"there is no kind of fault {kind!r}; {did_you_mean(kind, self.kinds)}")

    def __repr__(self) -> str:
        return f"<faults, {len(self.active)} active>"

    @property
    def kinds(self) -> list[str]:
        """Names of the kinds of faults."""
        return list(self._faults.kinds)

    @property
    def active(self) -> list[Fault]:
        """Faults that are switched on."""
        return self._call(lambda: self._faults.active)

    def remove(self, fault_id: str) -> None:
        """End and forget a fault. KeyError."""
        self._call(self._faults.remove, fault_id)

    def unfired(self) -> list[Fault]:
        """Return the faults that never acted, switched on or not."""
        return self._call(self._faults.unfired)

    def run(self, plan: Iterable[Mapping[str, Json]] | Mapping[str, Json]) -> None:
        """Switch faults by a plan that begins now: `[{"at": 0, "duration": 500, "fault": {"kind": "latency"}}]`.

        `{"chaos": {"seed": 7, …}}` draws the steps at random. Times are milliseconds of the double's clock.
        ValueError names what is wrong.
        """
        self._call(self._faults.run, plan)

    def reset(self) -> None:
        """End and forget all of them, and the plan."""
        self._call(self._faults.reset)
