"""The life of a broker towards its controller as a pure function: state and event in, state and orders out.

The rules are those of Kafka's `BrokerLifecycleManager`: one request in flight, a registration first and
heartbeats afterwards, 10 ms between heartbeats while STARTING, otherwise the heartbeat interval, and at once after an
event. No clock and no socket here: `brokers.core` calls :func:`step` and carries out the orders.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from enum import Enum, IntEnum
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

STARTING_INTERVAL_MS = 10
FIRST_SHUTDOWN_INTERVAL_MS = 50


class BrokerState(IntEnum):
    """Kafka's `BrokerState`, with its numbers."""

    NOT_RUNNING = 0
    STARTING = 1
    RECOVERY = 2
    RUNNING = 3
    PENDING_CONTROLLED_SHUTDOWN = 6
    SHUTTING_DOWN = 7


# Looked up once: with Python 3.11 each look-up of a member is a call.
_NOT_RUNNING, _STARTING, _RECOVERY, _RUNNING, _LEAVING, _SHUTTING_DOWN = BrokerState


class LifecycleRequest(Enum):
    """The request to send now."""

    REGISTRATION = "BrokerRegistration"
    HEARTBEAT = "BrokerHeartbeat"


class End(Enum):
    """The reason why a broker stopped; the values are for people."""

    GRANTED = "the controller granted controlled shutdown"
    NOT_RUNNING = "shutdown requested before it was running"
    STOPPED = "stop requested"
    IMPATIENT = "controlled shutdown took too long"
    NOT_REGISTERED = "unable to register with the controller quorum"
    LOG_DIR_NOT_REPORTED = "couldn't communicate an offline log dir with controllers"
    ALL_LOG_DIRS_FAILED = "all log dirs have failed"
    METADATA_LOG_DIR_FAILED = "the metadata log dir has failed"
    FATAL = "an answer that no broker survives"

    @property
    def is_failure(self) -> bool:
        """True if a real broker's process would have exited with an error."""
        return self not in (End.GRANTED, End.NOT_RUNNING, End.STOPPED, End.IMPATIENT)


class Started(NamedTuple):
    """The broker knows its controller and starts."""


class Due(NamedTuple):
    """The time set by the last `Orders.wait_ms` is over."""


class Registered(NamedTuple):
    """The controller accepted the registration."""

    broker_epoch: int


class HeartbeatAnswered(NamedTuple):
    """The controller answered a heartbeat with error 0."""

    is_caught_up: bool
    is_fenced: bool
    should_shut_down: bool


class Refused(NamedTuple):
    """The controller answered with an error code."""

    error_code: int


class NotAnswered(NamedTuple):
    """No usable response came: timeout, no controller known, version mismatch."""

    reason: str = ""


class ReadyToUnfence(NamedTuple):
    """Recovery work is done: the broker wants to be unfenced."""


class LogDirFailed(NamedTuple):
    """A log directory went offline; `directory` is its uuid, 16 bytes."""

    directory: bytes


class LogDirsCordoned(NamedTuple):
    """The set of cordoned log directories has changed to this one."""

    directories: frozenset[bytes]


class RegisterAgain(NamedTuple):
    """The registration has to be repeated (Kafka: the metadata shows no directories for this broker)."""


class ShutdownWanted(NamedTuple):
    """Controlled shutdown was requested."""


class RegistrationTimedOut(NamedTuple):
    """`initial.broker.registration.timeout.ms` is over."""


class LogDirFailureTimedOut(NamedTuple):
    """`log.dir.failure.timeout.ms` is over for this directory."""

    directory: bytes


class Stopped(NamedTuple):
    """The process ends now, without regard to the controller."""

    end: End = End.STOPPED


Event: TypeAlias = (
    Started
    | Due
    | Registered
    | HeartbeatAnswered
    | Refused
    | NotAnswered
    | ReadyToUnfence
    | LogDirFailed
    | LogDirsCordoned
    | RegisterAgain
    | ShutdownWanted
    | RegistrationTimedOut
    | LogDirFailureTimedOut
    | Stopped
)


class Orders(NamedTuple):
    """The actions after a step: send, set the single timer, stop. None means no change."""

    send: LifecycleRequest | None = None
    wait_ms: int | None = None
    stop: End | None = None


class Lifecycle(NamedTuple):
    """The complete input of the next step besides the event.

    `offline_dirs` maps each failed directory to whether the controller has acknowledged it; it never shrinks.
    `cordoned_dirs` are reported once the broker has caught up; before that its heartbeats have null, "no information".
    `leaving_for` is the reason of the controlled shutdown.
    """

    in_flight: bool = False
    heartbeat_interval_ms: int = 2000
    state: BrokerState = _NOT_RUNNING
    broker_epoch: int = -1
    registered: bool = False
    ever_registered: bool = False
    ready_to_unfence: bool = False
    hurry: bool = False
    shutdown_answered: bool = False
    offline_dirs: Mapping[bytes, bool] = MappingProxyType({})
    cordoned_dirs: frozenset[bytes] = frozenset()
    caught_up: bool = False
    leaving_for: End = End.GRANTED

    @property
    def want_fence(self) -> bool:
        """The heartbeat's WantFence."""
        return not self.ready_to_unfence

    @property
    def want_shut_down(self) -> bool:
        """The heartbeat's WantShutDown."""
        return self.state is _LEAVING


_NOTHING, _REGISTER, _BEAT = Orders(), Orders(LifecycleRequest.REGISTRATION), Orders(LifecycleRequest.HEARTBEAT)

Step: TypeAlias = tuple[Lifecycle, Orders]


class _Answered(NamedTuple):
    """A row of the table below: the next state and the delay (None: the heartbeat interval)."""

    state: BrokerState
    wait_ms: int | None = None


# (state, the response flag that this state reads) -> next state and delay. Other flags are ignored, as in Kafka:
# STARTING reads IsCaughtUp only, RECOVERY IsFenced, RUNNING none, PENDING_CONTROLLED_SHUTDOWN ShouldShutDown.
HEARTBEAT_TABLE: Mapping[tuple[BrokerState, bool], _Answered] = {
    (_STARTING, False): _Answered(_STARTING, STARTING_INTERVAL_MS),
    (_STARTING, True): _Answered(_RECOVERY, STARTING_INTERVAL_MS),
    (_RECOVERY, False): _Answered(_RECOVERY),
    (_RECOVERY, True): _Answered(_RUNNING),
    (_RUNNING, False): _Answered(_RUNNING),
    (_RUNNING, True): _Answered(_RUNNING),
    (_LEAVING, False): _Answered(_LEAVING),
    (_LEAVING, True): _Answered(_SHUTTING_DOWN),
}


def step(life: Lifecycle, event: Event) -> Step:
    """Return the next lifecycle and the orders. Total: every event is allowed in every state."""
    if life.state is _SHUTTING_DOWN or (life.state is _NOT_RUNNING and not isinstance(event, _BEFORE_START)):
        return life, _NOTHING
    match event:
        # The frequent ones first.
        case Due():
            return _communicate(life)
        case HeartbeatAnswered():
            return _heartbeat_answered(life, event)
        case Started():
            if life.state is not _NOT_RUNNING:
                return life, _NOTHING
            return _communicate(life._replace(state=_STARTING))
        case Registered(broker_epoch):
            known = life._replace(in_flight=False, registered=True, ever_registered=True, broker_epoch=broker_epoch)
            return _wait(known, 0)
        case Refused() | NotAnswered():
            # The request after a failure is always delayed, even when an event is waiting.
            return _wait(life._replace(in_flight=False, hurry=False), life.heartbeat_interval_ms)
        case Stopped(end):
            return _stop(life, end)
        case ShutdownWanted() if life.state is _LEAVING:
            return life, _NOTHING
        case ShutdownWanted() if life.state is not _RUNNING:
            return _stop(life, End.NOT_RUNNING)
        case RegistrationTimedOut():
            if life.ever_registered:
                return life, _NOTHING
            return _stop(life, End.NOT_REGISTERED)
        case LogDirFailureTimedOut(directory):
            return _not_reported(life, directory)
        case _:
            return _happened(life, event)


_BEFORE_START = (Started, Stopped, ShutdownWanted, ReadyToUnfence, LogDirFailed, LogDirsCordoned)


def _happened(life: Lifecycle, event: Event) -> Step:
    """Handle an event that the controller should learn at once."""
    match event:
        case ReadyToUnfence():
            life = life._replace(ready_to_unfence=True)
        case LogDirFailed(directory):
            life = life._replace(offline_dirs={**life.offline_dirs, directory: life.offline_dirs.get(directory, False)})
        case LogDirsCordoned(directories):
            life = life._replace(cordoned_dirs=directories)
        case RegisterAgain():
            life = life._replace(registered=False)
        case ShutdownWanted():
            life = life._replace(state=_LEAVING)
    if life.state is _NOT_RUNNING:
        return life, _NOTHING
    if isinstance(event, LogDirFailed | LogDirsCordoned) and not life.registered:
        return life, _NOTHING
    return _wait(life, 0)


def _not_reported(life: Lifecycle, directory: bytes) -> Step:
    """Start a controlled shutdown, as Kafka does here: a running broker asks for permission first."""
    if life.offline_dirs.get(directory, False) or life.state is _LEAVING:
        return life, _NOTHING
    if life.state is not _RUNNING:
        return _stop(life, End.LOG_DIR_NOT_REPORTED)
    leaving = life._replace(state=_LEAVING, leaving_for=End.LOG_DIR_NOT_REPORTED)
    return _wait(leaving, 0)


def _communicate(life: Lifecycle) -> Step:
    if life.in_flight:
        return life._replace(hurry=True), _NOTHING
    return _in_flight(life, True), _BEAT if life.registered else _REGISTER


def _in_flight(life: Lifecycle, is_in_flight: bool) -> Lifecycle:
    """Return `life._replace(in_flight=…)`, twice as fast: it is in each heartbeat, so the field is the first one."""
    return Lifecycle(is_in_flight, *life[1:])


def _heartbeat_answered(life: Lifecycle, answer: HeartbeatAnswered) -> Step:
    state = life.state
    is_leaving = state is _LEAVING
    if state is _STARTING:
        flag = answer.is_caught_up
    elif state is _RECOVERY:
        flag = not answer.is_fenced
    else:
        flag = is_leaving and answer.should_shut_down
    row = HEARTBEAT_TABLE[state, flag]
    wait_ms = life.heartbeat_interval_ms if row.wait_ms is None else row.wait_ms
    if is_leaving and not life.shutdown_answered:
        wait_ms = FIRST_SHUTDOWN_INTERVAL_MS
    known = _in_flight(life, False)
    if state is not _RUNNING or life.offline_dirs:
        known = known._replace(
            # Includes directories that failed while the heartbeat was in flight: Kafka's handler reads the live set.
            offline_dirs=dict.fromkeys(life.offline_dirs, True),
            shutdown_answered=is_leaving or life.shutdown_answered,
            state=row.state,
            caught_up=life.caught_up or row.state is _RECOVERY,
        )
    return _stop(known, life.leaving_for) if row.state is _SHUTTING_DOWN else _wait(known, wait_ms)


def _wait(life: Lifecycle, wait_ms: int) -> Step:
    """Set the timer. While a request is in flight this only makes the next one follow at once."""
    if life.in_flight:
        return life._replace(hurry=True), _NOTHING
    if life.hurry:
        return life._replace(hurry=False), _orders_to_wait(0)
    return life, _orders_to_wait(wait_ms)


@functools.lru_cache(maxsize=64)
def _orders_to_wait(wait_ms: int) -> Orders:
    return Orders(wait_ms=wait_ms)


def _stop(life: Lifecycle, end: End) -> Step:
    return life._replace(state=_SHUTTING_DOWN, in_flight=False), Orders(stop=end)
