"""The lifecycle is total: every event in every state gives a lifecycle and orders, and the rules are Kafka's."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st
from mockraft.brokers import lifecycle
from mockraft.brokers.lifecycle import (
    HEARTBEAT_TABLE,
    BrokerState,
    Due,
    End,
    Event,
    HeartbeatAnswered,
    Lifecycle,
    LifecycleRequest,
    LogDirFailed,
    LogDirFailureTimedOut,
    LogDirsCordoned,
    NotAnswered,
    Orders,
    ReadyToUnfence,
    Refused,
    RegisterAgain,
    Registered,
    RegistrationTimedOut,
    ShutdownWanted,
    Started,
    Stopped,
    step,
)

from ..rows import each_row

DIR_A, DIR_B = b"a" * 16, b"b" * 16
STALE_BROKER_EPOCH = 77
EVENTS: list[Event] = [
    Started(),
    Due(),
    Registered(17),
    *(HeartbeatAnswered(*flags) for flags in itertools.product((False, True), repeat=3)),
    Refused(STALE_BROKER_EPOCH),
    NotAnswered("late"),
    ReadyToUnfence(),
    LogDirFailed(DIR_A),
    LogDirsCordoned(frozenset({DIR_A})),
    RegisterAgain(),
    ShutdownWanted(),
    RegistrationTimedOut(),
    LogDirFailureTimedOut(DIR_A),
    Stopped(),
]
LIVES = [
    Lifecycle(
        state=state,
        registered=registered,
        ready_to_unfence=ready,
        in_flight=in_flight,
        hurry=hurry,
        shutdown_answered=answered,
    )
    for state in BrokerState
    for registered, ready, in_flight, hurry, answered in itertools.product((False, True), repeat=5)
]


def take(life: Lifecycle, *events: Event) -> tuple[Lifecycle, Orders]:
    orders = Orders()
    for event in events:
        life, orders = step(life, event)
    return life, orders


def registered(state: BrokerState = BrokerState.RUNNING, **fields: object) -> Lifecycle:
    life = Lifecycle(state=state, registered=True, ever_registered=True, broker_epoch=17)
    return life._replace(**fields)  # type: ignore[arg-type]


@each_row("event", EVENTS)
def test_every_event_is_taken_in_every_state(event: Event) -> None:
    for life in LIVES:
        after, orders = step(life, event)
        assert isinstance(after, Lifecycle)
        assert (orders.stop is not None) == (after.state is BrokerState.SHUTTING_DOWN is not life.state)
        assert orders.send is None or (after.in_flight and not life.in_flight), "one communication at a time"
        assert orders.send is None or orders.wait_ms is None
        assert orders.wait_ms is None or not after.in_flight, "no timer runs while an answer is awaited"


def test_every_event_class_is_tried() -> None:
    assert {type(event) for event in EVENTS} == set(lifecycle.Event.__args__)


@given(st.lists(st.sampled_from(EVENTS), max_size=40))
def test_a_state_is_never_left_backwards(events: list[Event]) -> None:
    life = Lifecycle()
    for event in events:
        after, _ = step(life, event)
        assert after.state >= life.state
        life = after


@given(st.lists(st.sampled_from(EVENTS), max_size=40))
def test_a_started_broker_always_has_something_to_wait_for(events: list[Event]) -> None:
    life, orders = step(Lifecycle(), Started())
    timer_is_set = False
    for event in [Due(), *events]:
        if isinstance(event, Due) and not timer_is_set:
            continue
        if isinstance(event, Registered | HeartbeatAnswered | Refused | NotAnswered) and not life.in_flight:
            continue
        timer_is_set = timer_is_set and not isinstance(event, Due)
        life, orders = step(life, event)
        timer_is_set = timer_is_set or orders.wait_ms is not None
        assert timer_is_set or life.in_flight or life.state is BrokerState.SHUTTING_DOWN


def test_the_heartbeat_table_has_a_row_for_every_answer_a_living_broker_can_get() -> None:
    living = set(BrokerState) - {BrokerState.NOT_RUNNING, BrokerState.SHUTTING_DOWN}
    assert set(HEARTBEAT_TABLE) == set(itertools.product(living, (False, True)))


def test_starts_with_a_registration_and_heartbeats_at_once_when_registered() -> None:
    life, orders = take(Lifecycle(), Started())
    assert orders == Orders(send=LifecycleRequest.REGISTRATION)
    life, orders = take(life, Registered(17))
    assert orders == Orders(wait_ms=0)
    assert life.broker_epoch == 17
    assert take(life, Due())[1] == Orders(send=LifecycleRequest.HEARTBEAT)


def test_heartbeats_every_ten_ms_until_caught_up() -> None:
    life = registered(BrokerState.STARTING, in_flight=True)
    life, orders = take(life, HeartbeatAnswered(False, True, False))
    assert (life.state, orders.wait_ms) == (BrokerState.STARTING, 10)
    life, orders = take(life, Due(), HeartbeatAnswered(True, True, False))
    assert (life.state, orders.wait_ms) == (BrokerState.RECOVERY, 10)


def test_reports_cordoned_dirs_once_caught_up() -> None:
    life, orders = take(registered(BrokerState.STARTING, in_flight=True), LogDirsCordoned(frozenset({DIR_A})))
    assert (life.caught_up, life.cordoned_dirs) == (False, frozenset({DIR_A}))
    assert not take(life, HeartbeatAnswered(False, True, False))[0].caught_up
    life, _ = take(life, HeartbeatAnswered(True, True, False))
    assert (life.caught_up, life.cordoned_dirs) == (True, frozenset({DIR_A}))
    life, orders = take(life, Due(), HeartbeatAnswered(True, False, False), LogDirsCordoned(frozenset()))
    assert (life.caught_up, life.cordoned_dirs, orders.wait_ms) == (True, frozenset(), 0)


def test_wants_to_be_unfenced_at_once_when_ready() -> None:
    life, orders = take(registered(BrokerState.RECOVERY), ReadyToUnfence())
    assert (life.want_fence, orders) == (False, Orders(wait_ms=0))


def test_runs_when_unfenced_and_stays_running_when_fenced_again() -> None:
    life = registered(BrokerState.RECOVERY, ready_to_unfence=True, in_flight=True)
    life, orders = take(life, HeartbeatAnswered(True, False, False))
    assert (life.state, orders.wait_ms) == (BrokerState.RUNNING, 2000)
    life, orders = take(life, Due(), HeartbeatAnswered(False, True, False))
    assert (life.state, orders.wait_ms) == (BrokerState.RUNNING, 2000)


def test_an_event_in_flight_makes_the_next_heartbeat_follow_the_answer_at_once() -> None:
    life = registered(BrokerState.RECOVERY, in_flight=True)
    life, orders = take(life, ReadyToUnfence())
    assert orders == Orders()
    life, orders = take(life, HeartbeatAnswered(True, True, False))
    assert orders.wait_ms == 0


@each_row("failure", [Refused(STALE_BROKER_EPOCH), NotAnswered()])
def test_never_hurries_after_a_failure(failure: Event) -> None:
    life = registered(BrokerState.RUNNING, in_flight=True)
    life, orders = take(life, LogDirFailed(DIR_A), failure)
    assert orders.wait_ms == 2000
    assert life.state is BrokerState.RUNNING, "a refused broker goes on as it was and never registers again by itself"
    assert take(life, Due())[1].send is LifecycleRequest.HEARTBEAT


def test_registers_again_on_request() -> None:
    life, orders = take(registered(), RegisterAgain())
    assert orders.wait_ms == 0
    life, orders = take(life, Due())
    assert orders.send is LifecycleRequest.REGISTRATION
    life, _ = take(life, Registered(17))
    assert (life.state, life.registered) == (BrokerState.RUNNING, True)


def test_controlled_shutdown_sends_one_early_heartbeat_then_follows_the_interval() -> None:
    life, orders = take(registered(), ShutdownWanted())
    assert (life.want_shut_down, orders.wait_ms) == (True, 0)
    assert take(life, ShutdownWanted()) == (life, Orders()), "a second request changes nothing"
    life, orders = take(life, Due(), HeartbeatAnswered(True, False, False))
    assert orders.wait_ms == 50
    life, orders = take(life, Due(), HeartbeatAnswered(True, False, False))
    assert orders.wait_ms == 2000
    life, orders = take(life, Due(), HeartbeatAnswered(True, True, True))
    assert (life.state, orders.stop) == (BrokerState.SHUTTING_DOWN, End.GRANTED)


@each_row("state", [BrokerState.NOT_RUNNING, BrokerState.STARTING, BrokerState.RECOVERY])
def test_starting_broker_shuts_down_without_a_request(state: BrokerState) -> None:
    life, orders = take(Lifecycle(state=state), ShutdownWanted())
    assert (life.state, orders.stop) == (BrokerState.SHUTTING_DOWN, End.NOT_RUNNING)


def test_gives_up_when_it_could_never_register() -> None:
    waiting = Lifecycle(state=BrokerState.STARTING, in_flight=True)
    assert take(waiting, RegistrationTimedOut())[1].stop is End.NOT_REGISTERED
    assert take(waiting, Registered(17), RegistrationTimedOut())[1] == Orders()


def test_a_failed_dir_is_reported_until_the_end_and_acknowledged_by_an_answer() -> None:
    life, orders = take(registered(), LogDirFailed(DIR_A))
    assert orders.wait_ms == 0
    assert life.offline_dirs == {DIR_A: False}
    life, orders = take(life, Due(), Refused(STALE_BROKER_EPOCH))
    assert life.offline_dirs == {DIR_A: False}, "an error acknowledges nothing"
    life, _ = take(life, Due(), HeartbeatAnswered(True, False, False))
    assert life.offline_dirs == {DIR_A: True}
    assert take(life, LogDirFailureTimedOut(DIR_A)) == (life, Orders())
    life, _ = take(life, Due(), HeartbeatAnswered(True, False, False))
    assert life.offline_dirs == {DIR_A: True}, "and it goes with every heartbeat"


def test_dir_failing_during_a_heartbeat_is_reported_by_the_next_one_at_once() -> None:
    life, _ = take(registered(), LogDirFailed(DIR_A), Due(), LogDirFailed(DIR_B))
    life, orders = take(life, HeartbeatAnswered(True, False, False))
    assert life.offline_dirs == {DIR_A: True, DIR_B: True}, "Kafka marks its live set"
    assert orders.wait_ms == 0


def test_running_broker_with_an_unreported_failed_dir_asks_for_controlled_shutdown() -> None:
    life, orders = take(registered(), LogDirFailed(DIR_A), Due(), NotAnswered("late"), LogDirFailureTimedOut(DIR_A))
    assert (life.want_shut_down, orders.stop, orders.wait_ms) == (True, None, 0)
    assert take(life, LogDirFailureTimedOut(DIR_A)) == (life, Orders())
    _, orders = take(life, Due(), HeartbeatAnswered(True, True, True))
    assert orders.stop is End.LOG_DIR_NOT_REPORTED
    assert orders.stop.is_failure


@each_row("state", [BrokerState.STARTING, BrokerState.RECOVERY])
def test_starting_broker_with_an_unreported_failed_dir_stops_at_once(state: BrokerState) -> None:
    life, _ = take(registered(state), LogDirFailed(DIR_A))
    assert take(life, LogDirFailureTimedOut(DIR_A))[1].stop is End.LOG_DIR_NOT_REPORTED


def test_a_dir_that_fails_before_registration_waits_for_it() -> None:
    life, orders = take(Lifecycle(state=BrokerState.STARTING, in_flight=True), LogDirFailed(DIR_A))
    assert orders == Orders()
    assert life.offline_dirs == {DIR_A: False}


def test_no_effects_after_the_end() -> None:
    life = Lifecycle(state=BrokerState.SHUTTING_DOWN)
    assert [step(life, event) for event in EVENTS] == [(life, Orders())] * len(EVENTS)
