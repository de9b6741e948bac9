"""A fault that is switched on, and the options of every fault."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypedDict

from mockraft.server.stubs.faults.fault import Fault
from mockraft.server.stubs.faults.registry import Faults

if TYPE_CHECKING:
    from mockraft.wire.json_form import Json

__tracebackhide__ = True  # pytest leaves this module's frames out of tracebacks


class FaultOptions(TypedDict, total=False):
    """Options of every fault."""

    match: Mapping[str, Json]
    toxicity: float
    seed: int
    enabled: bool
    id: str | None
    name: str | None


class ConnectionFaultOptions(FaultOptions, total=False):
    """Options of a fault of connections' bytes: also the scopes of `match`."""

    client_id: str
    broker_id: int
    connection: int
    listener: str
    node: int
    address: str
    broker: int


class SwitchedOn:
    """A fault that is switched on; as a context manager it ends with the block."""

    def __init__(self, fault: Fault, faults: Faults) -> None:
        self.fault = fault
        self._faults = faults

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id}, fired {self.fired} times>"

    @property
    def id(self) -> str:
        """Id of the fault."""
        return self.fault.id

    @property
    def fired(self) -> int:
        """Number of times that it acted."""
        return self.fault.fired

    def switch_off(self) -> None:
        """End it; it stays listed, so that a fault that never acted is still reported."""
        self._faults.enable(self.id, False)

    def switch_on(self) -> None:
        """Begin it again."""
        self._faults.enable(self.id, True)

    def remove(self) -> None:
        """End and forget it."""
        self._faults.remove(self.id)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if any(fault is self.fault for fault in self._faults.active):
            self.switch_off()
