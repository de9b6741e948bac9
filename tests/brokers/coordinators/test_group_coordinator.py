"""Offsets of groups in their log: replicated, in transactions, and known to the next coordinator."""

from __future__ import annotations

import pytest
from mockraft.brokers.coordinators.members import Joining, Offset
from mockraft.brokers.coordinators.transaction import Producer
from mockraft.brokers.log_dirs.transaction_markers import Marker
from mockraft.wire import error_codes
from mockraft.wire.errors import ApiError

from .conftest import IDS, Led

OFFSETS = (IDS["__consumer_offsets"], 0)
ORDERS = ("orders", 0)
THREE = Offset(3, 1, "")
PRODUCER = Producer(7, 0)


def committed(led: Led, group_id: str = "g") -> dict[tuple[str, int], Offset]:
    group = led.groups.find(group_id)
    return {} if group is None else dict(group.offsets)


def end(led: Led, *, is_commit: bool) -> int:
    """Write a marker; return its error."""
    codes: list[int] = []
    led.groups.end_transaction(0, Marker(PRODUCER.producer_id, PRODUCER.epoch, 0, is_commit), codes.append)
    led.run()
    return codes[0]


def test_offset_is_committed_once_it_is_replicated(led: Led) -> None:
    led.hosts.find(OFFSETS).state.isr = frozenset((1, 2))
    waiting = led.groups.commit("g", {ORDERS: THREE})
    led.run()
    assert (waiting.result(), committed(led)) == (None, {})
    led.replicate(OFFSETS)
    assert (waiting.result(), committed(led)) == (True, {ORDERS: THREE})


def test_commit_that_is_not_replicated_in_time_is_refused(led: Led) -> None:
    led.hosts.find(OFFSETS).state.isr = frozenset((1, 2))
    waiting = led.groups.commit("g", {ORDERS: THREE})
    led.run(5_001)
    with pytest.raises(ApiError) as refused:
        waiting.result()
    assert refused.value.error_code == error_codes.COORDINATOR_NOT_AVAILABLE


@pytest.mark.parametrize("is_commit", [True, False])
@pytest.mark.parametrize("is_loaded", [True, False])
def test_offsets_of_a_transaction_take_effect_with_its_marker(led: Led, is_commit: bool, is_loaded: bool) -> None:
    led.groups.commit("g", {ORDERS: THREE}, PRODUCER)
    led.run()
    assert (committed(led), led.groups.is_unstable("g", ORDERS)) == ({}, True)
    assert not led.groups.is_unstable("g", ("orders", 1))
    if is_loaded:
        led.forget()
    assert (committed(led), led.groups.is_unstable("g", ORDERS)) == ({}, True)
    assert end(led, is_commit=is_commit) == error_codes.NONE
    expected = {ORDERS: THREE} if is_commit else {}
    assert (committed(led), led.groups.is_unstable("g", ORDERS)) == (expected, False)
    led.forget()
    assert committed(led) == expected


def test_transaction_of_an_older_producer_is_refused(led: Led) -> None:
    led.groups.commit("g", {ORDERS: THREE}, PRODUCER._replace(epoch=1))
    waiting = led.groups.commit("g", {ORDERS: THREE}, PRODUCER)
    with pytest.raises(ApiError) as refused:
        waiting.result()
    assert refused.value.error_code == error_codes.INVALID_PRODUCER_EPOCH


def test_deleted_offsets_and_groups_stay_deleted(led: Led) -> None:
    for group_id in ("g", "h"):
        led.groups.commit(group_id, {ORDERS: THREE, ("orders", 1): THREE})
    led.run()
    led.groups.delete_offsets("g", [ORDERS])
    led.groups.delete("h")
    led.run()
    for _ in range(2):
        assert committed(led) == {("orders", 1): THREE}
        assert led.groups.find("h") is None
        led.forget()


@pytest.mark.parametrize("is_loaded", [True, False])
@pytest.mark.parametrize("change", ["group", "offset", "commit"])
def test_transaction_does_not_undo_a_later_change(led: Led, change: str, is_loaded: bool) -> None:
    later = Offset(9, 1, "")
    for group_id in ("g", "h"):
        led.groups.create(group_id)
        led.groups.commit(group_id, {ORDERS: THREE}, PRODUCER)
    led.run()
    if change == "group":
        led.groups.delete("g")
    elif change == "offset":
        led.groups.delete_offsets("g", [ORDERS])
    else:
        led.groups.commit("g", {ORDERS: later})
    led.run()
    if is_loaded:
        led.forget()
    assert (led.groups.is_unstable("g", ORDERS), led.groups.is_unstable("h", ORDERS)) == (change == "commit", True)
    assert end(led, is_commit=True) == error_codes.NONE
    assert committed(led) == ({ORDERS: later} if change == "commit" else {})
    assert committed(led, "h") == {ORDERS: THREE}


def test_members_join_the_next_coordinator(led: Led) -> None:
    joining = Joining("m", None, 6_000, 6_000, "consumer", {"range": b""})
    group = led.groups.create_classic("g")
    waiting = group.join(joining, 0)
    group.join(joining._replace(member_id="n"), 0)
    assert waiting.result() is not None
    second = group.join(joining._replace(member_id="o"), 0)
    led.lead("__consumer_offsets", 2)
    with pytest.raises(ApiError) as refused:
        second.result()
    assert refused.value.error_code == error_codes.NOT_COORDINATOR
    led.lead("__consumer_offsets", 1)
    assert led.groups.find("g") is None


def test_marker_for_another_coordinator_is_to_be_sent_again(led: Led) -> None:
    led.lead("__consumer_offsets", 2)
    codes: list[int] = []
    led.groups.end_transaction(0, Marker(7, 0, 0, True), codes.append)
    assert codes == [error_codes.NOT_LEADER_OR_FOLLOWER]
