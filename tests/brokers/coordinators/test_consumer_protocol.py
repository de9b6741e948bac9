"""Groups of the consumer protocol over time, and in their log; the rest is compared with a real broker's."""

from __future__ import annotations

import dataclasses
from typing import Any
from unittest.mock import Mock

import pytest
from mockraft.brokers.coordinators import group_coordinator, state_log
from mockraft.brokers.coordinators.assignors import ASSIGNORS, Subscriber
from mockraft.brokers.coordinators.consumer_protocol import ConsumerGroup, Followed, MemberHeartbeat
from mockraft.brokers.coordinators.group_snapshot import GroupSnapshot
from mockraft.brokers.coordinators.members import Offset
from mockraft.brokers.log_dirs.errors import LogError
from mockraft.wire import error_codes
from mockraft.wire.errors import ApiError

from .conftest import IDS, Led

OFFSETS = (IDS["__consumer_offsets"], 0)
TOPIC = IDS["orders"]


def beat(led: Led, member_id: str, epoch: int, owned: set[int] | None = None, **fields: Any) -> Followed:
    """The answer to a heartbeat, which is written at once; the first one subscribes to `orders`."""
    assignment = None if owned is None else {TOPIC: frozenset(owned)}
    if epoch == 0:
        fields = {"topics": frozenset({"orders"}), "rebalance_timeout_ms": 20_000, **fields}
        assignment = {}
    followed, waiting = led.groups.heartbeat("g", MemberHeartbeat(member_id, epoch, owned=assignment, **fields))
    led.run()
    assert waiting.result()
    return followed


def group(led: Led) -> ConsumerGroup:
    return led.groups.consumer_group("g")


def refusal(led: Led, member_id: str, epoch: int) -> int:
    with pytest.raises(ApiError) as refused:
        beat(led, member_id, epoch)
    return refused.value.error_code


def tick(led: Led, ms: int) -> None:
    led.run(ms)
    led.groups.groups.tick(int(led.now_ms))
    led.run()


def test_a_member_is_removed_when_its_session_ends(led: Led) -> None:
    beat(led, "a", 0)
    tick(led, 30_000)
    beat(led, "b", 0)
    assert led.groups.groups.next_tick_ms() == int(led.now_ms) + 15_000
    tick(led, 15_000)
    assert list(group(led).snapshot.members) == ["b"]
    assert refusal(led, "a", 2) == error_codes.UNKNOWN_MEMBER_ID
    assert beat(led, "b", 3).assigned == {TOPIC: {0: 4}}


def test_a_member_that_keeps_its_partitions_is_removed(led: Led) -> None:
    beat(led, "a", 0)
    tick(led, 2_000)
    beat(led, "b", 0)
    beat(led, "c", 0)
    led.groups.groups.groups["g"] = taken = group(led)
    target = {"a": {}, "b": {TOPIC: frozenset({0})}, "c": {}}
    taken.snapshot = dataclasses.replace(taken.snapshot, targets=target, epoch=9, assignment_epoch=9)
    assert beat(led, "a", 2, {0}).assigned == {}
    tick(led, 19_999)
    beat(led, "a", 2, {0})
    assert beat(led, "b", 3).epoch == 9
    tick(led, 1)
    assert refusal(led, "a", 2) == error_codes.UNKNOWN_MEMBER_ID
    assert beat(led, "b", 9).assigned == {TOPIC: {0: 10}}


def test_targets_are_made_in_intervals(led: Led) -> None:
    beat(led, "a", 0)
    tick(led, 999)
    assert beat(led, "b", 0).epoch == 2
    assert group(led).state.value == "Assigning"
    tick(led, 1)
    assert beat(led, "b", 2).epoch == 3


@pytest.mark.parametrize("is_rewritten", [True, False])
def test_the_next_coordinator_has_the_same_group(led: Led, is_rewritten: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if is_rewritten:
        monkeypatch.setattr(state_log, "REWRITTEN_BYTES", 1)
    beat(led, "a", 0, instance_id="A", rack_id="r", assignor="range", client_id="c", client_host="/h")
    beat(led, "b", 0, topics=None, pattern="or.*")
    tick(led, 10_001)
    beat(led, "b", 2)
    before = group(led).snapshot
    assert before.patterns["or.*"].topics == {"orders"}
    led.forget()
    assert group(led).snapshot == before
    tick(led, 45_000)
    assert group(led).snapshot.members == {}
    led.groups.delete("g")
    led.run()
    led.forget()
    assert led.groups.find("g") is None


def test_changes_that_are_not_written_are_taken_back(led: Led) -> None:
    beat(led, "a", 0)
    before = group(led).snapshot
    led.hosts.find(OFFSETS).state.isr = frozenset((1, 2))
    waiting = []
    for name in ("b", "c", "c"):
        joining = MemberHeartbeat(name, 0, topics=frozenset({"orders"}), rebalance_timeout_ms=1, owned={})
        waiting.append(led.groups.heartbeat("g", joining)[1])
        assert waiting[-1].result() is None, "also what changes nothing waits for what is before it"
        led.run(1_000)
    assert list(group(led).snapshot.members) == ["a", "b", "c"]
    led.run(5_001)
    # The first one has timed out, the others build on it.
    assert group(led).snapshot == before
    for each in waiting:
        with pytest.raises(ApiError) as refused:
            each.result()
        assert refused.value.error_code == error_codes.COORDINATOR_NOT_AVAILABLE
    led.run(9_000)
    assert group(led).snapshot == before


def test_a_change_that_is_refused_leaves_those_before_it(led: Led, monkeypatch: pytest.MonkeyPatch) -> None:
    beat(led, "a", 0)
    hosted = led.hosts.find(OFFSETS)
    hosted.state.isr = frozenset((1, 2))
    waiting = []
    for name in ("b", "c"):
        joining = MemberHeartbeat(name, 0, topics=frozenset({"orders"}), rebalance_timeout_ms=1, owned={})
        waiting.append(led.groups.heartbeat("g", joining)[1])
        error = LogError(error_codes.KAFKA_STORAGE_ERROR, "full")
        monkeypatch.setattr(hosted, "append_state", Mock(side_effect=error))
    led.replicate(OFFSETS)
    assert waiting[0].result()
    with pytest.raises(ApiError):
        waiting[1].result()
    assert list(group(led).snapshot.members) == ["a", "b"]


def test_a_loaded_group_gives_no_member_id_again(led: Led) -> None:
    first = beat(led, "", 0).member_id
    led.forget()
    assert beat(led, "", 0).member_id != first
    # A generator that begins anew, as that of another broker may.
    taken = group(led)
    taken._rng.seed(0)
    third = beat(led, "", 0).member_id
    taken._rng.seed(0)
    assert beat(led, "", 0).member_id != third


def test_configs_of_the_group_come_first() -> None:
    led = Led({"group.consumer.heartbeat.interval.ms": "7000", "group.consumer.max.size": "1"})
    assert beat(led, "a", 0).heartbeat_interval_ms == 7_000
    led.image.configs[32, "g"] = {"consumer.heartbeat.interval.ms": "6000", "consumer.session.timeout.ms": "50"}
    assert beat(led, "a", 2).heartbeat_interval_ms == 6_000
    assert refusal(led, "b", 0) == error_codes.GROUP_MAX_SIZE_REACHED
    tick(led, 50)
    assert group(led).snapshot.members == {}


def test_an_empty_classic_group_leaves_its_offsets(led: Led, monkeypatch: pytest.MonkeyPatch) -> None:
    led.groups.commit("g", {("orders", 0): Offset(3, 1, "")})
    led.run()
    beat(led, "a", 0)
    monkeypatch.setattr(group_coordinator, "GROUPS_MAX", 1)
    with pytest.raises(ApiError):
        led.groups.heartbeat("h", MemberHeartbeat("a", 0, topics=frozenset(), rebalance_timeout_ms=1, owned={}))
    for _ in range(2):
        assert group(led).offsets == {("orders", 0): Offset(3, 1, "")}
        led.forget()
    assert group(led).snapshot != GroupSnapshot()


X, Y, Z = b"x" * 16, b"y" * 16, b"z" * 16


@pytest.mark.parametrize("assignor", ["uniform", "range"])
@pytest.mark.parametrize(
    ("subscriptions", "sizes"),
    [
        ({"a": X + Y, "b": X + Y, "c": X + Y}, [3, 3, 4]),
        ({"a": X, "b": X + Y, "c": Y + Z}, [3, 4, 5]),
        ({"a": X + Y + Z, "b": Z}, [2, 10]),
        ({"a": b"", "b": Y}, [0, 4]),
    ],
)
def test_assignors_give_all_partitions_to_subscribers(
    assignor: str, subscriptions: dict[str, bytes], sizes: list[int]
) -> None:
    counts = {X: 6, Y: 4, Z: 2}
    members = {
        name: Subscriber(None, frozenset(topics[at : at + 16] for at in range(0, len(topics), 16)), {})
        for name, topics in subscriptions.items()
    }
    found = ASSIGNORS[assignor](members, counts)
    every = [(topic, index) for each in found.values() for topic, indexes in each.items() for index in indexes]
    subscribed = frozenset().union(*(each.topics for each in members.values()))
    assert sorted(every) == [(topic, index) for topic in sorted(subscribed) for index in range(counts[topic])]
    assert all(found[name].keys() <= member.topics for name, member in members.items())
    if assignor == "range":
        return
    assert sorted(sum(map(len, each.values())) for each in found.values()) == sizes
    if len({each.topics for each in members.values()}) > 1:
        return
    # A member that leaves gives its partitions to others, which keep theirs.
    left = {name: each._replace(assigned=found[name]) for name, each in members.items() if name != "a"}
    again = ASSIGNORS[assignor](left, counts)
    for name, member in left.items():
        assert all(indexes <= again[name][topic] for topic, indexes in member.assigned.items())
