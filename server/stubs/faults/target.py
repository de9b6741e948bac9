"""The parts of a running controller or quorum that faults use; `mockraft.server.double.Double` has them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from mockraft.server.stubs.stub_list import StubList
    from mockraft.server.views import BrokerView, QuorumView, RecordLike


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

    def restart_in_place(self) -> None:
        """Restart the only controller with its log."""
