"""Faults of a controller or quorum, switched by name; a test compares the methods with the table of kinds."""

# mypy: disable-error-code=empty-body

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, TypedDict, Unpack, cast

from mockraft.server.stubs.faults.fault import Fault
from mockraft.server.stubs.faults.registry import Faults
from mockraft.wire.names import did_you_mean

if TYPE_CHECKING:
    from mockraft.wire.error_codes import ErrorName
    from mockraft.wire.json_form import Json

__tracebackhide__ = True  # pytest leaves this module's frames out of tracebacks

Direction = Literal["upstream", "downstream", "both"]
FaultKind = Literal[
    "latency",
    "bandwidth",
    "slow_close",
    "half_open",
    "reset_peer",
    "slicer",
    "limit_data",
    "truncate",
    "corrupt",
    "duplicate",
    "down",
    "not_controller",
    "resign",
    "elect",
    "restart",
    "inconsistent_cluster_id",
    "registration_never_succeeds",
    "duplicate_registration",
    "heartbeat_storm",
    "never_caught_up",
    "lost_heartbeats",
    "stale_broker_epoch",
    "expire_session",
    "fence",
    "unfence",
    "should_shut_down",
    "shutdown_never_granted",
    "fail_log_dir",
    "unacknowledged_dead_dir",
    "throttle",
    "stall_metadata_fetch",
    "freeze_metadata_log",
    "diverge",
    "snapshot_not_found",
]
"""Name of a kind of fault; a test compares it with the table of kinds."""


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


class ControllerFaults:
    """Faults of a double. Every kind is a method: `faults.latency(latency_ms=100)`, `faults.not_controller()`.

    `kinds` lists them; `mockraft faults kinds` prints them with their parameters. The bodies of these methods only
    declare parameters: `_adding` replaces each by a call of `add` with its name.
    """

    def __init__(self, faults: Faults) -> None:
        self._faults = faults

    def add(self, kind: FaultKind | Mapping[str, Json], **params: Any) -> SwitchedOn:
        """Switch a fault on, by its kind and parameters, or by its JSON; for good, or as a block.

        Beside the kind's own parameters there are `toxicity`, `seed`, `match` and, for toxics of bytes, the scopes of
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

    def latency(
        self,
        *,
        direction: Direction = "downstream",
        latency_ms: int = 100,
        jitter_ms: int = 0,
        **options: Unpack[ConnectionFaultOptions],
    ) -> SwitchedOn:
        """Everything arrives later, in order."""

    def bandwidth(
        self,
        *,
        direction: Direction = "downstream",
        bytes_per_second: int = 10000,
        **options: Unpack[ConnectionFaultOptions],
    ) -> SwitchedOn:
        """The bandwidth of the line is limited."""

    def slow_close(
        self, *, direction: Direction = "downstream", delay_ms: int = 1000, **options: Unpack[ConnectionFaultOptions]
    ) -> SwitchedOn:
        """The end of a connection arrives late."""

    def half_open(
        self, *, direction: Direction = "both", timeout_ms: int = 0, **options: Unpack[ConnectionFaultOptions]
    ) -> SwitchedOn:
        """Connections are accepted and read, but never answered. At the end, those that lost bytes are closed."""

    def reset_peer(self, *, timeout_ms: int = 0, **options: Unpack[ConnectionFaultOptions]) -> SwitchedOn:
        """Connections are broken with a TCP RST."""

    def slicer(
        self,
        *,
        direction: Direction = "downstream",
        average_size: int = 64,
        size_variation: int = 0,
        delay_ms: int = 0,
        **options: Unpack[ConnectionFaultOptions],
    ) -> SwitchedOn:
        """Bytes arrive in small pieces."""

    def limit_data(
        self,
        *,
        direction: Direction = "downstream",
        bytes: int = 17,  # noqa: A002 - the parameter of the toxic
        **options: Unpack[ConnectionFaultOptions],
    ) -> SwitchedOn:
        """Connections are closed after a number of bytes, possibly in the middle of a frame."""

    def truncate(
        self,
        *,
        direction: Direction = "downstream",
        bytes: int = 17,  # noqa: A002 - the parameter of the toxic
        **options: Unpack[ConnectionFaultOptions],
    ) -> SwitchedOn:
        """After a number of bytes nothing more arrives; connections stay open until the fault ends."""

    def corrupt(
        self,
        *,
        direction: Direction = "downstream",
        probability: float = 0.001,
        every_nth: int = 0,
        **options: Unpack[ConnectionFaultOptions],
    ) -> SwitchedOn:
        """Bytes are changed: each n-th, or each with a probability."""

    def duplicate(
        self,
        *,
        direction: Direction = "downstream",
        probability: float = 1.0,
        **options: Unpack[ConnectionFaultOptions],
    ) -> SwitchedOn:
        """Everything that is written at once (downstream: an answer) arrives twice."""

    def down(self, **options: Unpack[ConnectionFaultOptions]) -> SwitchedOn:
        """Connections break, and new ones break at once."""

    def not_controller(self, broker_id: int = -1, **options: Unpack[FaultOptions]) -> SwitchedOn:
        """Answers NOT_CONTROLLER to all requests for the active controller; the metadata log goes on."""

    def resign(self, **options: Unpack[FaultOptions]) -> SwitchedOn:
        """The active controller resigns; in a quorum another one is elected, a single one leads again after 1.5 s."""

    def elect(self, node_id: int, **options: Unpack[FaultOptions]) -> SwitchedOn:
        """A failover: a node of the quorum becomes a candidate now, and leads once a majority votes for it."""

    def restart(self, **options: Unpack[FaultOptions]) -> SwitchedOn:
        """The controller stops as if it were killed, and restarts at once on the same port with the same log."""

    def inconsistent_cluster_id(self, broker_id: int = -1, **options: Unpack[FaultOptions]) -> SwitchedOn:
        """Answers INCONSISTENT_CLUSTER_ID to fetches of the metadata log and to registrations."""

    def registration_never_succeeds(
        self,
        broker_id: int = -1,
        *,
        error: ErrorName | Literal[""] = "DUPLICATE_BROKER_REGISTRATION",
        **options: Unpack[FaultOptions],
    ) -> SwitchedOn:
        """All registrations are refused."""

    def duplicate_registration(self, broker_id: int = -1, **options: Unpack[FaultOptions]) -> SwitchedOn:
        """Registrations are refused with DUPLICATE_BROKER_REGISTRATION: as if another process had the id."""

    def heartbeat_storm(self, broker_id: int = -1, **options: Unpack[FaultOptions]) -> SwitchedOn:
        """Heartbeats are answered with `isCaughtUp` false: a starting broker sends the next one after 10 ms."""

    def never_caught_up(self, broker_id: int = -1, **options: Unpack[FaultOptions]) -> SwitchedOn:
        """The controller regards no broker as caught up: the metadata offsets in heartbeats are ignored."""

    def lost_heartbeats(self, broker_id: int = -1, **options: Unpack[FaultOptions]) -> SwitchedOn:
        """Heartbeats are read, and neither counted nor answered, as by a controller that is busy."""

    def stale_broker_epoch(self, broker_id: int = -1, **options: Unpack[FaultOptions]) -> SwitchedOn:
        """Answers STALE_BROKER_EPOCH to requests with a broker epoch; the broker's session times out."""

    def expire_session(self, broker_id: int, **options: Unpack[FaultOptions]) -> SwitchedOn:
        """A broker's session ends: it is fenced, and unfenced by its next heartbeat."""

    def fence(self, broker_id: int, **options: Unpack[FaultOptions]) -> SwitchedOn:
        """A broker is fenced and stays fenced: its heartbeats are read as if they requested it."""

    def unfence(self, broker_id: int, **options: Unpack[FaultOptions]) -> SwitchedOn:
        """A broker is unfenced, whether it requested it or not."""

    def should_shut_down(self, broker_id: int = -1, **options: Unpack[FaultOptions]) -> SwitchedOn:
        """Heartbeats are answered with `shouldShutDown`."""

    def shutdown_never_granted(self, broker_id: int = -1, **options: Unpack[FaultOptions]) -> SwitchedOn:
        """No controlled shutdown completes: heartbeats are never answered with `shouldShutDown`."""

    def fail_log_dir(self, broker_id: int, *, log_dir: str = "", **options: Unpack[FaultOptions]) -> SwitchedOn:
        """A log directory is offline as if its broker had reported it; switched off, it is online again."""

    def unacknowledged_dead_dir(
        self, broker_id: int = -1, *, error: ErrorName = "UNKNOWN_SERVER_ERROR", **options: Unpack[FaultOptions]
    ) -> SwitchedOn:
        """Heartbeats that report a failed log directory are answered with an error."""

    def throttle(self, broker_id: int = -1, *, throttle_ms: int = 3000, **options: Unpack[FaultOptions]) -> SwitchedOn:
        """Registrations and heartbeats are answered with a throttle time, which clients respect."""

    def stall_metadata_fetch(self, broker_id: int = -1, **options: Unpack[FaultOptions]) -> SwitchedOn:
        """Fetches of the metadata log, and of its snapshots, are never answered."""

    def freeze_metadata_log(self, broker_id: int = -1, **options: Unpack[FaultOptions]) -> SwitchedOn:
        """Brokers see the metadata log as it is now: fetches are answered without newer records."""

    def diverge(self, broker_id: int = -1, *, records: int = 1, **options: Unpack[FaultOptions]) -> SwitchedOn:
        """Fetches are answered with a diverging epoch, some records below the high watermark."""

    def snapshot_not_found(self, broker_id: int = -1, **options: Unpack[FaultOptions]) -> SwitchedOn:
        """FetchSnapshot is answered with SNAPSHOT_NOT_FOUND; a snapshot is written first if there is none."""


def _adding(declared: Callable[..., SwitchedOn]) -> Callable[..., SwitchedOn]:
    parameters = inspect.signature(declared).parameters.values()
    _, *positional = (each.name for each in parameters if each.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD)

    kind = cast("FaultKind", declared.__name__)

    @functools.wraps(declared)
    def method(self: ControllerFaults, *args: object, **params: object) -> SwitchedOn:
        declared(self, *args, **params)  # TypeError for wrong arguments
        return self.add(kind, **dict(zip(positional, args, strict=False)), **params)

    return method


for _name, _method in list(vars(ControllerFaults).items()):
    if inspect.isfunction(_method) and "options" in inspect.signature(_method).parameters:
        setattr(ControllerFaults, _name, _adding(_method))
del _name, _method
