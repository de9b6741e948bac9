"""The classic group protocol: who is in a group, in which generation, with what."""

from __future__ import annotations

import functools
from collections.abc import Callable

import pytest
from mockraft.brokers.coordinators import consumer_groups, group_coordinator
from mockraft.brokers.coordinators.consumer_groups import Group
from mockraft.brokers.coordinators.group_coordinator import Groups
from mockraft.brokers.coordinators.members import Commit, GroupState, Joined, Joining, Offset
from mockraft.wire import error_codes
from mockraft.wire.errors import ApiError


@pytest.fixture
def group() -> Group:
    return Group()


def says(member_id: str, *protocols: str, session_timeout_ms: int = 6_000, rebalance_timeout_ms: int = 200) -> Joining:
    named = {name: member_id.encode() for name in protocols or ("range",)}
    return Joining(member_id, None, session_timeout_ms, rebalance_timeout_ms, "consumer", named)


def joined(group: Group, joining: Joining) -> Joined:
    """The next generation, which is there at once."""
    result = group.join(joining, 0).result()
    assert result is not None
    return result


def refusal(ask: Callable[..., object], *arguments: object) -> int:
    with pytest.raises(ApiError) as raised:
        ask(*arguments)
    return raised.value.error_code


def check_commit(
    group: Group, member_id: str, generation: int, now_ms: int = 0, instance_id: str | None = None
) -> None:
    group.check_commit(Commit(member_id, generation, instance_id, 9), (), now_ms)


def leave(group: Group, member_id: str, instance_id: str | None = None, now_ms: int = 0) -> int:
    (code,) = group.leave([(member_id, instance_id)], now_ms)
    return code


def two(group: Group) -> None:
    """Members a, which leads, and b, in generation 2."""
    joined(group, says("a"))
    b = group.join(says("b"), 0)
    joined(group, says("a"))
    assert b.result()


def test_the_first_member_leads_and_is_told_everybody(group: Group) -> None:
    first = joined(group, says("a"))
    assert (first.generation, first.protocol, first.leader) == (1, "range", "a")
    assert first.members == [("a", None, b"a")]


def test_a_second_member_waits_until_the_first_joins_again(group: Group) -> None:
    joined(group, says("a"))
    second = group.join(says("b"), 0)
    assert (second.result(), group.state) == (None, GroupState.PREPARING_REBALANCE)
    assert refusal(group.heartbeat, "a", 1, 0) == error_codes.REBALANCE_IN_PROGRESS
    first = joined(group, says("a"))
    assert {member_id for member_id, _, _ in first.members} == {"a", "b"}
    follower = second.result()
    assert follower
    assert (follower.generation, follower.leader, follower.members) == (2, "a", [])


def test_who_does_not_join_again_in_time_is_out(group: Group) -> None:
    joined(group, says("a"))
    second = group.join(says("b"), 1_000)
    assert group.next_tick_ms() == 1_200
    group.tick(1_199)
    assert second.result() is None
    group.tick(1_200)
    leader = second.result()
    assert leader
    assert (leader.leader, list(group.members)) == ("b", ["b"])


def test_the_first_member_of_an_empty_group_waits_for_others() -> None:
    group = Groups({"group.initial.rebalance.delay.ms": "3000"}).make("g")
    requests = [group.join(says(name), 0) for name in ("a", "b")]
    group.tick(2_999)
    assert [request.result() for request in requests] == [None, None]
    group.tick(3_000)
    assert all(request.result() for request in requests)


def test_everybody_gets_what_the_leader_assigns(group: Group) -> None:
    two(group)
    follower = group.sync("b", 2, {}, 0)
    assert follower.result() is None
    assert group.sync("a", 2, {"a": b"0", "b": b"1"}, 0).result() == b"0"
    assert follower.result() == b"1"
    assert group.state is GroupState.STABLE
    assert group.sync("b", 2, {}, 0).result() == b"1"


def test_a_rebalance_ends_the_wait_for_an_assignment(group: Group) -> None:
    two(group)
    follower = group.sync("b", 2, {}, 0)
    leave(group, "a")
    assert refusal(follower.result) == error_codes.REBALANCE_IN_PROGRESS


def test_the_last_one_out_leaves_an_empty_group_with_its_offsets(group: Group) -> None:
    joined(group, says("a"))
    group.offsets["orders", 0] = Offset(5, 0, "")
    leave(group, "a")
    assert (group.state, group.generation, group.is_idle) == (GroupState.EMPTY, 2, False)
    check_commit(group, "", -1)


def test_the_assignor_that_all_have_and_most_prefer_is_taken(group: Group) -> None:
    joined(group, says("a", "range", "sticky"))
    for name in ("b", "c"):
        group.join(says(name, "sticky", "range"), 0)
    assert joined(group, says("a", "range", "sticky")).protocol == "sticky"


@pytest.mark.parametrize(
    ("joining", "error_code"),
    [
        (says("b", session_timeout_ms=5_999), error_codes.INVALID_SESSION_TIMEOUT),
        (says("b", "other"), error_codes.INCONSISTENT_GROUP_PROTOCOL),
        (says("b")._replace(protocol_type="connect"), error_codes.INCONSISTENT_GROUP_PROTOCOL),
        (says("b")._replace(protocols={}), error_codes.INCONSISTENT_GROUP_PROTOCOL),
    ],
)
def test_who_does_not_fit_is_refused(group: Group, joining: Joining, error_code: int) -> None:
    joined(group, says("a"))
    assert refusal(group.join, joining, 0) == error_code
    assert list(group.members) == ["a"]


@pytest.mark.parametrize(
    ("member_id", "generation", "error_code"),
    [("x", 1, error_codes.UNKNOWN_MEMBER_ID), ("a", 0, error_codes.ILLEGAL_GENERATION), ("", -1, 25)],
)
def test_only_members_of_the_generation_are_heard(
    group: Group, member_id: str, generation: int, error_code: int
) -> None:
    joined(group, says("a"))
    for ask in (group.heartbeat, functools.partial(check_commit, group)):
        assert refusal(ask, member_id, generation, 0) == error_code


@pytest.mark.parametrize("first", [("range", "rr"), ("rr", "range")])
def test_kafkas_hash_map_decides_between_equal_votes(group: Group, first: tuple[str, str]) -> None:
    joined(group, says("a", *first))
    group.join(says("b", *reversed(first)), 0)
    assert joined(group, says("a", *first)).protocol == "rr"


def test_a_member_that_is_silent_for_its_session_is_out(group: Group) -> None:
    joined(group, says("a"))
    group.sync("a", 1, {}, 0)
    group.heartbeat("a", 1, 1_000)
    group.tick(6_999)
    assert list(group.members) == ["a"]
    group.tick(group.next_tick_ms())
    assert (list(group.members), group.state) == ([], GroupState.EMPTY)


def static(member_id: str, *protocols: str, instance_id: str = "i") -> Joining:
    return says(member_id, *protocols)._replace(instance_id=instance_id)


def test_static_member_takes_its_place_again_without_a_rebalance(group: Group) -> None:
    joined(group, static("a"))
    group.sync("a", 1, {"a": b"all"}, 0, instance_id="i")
    for member_id, can_skip in (("b", True), ("c", False)):
        found = group.join(static(member_id), 0, can_skip=can_skip).result()
        assert found is not None
        assert (found.generation, found.leader, found.skips, bool(found.members)) == (1, "b", can_skip, can_skip)
    assert group.state is GroupState.STABLE
    assert group.sync("c", 1, {}, 0, instance_id="i").result() == b"all"


def test_static_member_with_another_protocol_rebalances(group: Group) -> None:
    joined(group, static("a", "range", "other"))
    group.sync("a", 1, {}, 0)
    assert joined(group, static("b", "other")).generation == 2


def test_former_static_member_is_fenced(group: Group) -> None:
    joined(group, says("a"))
    waiting = group.join(static("b"), 0)
    again = group.join(static("c"), 0)
    assert refusal(waiting.result) == error_codes.FENCED_INSTANCE_ID
    joined(group, says("a"))
    assert again.result()
    for ask in (group.heartbeat, functools.partial(check_commit, group)):
        assert refusal(ask, "b", 2, 0, "i") == error_codes.FENCED_INSTANCE_ID
        assert refusal(ask, "b", 2, 0) == error_codes.UNKNOWN_MEMBER_ID
        assert refusal(ask, "c", 2, 0, "other") == error_codes.UNKNOWN_MEMBER_ID
    assert leave(group, "b", "i") == error_codes.FENCED_INSTANCE_ID
    leave(group, "", "i")
    assert leave(group, "", "i") == error_codes.UNKNOWN_MEMBER_ID
    assert list(group.members) == ["a"]


def test_members_that_leave_together_rebalance_once(group: Group) -> None:
    joined(group, says("a"))
    waiting = group.join(static("b"), 0)
    gone, unknown = error_codes.NONE, error_codes.UNKNOWN_MEMBER_ID
    assert group.leave([("a", None), ("a", None), ("", "i")], 0) == [gone, unknown, gone]
    assert refusal(waiting.result) == unknown
    assert (group.state, group.generation) == (GroupState.EMPTY, 2)


def test_static_members_stay_until_their_session_ends(group: Group) -> None:
    joined(group, static("a"))
    group.sync("a", 1, {}, 0)
    other = group.join(says("b"), 0)
    group.tick(200)
    found = other.result()
    assert found is not None
    assert (found.leader, [each[0] for each in found.members]) == ("b", ["a", "b"])
    assert refusal(group.heartbeat, "a", 1, 200, "i") == error_codes.ILLEGAL_GENERATION
    leave(group, "b", now_ms=200)
    group.tick(400)  # Nobody else is there to join.
    assert (group.state, list(group.members)) == (GroupState.PREPARING_REBALANCE, ["a"])
    group.tick(6_200)
    assert (group.state, group.members) == (GroupState.EMPTY, {})


def test_only_ids_that_were_handed_out_join(group: Group) -> None:
    group.expect(says("a"), 0)
    group.check_known(says("a"), 5_999)
    assert refusal(group.check_known, says("a"), 6_000) == error_codes.UNKNOWN_MEMBER_ID
    assert refusal(group.check_known, says("b"), 0) == error_codes.UNKNOWN_MEMBER_ID
    joined(group, says("a"))
    group.check_known(says("a"), 9_000)


@pytest.mark.parametrize("end", ["join", "leave", "expire"])
def test_a_rebalance_waits_for_pending_members(group: Group, end: str) -> None:
    joined(group, says("a", rebalance_timeout_ms=60_000))
    group.sync("a", 1, {}, 0)
    group.expect(says("p"), 0)
    second, first = (group.join(says(name, rebalance_timeout_ms=60_000), 0) for name in ("b", "a"))
    group.tick(5_999)
    assert (first.result(), second.result()) == (None, None)
    assert group.next_tick_ms() == 6_000
    if end == "join":
        group.join(says("p"), 0)
    elif end == "leave":
        leave(group, "p")
    else:
        group.tick(6_000)
    assert first.result()
    assert second.result()
    assert group.generation == 2


def test_a_pending_member_that_leaves_a_stable_group_starts_a_rebalance(group: Group) -> None:
    joined(group, says("a"))
    group.sync("a", 1, {}, 0)
    group.expect(says("p"), 0)
    leave(group, "p")
    assert leave(group, "p", None) == error_codes.UNKNOWN_MEMBER_ID
    assert refusal(group.heartbeat, "a", 1, 0) == error_codes.REBALANCE_IN_PROGRESS


def test_pending_members_are_bounded_and_do_not_keep_an_empty_group_waiting(
    group: Group, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumer_groups, "PENDING_MAX", 2)
    for name in ("p", "q"):
        group.expect(says(name), 0)
    assert refusal(group.expect, says("r"), 0) == error_codes.GROUP_MAX_SIZE_REACHED
    joined(group, says("a"))
    group.tick(6_000)
    group.expect(says("r"), 6_000)


def test_the_first_rebalance_waits_longer_when_members_come(group: Group) -> None:
    group = Groups({"group.initial.rebalance.delay.ms": "1000"}).make("g")
    requests = [group.join(says(name, rebalance_timeout_ms=2_500), 0) for name in ("a", "b")]
    group.tick(1_000)
    assert group.next_tick_ms() == 2_000
    group.join(says("c", rebalance_timeout_ms=2_500), 1_500)
    group.tick(2_000)
    assert [request.result() for request in requests] == [None, None]
    assert group.next_tick_ms() == 2_500
    group.tick(2_500)
    assert all(request.result() for request in requests)


@pytest.mark.parametrize(("syncs", "stays"), [("a", "a"), ("b", "b"), ("ab", "ab")])
def test_who_does_not_sync_in_time_is_out(group: Group, syncs: str, stays: str) -> None:
    two(group)
    requests = [group.sync(name, 2, {}, 100) for name in syncs]
    group.tick(200)
    assert "".join(group.members) == stays
    if stays != "ab":
        assert refusal(group.heartbeat, stays, 2, 200) == error_codes.REBALANCE_IN_PROGRESS
    if syncs == "b":
        assert refusal(requests[0].result) == error_codes.REBALANCE_IN_PROGRESS


def test_no_session_ends_while_its_member_waits_for_an_assignment(group: Group) -> None:
    joined(group, says("a", rebalance_timeout_ms=60_000))
    b = group.join(says("b", rebalance_timeout_ms=60_000), 0)
    joined(group, says("a", rebalance_timeout_ms=60_000))
    assert b.result()
    follower = group.sync("b", 2, {}, 0)
    for now_ms in (5_000, 10_000):
        group.heartbeat("a", 2, now_ms)
        group.tick(now_ms)
    group.sync("a", 2, {"b": b"1"}, 10_000)
    assert follower.result() == b"1"
    group.heartbeat("a", 2, 15_999)
    group.tick(15_999)
    assert list(group.members) == ["a", "b"]


def test_who_joins_again_unchanged_gets_the_same_generation(group: Group) -> None:
    two(group)
    for name in ("a", "b"):
        again = joined(group, says(name, session_timeout_ms=7_000))
        assert (again.generation, len(again.members)) == (2, 2 if name == "a" else 0)
    group.sync("a", 2, {}, 0)
    assert joined(group, says("b", rebalance_timeout_ms=1)).generation == 2
    assert group.join(says("a"), 0).result() is None


def test_a_member_joins_again_only_with_a_protocol_that_all_have_now(group: Group) -> None:
    joined(group, says("a", "range", "sticky"))
    assert joined(group, says("a", "sticky", "range")).protocol == "sticky"
    assert refusal(group.join, says("a", "other"), 0) == error_codes.INCONSISTENT_GROUP_PROTOCOL
    assert refusal(group.join, says("a")._replace(protocol_type="connect"), 0) == (
        error_codes.INCONSISTENT_GROUP_PROTOCOL
    )


def test_commits_without_a_generation_are_taken_while_the_group_is_empty(group: Group) -> None:
    check_commit(group, "ghost", -1)
    joined(group, says("a"))
    assert refusal(check_commit, group, "a", -1) == error_codes.ILLEGAL_GENERATION
    leave(group, "a")
    check_commit(group, "a", -1)


def test_a_full_group_is_reported_first() -> None:
    group = Groups({"group.max.size": "2"}).make("g")
    two(group)
    for joining in (says("c", "other"), says("c")._replace(protocols={})):
        for ask in (group.join, group.expect, group.check_known):
            assert refusal(ask, joining, 0) == error_codes.GROUP_MAX_SIZE_REACHED


def test_of_a_full_group_those_that_join_again_first_stay() -> None:
    group = Groups({"group.max.size": "2"}).make("g")
    two(group)
    group.sync("a", 2, {}, 0)
    group.join(says("a"), 0)
    group.join(says("c"), 0)
    assert refusal(group.join, says("b"), 0) == error_codes.GROUP_MAX_SIZE_REACHED
    assert list(group.members) == ["a", "c"]


def test_limits_are_those_of_the_properties() -> None:
    limits = {"group.min.session.timeout.ms": "5", "group.max.session.timeout.ms": "7", "group.max.size": "1"}
    group = Groups(limits).make("g")
    for timeout_ms in (4, 8):
        assert refusal(group.join, says("a", session_timeout_ms=timeout_ms), 0) == error_codes.INVALID_SESSION_TIMEOUT
    joined(group, says("a", session_timeout_ms=5))
    refused = refusal(group.join, says("b", session_timeout_ms=5), 0)
    assert refused == error_codes.GROUP_MAX_SIZE_REACHED


def test_only_so_many_groups_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_coordinator, "GROUPS_MAX", 2)
    groups = Groups({})
    for name in ("a", "b"):
        groups.create(name).offsets["t", 0] = Offset(1, 0, "")
    assert refusal(groups.create, "c") == error_codes.GROUP_MAX_SIZE_REACHED
    groups.groups["a"].offsets.clear()
    groups.create("c")
    assert list(groups.groups) == ["b", "c"]
