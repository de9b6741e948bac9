"""The classic group protocol: who is in a group, in which generation, with what."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from mockraft.brokers import consumer_groups
from mockraft.brokers.consumer_groups import Group, GroupError, Groups, GroupState, Joining
from mockraft.wire import error_codes


@pytest.fixture
def group() -> Iterator[Group]:
    made = Group()
    yield made
    made.close()


def says(member_id: str, *protocols: str, session_timeout_ms: int = 6_000, rebalance_timeout_ms: int = 200) -> Joining:
    named = {name: member_id.encode() for name in protocols or ("range",)}
    return Joining(member_id, None, session_timeout_ms, rebalance_timeout_ms, "consumer", named)


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def two(group: Group) -> None:
    """Members a, which leads, and b, in generation 2."""
    await group.join(says("a"))
    b = asyncio.ensure_future(group.join(says("b")))
    await settle()
    await group.join(says("a"))
    await b


async def test_the_first_member_leads_and_is_told_everybody(group: Group) -> None:
    joined = await group.join(says("a"))
    assert (joined.generation, joined.protocol, joined.leader) == (1, "range", "a")
    assert joined.members == [("a", None, b"a")]


async def test_a_second_member_waits_until_the_first_joins_again(group: Group) -> None:
    await group.join(says("a"))
    second = asyncio.ensure_future(group.join(says("b")))
    await settle()
    assert group.state is GroupState.PREPARING_REBALANCE
    with pytest.raises(GroupError) as told:
        group.heartbeat("a", 1)
    assert told.value.error_code == error_codes.REBALANCE_IN_PROGRESS
    first = await group.join(says("a"))
    assert {member_id for member_id, _, _ in first.members} == {"a", "b"}
    follower = await second
    assert (follower.generation, follower.leader, follower.members) == (2, "a", [])


async def test_who_does_not_join_again_in_time_is_out(group: Group) -> None:
    await group.join(says("a"))
    joined = await group.join(says("b"))
    assert (joined.leader, list(group.members)) == ("b", ["b"])


async def test_everybody_gets_what_the_leader_assigns(group: Group) -> None:
    await two(group)
    follower = asyncio.ensure_future(group.sync("b", 2, {}))
    await settle()
    assert await group.sync("a", 2, {"a": b"0", "b": b"1"}) == b"0"
    assert await follower == b"1"
    assert group.state is GroupState.STABLE
    assert await group.sync("b", 2, {}) == b"1"


async def test_a_rebalance_ends_the_wait_for_an_assignment(group: Group) -> None:
    await two(group)
    follower = asyncio.ensure_future(group.sync("b", 2, {}))
    await settle()
    group.leave("a")
    with pytest.raises(GroupError) as told:
        await follower
    assert told.value.error_code == error_codes.REBALANCE_IN_PROGRESS


async def test_the_last_one_out_leaves_an_empty_group_with_its_offsets(group: Group) -> None:
    await group.join(says("a"))
    group.offsets["orders", 0] = consumer_groups.Offset(5, 0, None)
    group.leave("a")
    assert (group.state, group.generation, group.is_idle) == (GroupState.EMPTY, 2, False)
    group.check_commit("", -1)


async def test_the_assignor_that_all_have_and_most_prefer_is_taken(group: Group) -> None:
    await group.join(says("a", "range", "sticky"))
    second = asyncio.ensure_future(group.join(says("b", "sticky", "range")))
    third = asyncio.ensure_future(group.join(says("c", "sticky", "range")))
    await settle()
    assert (await group.join(says("a", "range", "sticky"))).protocol == "sticky"
    await asyncio.gather(second, third)


@pytest.mark.parametrize(
    ("joining", "error_code"),
    [
        (says("b", session_timeout_ms=5_999), error_codes.INVALID_SESSION_TIMEOUT),
        (says("b", "other"), error_codes.INCONSISTENT_GROUP_PROTOCOL),
        (says("b")._replace(protocol_type="connect"), error_codes.INCONSISTENT_GROUP_PROTOCOL),
        (says("b")._replace(protocols={}), error_codes.INCONSISTENT_GROUP_PROTOCOL),
    ],
)
async def test_who_does_not_fit_is_refused(group: Group, joining: Joining, error_code: int) -> None:
    await group.join(says("a"))
    with pytest.raises(GroupError) as told:
        await group.join(joining)
    assert told.value.error_code == error_code
    assert list(group.members) == ["a"]


@pytest.mark.parametrize(
    ("member_id", "generation", "error_code"),
    [("x", 1, error_codes.UNKNOWN_MEMBER_ID), ("a", 0, error_codes.ILLEGAL_GENERATION), ("", -1, 25)],
)
async def test_only_members_of_the_generation_are_heard(
    group: Group, member_id: str, generation: int, error_code: int
) -> None:
    await group.join(says("a"))
    for ask in (group.heartbeat, group.check_commit):
        with pytest.raises(GroupError) as told:
            ask(member_id, generation)
        assert told.value.error_code == error_code


async def test_a_member_that_is_silent_for_its_session_is_out(group: Group, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumer_groups, "SESSION_TIMEOUT_MIN_MS", 0)
    await group.join(says("a", session_timeout_ms=20))
    async with asyncio.timeout(5):
        while group.members:
            await asyncio.sleep(0.005)
    assert group.state is GroupState.EMPTY


async def test_a_static_member_takes_its_own_place(group: Group) -> None:
    await group.join(says("a")._replace(instance_id="i"))
    await group.join(says("b")._replace(instance_id="i"))
    assert list(group.members) == ["b"]
    group.leave("", "i")
    assert not group.members


async def test_only_so_many_groups_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumer_groups, "GROUPS_MAX", 2)
    groups = Groups({})
    for name in ("a", "b"):
        groups.find(name).offsets["t", 0] = consumer_groups.Offset(1, 0, None)
    with pytest.raises(GroupError) as told:
        groups.find("c")
    assert told.value.error_code == error_codes.GROUP_MAX_SIZE_REACHED
    groups.groups["a"].offsets.clear()
    assert groups.find("c") is groups.find("c")
