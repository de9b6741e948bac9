"""A method for each kind of fault, with its parameters; a test compares them with the table of kinds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack

if TYPE_CHECKING:
    from mockraft.double.faults import SwitchedOn
    from mockraft.wire.json_form import Json

__tracebackhide__ = True  # pytest leaves this module's frames out of tracebacks

Direction = Literal["upstream", "downstream", "both"]


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


class FaultKinds(ABC):
    """The kinds of faults as methods; each switches one on, for good or as a block."""

    @abstractmethod
    def add(self, kind: str | Mapping[str, Json], **params: Any) -> SwitchedOn:
        """Switch a fault on, by its kind and parameters or by its JSON."""

    def latency(
        self,
        *,
        direction: Direction = "downstream",
        latency_ms: int = 100,
        jitter_ms: int = 0,
        **options: Unpack[ConnectionFaultOptions],
    ) -> SwitchedOn:
        """Everything arrives later, in order."""
        return self.add("latency", direction=direction, latency_ms=latency_ms, jitter_ms=jitter_ms, **options)

    def bandwidth(
        self,
        *,
        direction: Direction = "downstream",
        bytes_per_second: int = 10000,
        **options: Unpack[ConnectionFaultOptions],
    ) -> SwitchedOn:
        """The bandwidth of the line is limited."""
        return self.add("bandwidth", direction=direction, bytes_per_second=bytes_per_second, **options)

    def slow_close(
        self, *, direction: Direction = "downstream", delay_ms: int = 1000, **options: Unpack[ConnectionFaultOptions]
    ) -> SwitchedOn:
        """The end of a connection arrives late."""
        return self.add("slow_close", direction=direction, delay_ms=delay_ms, **options)

    def half_open(
        self, *, direction: Direction = "both", timeout_ms: int = 0, **options: Unpack[ConnectionFaultOptions]
    ) -> SwitchedOn:
        """Connections are accepted and read, but never answered. At the end, those that lost bytes are closed."""
        return self.add("half_open", direction=direction, timeout_ms=timeout_ms, **options)

    def reset_peer(self, *, timeout_ms: int = 0, **options: Unpack[ConnectionFaultOptions]) -> SwitchedOn:
        """Connections are broken with a TCP RST."""
        return self.add("reset_peer", timeout_ms=timeout_ms, **options)

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
        return self.add(
            "slicer",
            direction=direction,
            average_size=average_size,
            size_variation=size_variation,
            delay_ms=delay_ms,
            **options,
        )

    def limit_data(
        self,
        *,
        direction: Direction = "downstream",
        bytes: int = 17,  # noqa: A002 - the parameter of the toxic
        **options: Unpack[ConnectionFaultOptions],
    ) -> SwitchedOn:
        """Connections are closed after a number of bytes, possibly in the middle of a frame."""
        return self.add("limit_data", direction=direction, bytes=bytes, **options)

    def truncate(
        self,
        *,
        direction: Direction = "downstream",
        bytes: int = 17,  # noqa: A002 - the parameter of the toxic
        **options: Unpack[ConnectionFaultOptions],
    ) -> SwitchedOn:
        """After a number of bytes nothing more arrives; connections stay open until the fault ends."""
        return self.add("truncate", direction=direction, bytes=bytes, **options)

    def corrupt(
        self,
        *,
        direction: Direction = "downstream",
        probability: float = 0.001,
        every_nth: int = 0,
        **options: Unpack[ConnectionFaultOptions],
    ) -> SwitchedOn:
        """Bytes are changed: each n-th, or each with a probability."""
        return self.add("corrupt", direction=direction, probability=probability, every_nth=every_nth, **options)

    def duplicate(
        self,
        *,
        direction: Direction = "downstream",
        probability: float = 1.0,
        **options: Unpack[ConnectionFaultOptions],
    ) -> SwitchedOn:
        """Everything that is written at once (downstream: an answer) arrives twice."""
        return self.add("duplicate", direction=direction, probability=probability, **options)

    def down(self, **options: Unpack[ConnectionFaultOptions]) -> SwitchedOn:
        """Connections break, and new ones break at once."""
        return self.add("down", **options)

    def not_controller(self, *, broker_id: int = -1, **options: Unpack[FaultOptions]) -> SwitchedOn:
        """Answers NOT_CONTROLLER to all requests for the active controller; the metadata log goes on."""
        return self.add("not_controller", broker_id=broker_id, **options)

    def resign(self, **options: Unpack[FaultOptions]) -> SwitchedOn:
        """The active controller resigns; in a quorum another one is elected, a single one leads again after 1.5 s."""
        return self.add("resign", **options)

    def elect(self, *, node_id: int, **options: Unpack[FaultOptions]) -> SwitchedOn:
        """A failover: a node of the quorum becomes a candidate now, and leads once a majority votes for it."""
        return self.add("elect", node_id=node_id, **options)

    def restart(self, **options: Unpack[FaultOptions]) -> SwitchedOn:
        """The controller stops as if it were killed, and restarts at once on the same port with the same log."""
        return self.add("restart", **options)

    def inconsistent_cluster_id(self, *, broker_id: int = -1, **options: Unpack[FaultOptions]) -> SwitchedOn:
        """Answers INCONSISTENT_CLUSTER_ID to fetches of the metadata log and to registrations."""
        return self.add("inconsistent_cluster_id", broker_id=broker_id, **options)

    def registration_never_succeeds(
        self, *, broker_id: int = -1, error: str = "DUPLICATE_BROKER_REGISTRATION", **options: Unpack[FaultOptions]
    ) -> SwitchedOn:
        """All registrations are refused."""
        return self.add("registration_never_succeeds", broker_id=broker_id, error=error, **options)

    def duplicate_registration(self, *, broker_id: int = -1, **options: Unpack[FaultOptions]) -> SwitchedOn:
        """Registrations are refused with DUPLICATE_BROKER_REGISTRATION: as if another process had the id."""
        return self.add("duplicate_registration", broker_id=broker_id, **options)

    def heartbeat_storm(self, *, broker_id: int = -1, **options: Unpack[FaultOptions]) -> SwitchedOn:
        """Heartbeats are answered with `isCaughtUp` false: a starting broker sends the next one after 10 ms."""
        return self.add("heartbeat_storm", broker_id=broker_id, **options)

    def never_caught_up(self, *, broker_id: int = -1, **options: Unpack[FaultOptions]) -> SwitchedOn:
        """The controller regards no broker as caught up: the metadata offsets in heartbeats are ignored."""
        return self.add("never_caught_up", broker_id=broker_id, **options)

    def stale_broker_epoch(self, *, broker_id: int = -1, **options: Unpack[FaultOptions]) -> SwitchedOn:
        """Answers STALE_BROKER_EPOCH to requests with a broker epoch; the broker's session times out."""
        return self.add("stale_broker_epoch", broker_id=broker_id, **options)

    def expire_session(self, *, broker_id: int, **options: Unpack[FaultOptions]) -> SwitchedOn:
        """A broker's session ends: it is fenced, and unfenced by its next heartbeat."""
        return self.add("expire_session", broker_id=broker_id, **options)

    def fence(self, *, broker_id: int, **options: Unpack[FaultOptions]) -> SwitchedOn:
        """A broker is fenced and stays fenced: its heartbeats are read as if they requested it."""
        return self.add("fence", broker_id=broker_id, **options)

    def unfence(self, *, broker_id: int, **options: Unpack[FaultOptions]) -> SwitchedOn:
        """A broker is unfenced, whether it requested it or not."""
        return self.add("unfence", broker_id=broker_id, **options)

    def should_shut_down(self, *, broker_id: int = -1, **options: Unpack[FaultOptions]) -> SwitchedOn:
        """Heartbeats are answered with `shouldShutDown`."""
        return self.add("should_shut_down", broker_id=broker_id, **options)

    def shutdown_never_granted(self, *, broker_id: int = -1, **options: Unpack[FaultOptions]) -> SwitchedOn:
        """No controlled shutdown completes: heartbeats are never answered with `shouldShutDown`."""
        return self.add("shutdown_never_granted", broker_id=broker_id, **options)

    def fail_log_dir(self, *, broker_id: int, log_dir: str = "", **options: Unpack[FaultOptions]) -> SwitchedOn:
        """A log directory is offline as if its broker had reported it; switched off, it is online again."""
        return self.add("fail_log_dir", broker_id=broker_id, log_dir=log_dir, **options)

    def unacknowledged_dead_dir(
        self, *, broker_id: int = -1, error: str = "UNKNOWN_SERVER_ERROR", **options: Unpack[FaultOptions]
    ) -> SwitchedOn:
        """Heartbeats that report a failed log directory are answered with an error."""
        return self.add("unacknowledged_dead_dir", broker_id=broker_id, error=error, **options)

    def throttle(self, *, broker_id: int = -1, throttle_ms: int = 3000, **options: Unpack[FaultOptions]) -> SwitchedOn:
        """Registrations and heartbeats are answered with a throttle time, which clients respect."""
        return self.add("throttle", broker_id=broker_id, throttle_ms=throttle_ms, **options)

    def stall_metadata_fetch(self, *, broker_id: int = -1, **options: Unpack[FaultOptions]) -> SwitchedOn:
        """Fetches of the metadata log, and of its snapshots, are never answered."""
        return self.add("stall_metadata_fetch", broker_id=broker_id, **options)

    def freeze_metadata_log(self, *, broker_id: int = -1, **options: Unpack[FaultOptions]) -> SwitchedOn:
        """Brokers see the metadata log as it is now: fetches are answered without newer records."""
        return self.add("freeze_metadata_log", broker_id=broker_id, **options)

    def diverge(self, *, broker_id: int = -1, records: int = 1, **options: Unpack[FaultOptions]) -> SwitchedOn:
        """Fetches are answered with a diverging epoch, some records below the high watermark."""
        return self.add("diverge", broker_id=broker_id, records=records, **options)

    def snapshot_not_found(self, *, broker_id: int = -1, **options: Unpack[FaultOptions]) -> SwitchedOn:
        """FetchSnapshot is answered with SNAPSHOT_NOT_FOUND; a snapshot is written first if there is none."""
        return self.add("snapshot_not_found", broker_id=broker_id, **options)
