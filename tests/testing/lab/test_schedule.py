"""Schedules: the same seed draws the same, every kind is a stub that acts, and observed requests bound the numbers."""

import pytest
from mockraft import Controller, SyncController
from mockraft.server.stubs.stub import Stub
from mockraft.testing.lab.schedule import (
    KINDS,
    LATER_REQUESTS,
    NOT_REFUSED,
    SHORTEST_DELAY_MS,
    Disturbance,
    Sender,
    draw,
    observed,
    simpler,
)
from mockraft.wire.json_form import Tree
from mockraft.wire.records.broker_registration_change_record import BrokerRegistrationChangeRecord

from ...rows import each_row

SEEN = {Sender("BrokerHeartbeat", 1): 6, Sender("CreateTopics", None): 1, Sender("Fetch", 1): 9}


def test_seed_draws_the_same_schedule_again_and_others_differ() -> None:
    drawn = [draw(seed, SEEN, 4) for seed in range(50)]
    assert drawn == [draw(seed, SEEN, 4) for seed in range(50)]
    assert len(set(drawn)) > 40


def test_disturbances_are_of_observed_senders_and_near_their_numbers() -> None:
    every = [each for seed in range(300) for each in draw(seed, SEEN, 4)]
    assert {each.kind for each in every} == set(KINDS)
    for each in every:
        assert 1 <= each.number <= SEEN[each.sender] + LATER_REQUESTS
        assert each.kind != "standby" or each.sender.api not in NOT_REFUSED
        assert each.kind != "fenced" or each.sender.api == "BrokerHeartbeat"
        assert bool(each.delay_ms) is KINDS[each.kind].is_delay


def test_a_request_is_disturbed_once() -> None:
    one = {Sender("CreateTopics", None): 1}
    for seed in range(100):
        drawn = draw(seed, one, 8)
        assert len({(each.sender, each.number) for each in drawn}) == len(drawn)


def test_half_of_the_disturbances_are_of_others_than_simulated_brokers() -> None:
    senders = [each.sender for seed in range(400) for each in draw(seed, SEEN, 1, brokers=1)]
    share = sum(sender.broker_id is None for sender in senders) / len(senders)
    assert 0.4 < share < 0.6


def test_only_the_wanted_kinds_are_drawn_and_for_the_requests_that_have_them() -> None:
    every = [each for seed in range(100) for each in draw(seed, SEEN, 4, kinds=["standby", "fenced"])]
    assert {each.kind for each in every} == {"standby", "fenced"}
    assert {each.sender.api for each in every} == {"BrokerHeartbeat", "CreateTopics"}


def test_nothing_to_disturb_is_an_error() -> None:
    with pytest.raises(ValueError, match="no request reached the controller"):
        draw(1, {}, 4)
    with pytest.raises(ValueError, match="can be disturbed by fenced"):
        draw(1, {Sender("CreateTopics", None): 1}, 4, kinds=["fenced"])


def test_requests_are_counted_by_sender() -> None:
    journal: list[Tree] = [
        {"api": "Fetch", "brokerId": 1},
        {"api": "Fetch", "brokerId": 1},
        {"api": "Fetch", "brokerId": None},
    ]
    assert observed(journal) == {Sender("Fetch", 1): 2, Sender("Fetch", None): 1}


@each_row("kind", list(KINDS))
def test_every_kind_is_a_stub(kind: str) -> None:
    disturbance = Disturbance(kind, Sender("BrokerHeartbeat", 1), 3, 100 if KINDS[kind].is_delay else 0)
    stub = Stub.from_json(disturbance.to_stub("lab-1"))
    assert (stub.id, stub.name) == ("lab-1", str(disturbance))
    assert str(disturbance).startswith("BrokerHeartbeat 3 of broker 1: ")


@pytest.fixture
def controller() -> SyncController:
    return Controller.sync(session_timeout_ms=5_000)


def test_fenced_heartbeat_fences_the_broker_for_that_heartbeat(controller: SyncController) -> None:
    disturbance = Disturbance("fenced", Sender("BrokerHeartbeat", 1), 5)
    with controller:
        controller.add(disturbance.to_stub("lab-1"))
        controller.start_broker(1)
        controller.wait_for("BrokerHeartbeat", n=8, broker_id=1)
        log = controller.state.metadata_log()
        changes = [each.record.fenced for each in log if isinstance(each.record, BrokerRegistrationChangeRecord)]
        fenced = [each for each in changes if each]
        assert fenced == [-1, 1, -1]  # unfenced, fenced, unfenced


def test_delay_is_halved_down_to_the_shortest() -> None:
    late = Disturbance("late answer", Sender("Fetch", 1), 1, 100)
    assert simpler(late) == Disturbance("late answer", Sender("Fetch", 1), 1, 50)
    assert simpler(Disturbance("late answer", Sender("Fetch", 1), 1, SHORTEST_DELAY_MS)) is None
    assert simpler(Disturbance("standby", Sender("CreateTopics", None), 1)) is None
