"""Faults of a controller or quorum, switched by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from mockraft.server.stubs.faults.fault import Fault
from mockraft.server.stubs.faults.registry import Faults
from mockraft.testing.fault_methods import FaultKind, FaultMethods
from mockraft.testing.switched_on import SwitchedOn
from mockraft.wire.names import did_you_mean

if TYPE_CHECKING:
    from mockraft.wire.json_form import Json

__tracebackhide__ = True  # pytest leaves this module's frames out of tracebacks


class ControllerFaults(FaultMethods):
    """Faults of a double. Every kind is a method: `faults.latency(latency_ms=100)`, `faults.not_controller()`.

    `kinds` lists them; `mockraft faults kinds` prints them with their parameters.
    """

    def __init__(self, faults: Faults) -> None:
        self._faults = faults

    def add(self, kind: FaultKind | Mapping[str, Json], **params: Any) -> SwitchedOn:
        """Switch a fault on, by its kind and parameters, or by its JSON; for good, or as a block.

        Beside the kind's own parameters there are `toxicity`, `seed` and, for toxics of bytes, the scopes of
        connections (`client_id`, `broker_id`, `connection`, `listener`, `node`, `broker`). ValueError: what is wrong.
        """
        fault = self._faults.add(kind, **params) if isinstance(kind, str) else self._faults.add_json(kind)
        return SwitchedOn(fault, self._faults)

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
        return self._faults.active

    def remove(self, fault_id: str) -> None:
        """End and forget a fault. KeyError."""
        self._faults.remove(fault_id)

    def unfired(self) -> list[Fault]:
        """Return the faults that never acted, switched on or not."""
        return self._faults.unfired()

    def run(self, plan: Iterable[Mapping[str, Json]] | Mapping[str, Json]) -> None:
        """Switch faults by a plan that begins now: `[{"at": 0, "duration": 500, "fault": {"kind": "latency"}}]`.

        `{"chaos": {"seed": 7, …}}` draws the steps at random. Times are milliseconds of the double's clock.
        ValueError names what is wrong.
        """
        self._faults.run(plan)

    def reset(self) -> None:
        """End and forget all of them, and the plan."""
        self._faults.reset()
