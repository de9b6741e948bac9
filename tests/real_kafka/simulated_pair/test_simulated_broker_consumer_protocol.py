"""A real broker and a simulated one coordinate a group of the consumer protocol each (KIP-848): equal answers."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from mockraft.brokers.coordinators import state_log
from mockraft.wire import error_codes, json_form
from mockraft.wire.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from mockraft.wire.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest, TopicPartitions
from mockraft.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from mockraft.wire.messages.delete_groups_request import DeleteGroupsRequest
from mockraft.wire.messages.heartbeat_request import HeartbeatRequest
from mockraft.wire.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from mockraft.wire.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from mockraft.wire.messages.list_groups_request import ListGroupsRequest
from mockraft.wire.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from mockraft.wire.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from mockraft.wire.messages.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment

from .group_pair import REAL, SIMULATED, Groups, describing

pytestmark = pytest.mark.real_kafka

STEPS = [
    "a 0 t=both; a 2 o=both:0,1; a 2; a 9; a 1 o=both:0; a 1; b 0 t=both,single; a 2 o=both:0,1; a 2 o=both:0; b 3"
    "; a 3 o=both:0; a -1; b 3; b 3 o=; b -1; a 0 t=both",
    "a 0 t=both s=range; b 0 t=both s=range; a 2 o=both:0,1; a 2 o=both:0; b 3; c 0 t=single s=uniform; c 0 t=single"
    "; b 3 t=single o=both:1; b 3 o=; a 5; b 5; c 5; d 0 t=both s=sticky",
    "a 0 t=both,single,alone; b 0 t=both,single,alone; a 2 o=; b 3; c 0 t=both,alone; a 3 o=; b 3 o=; a 4; b 4; c 4"
    "; d 0 t=both,single,alone s=range; e 0 t=single s=range; f 0 s=range t=alone; a 5 o=; b 5 o=; c 5 o=; d 6; e 7",
    "a 0 r=bo.* until=2; a 1 o=; a 1; b 0 r=bo.*; a 2 o=both:0; b 3; c 0 r=[; c 0 r=(?=x)"
    "; d 0 t=single r=bo.*; d 0 t=single r=; e 0 t= r=none; e 0 t=",
    "A 0 t=both; B 0 t=both; A 2 o=both:0; B 3; A -2; B 3; A 0 m=a2 t=both; A 0 m=a3 t=both; A 3; A 4 m=a2; B -1; C -1"
    "; A -1 m=a2; A -1 m=a2",
    "a 0 t=both v=0; a 0 m= t=both v=0; a 0 m= t=both; a 0; a 0 t=both o=both:0; a -3; a -2; a 5; a 0 t=both to=-1"
    "; a 0 t=both i=; a -1; a 0 t=unknown; a 2 t=; a 2 t=both; a 3",
    "a 0 t=both; commit a 2; commit a 1; commit a 3; commit a -1; commit x 2; commit - -1; fetch a 2; fetch a 1"
    "; fetch x 2; fetch - -1; b 0 t=both; a 2 o=both:0; commit a 2; commit b 2; b 3; commit b 3; commit a 2 v=8; delete"
    "; a -1; b -1; commit - -1; fetch a 2; delete",
    "join x; sync x 1; a 0 t=both; beat x 1; sync x 1; join x; sync x 2; beat x 2; a 2 o=; join y; sync y 3; beat x 2"
    "; join x; sync x 3; a 3; a -1; beat x 4; beat x 3",
    "a 0 t=both; join x 3; join x 5; join x 5; beat x 2; sync x 3; a 2 o=both:0,1; a 2 o=both:0; beat x 3; join x 5"
    "; sync x 3; commit x 3; leave x; a 3; a 4 o=both:0; join a; leave a; join z 3",
    "a 0 t=both; join x 3 0; join y 3 1; join z 3 2; join w 5 0; join w 5 0; join v 3 7; a 2",
    "commit - -1; fetch - -1; a 0 t=both; fetch - -1; a -1; join x; beat x 1; leave x; a 0 t=both",
]
"""Members that come and go, each text for a group of its own; see `Members`. `t` are topics, `o` what it owns."""


class Members:
    """The members of one broker's group; their ids are their names. Those with a capital letter are static.

    A step is the member, its epoch and what else its heartbeat says, or a verb of the classic protocol.
    """

    def __init__(self, groups: Groups, which: int) -> None:
        self.answers: list[tuple[Any, ...]] = []
        self._pair, self._which, self._group_id = groups.pair, which, groups.group_ids[which]
        self._ids: dict[str, str] = {}

    async def do(self, step: str) -> None:
        verb, *arguments = step.split()
        if (known := getattr(self, f"do_{verb}", None)) is not None:
            await known(*arguments)
        else:
            await self._heartbeat(verb, *arguments)
        for version in (0, 1):
            described = await self._ask(ConsumerGroupDescribeRequest(group_ids=[self._group_id]), version)
            self.answers.append((step, version, described))
        self.answers.append((step, await self._ask(ListGroupsRequest(types_filter=["consumer"]), 5)))
        self.answers.append((step, await self._ask(describing(self._group_id), 6)))

    async def _ask(self, request: Any, version: int) -> Any:
        response = await self._pair.ask(self._which, request, version)
        return self._neutral(json_form.to_json(response, version))

    def _neutral(self, tree: Any) -> Any:
        if isinstance(tree, dict):
            if tree.get("errorCode") == error_codes.INVALID_REGULAR_EXPRESSION:
                tree["errorMessage"] = tree["errorMessage"].partition(": ")[0]  # the rest is the parser's
            return {key: self._neutral(value) for key, value in tree.items() if key != "throttleTimeMs"}
        if isinstance(tree, list):
            kept = [
                each
                for each in tree
                if not isinstance(each, dict) or each.get("groupId", self._group_id) == self._group_id
            ]
            return sorted(map(self._neutral, kept), key=repr)
        if not isinstance(tree, str):
            return tree
        drawn = [member_id for name, member_id in self._ids.items() if member_id != name]
        return "drawn" if tree in drawn else tree.replace(self._group_id, "group")

    async def _heartbeat(self, name: str, epoch: str, *fields: str) -> None:
        told = dict(each.split("=", 1) for each in fields)
        version = int(told.pop("v", "1"))
        request = ConsumerGroupHeartbeatRequest(
            group_id=self._group_id,
            member_id=told.get("m", name),
            member_epoch=int(epoch),
            instance_id=told.get("i", name if name.isupper() else None),
            rebalance_timeout_ms=int(told.get("to", "30000" if epoch == "0" else "-1")),
            subscribed_topic_regex=told.get("r"),
            server_assignor=told.get("s"),
        )
        if "t" in told:
            request.subscribed_topic_names = [each for each in told["t"].split(",") if each]
        if "o" in told or epoch == "0":
            request.topic_partitions = [
                TopicPartitions(
                    topic_id=self._pair.topic_ids[topic], partitions=[int(each) for each in named.split(",")]
                )
                for topic, _, named in [part.partition(":") for part in told.get("o", "").split("/") if part]
            ]
        response = await self._pair.ask(self._which, request, version)
        if "until" in told:  # the regular expression is resolved
            await self._await_epoch(int(told["until"]))
        if told.get("m") == "" and not response.error_code:
            self._ids[""] = response.member_id
        self.answers.append(((name, epoch, *fields), self._neutral(json_form.to_json(response, version))))

    async def _await_epoch(self, epoch: int) -> None:
        request = ConsumerGroupDescribeRequest(group_ids=[self._group_id])
        async with asyncio.timeout(20):
            while (await self._pair.ask(self._which, request, 0)).groups[0].group_epoch != epoch:
                await asyncio.sleep(0.05)

    async def do_commit(self, member: str, epoch: str, *fields: str) -> None:
        version = int(dict(each.split("=") for each in fields).get("v", "9"))
        partitions = [OffsetCommitRequestPartition(partition_index=0, committed_offset=1)]
        request = OffsetCommitRequest(
            group_id=self._group_id,
            member_id="" if member == "-" else self._ids.get(member, member),
            generation_id_or_member_epoch=int(epoch),
            topics=[OffsetCommitRequestTopic(name="both", partitions=partitions)],
        )
        self.answers.append(("commit", member, epoch, await self._ask(request, version)))

    async def do_fetch(self, member: str, epoch: str) -> None:
        group = OffsetFetchRequestGroup(
            group_id=self._group_id,
            member_id=None if member == "-" else member,
            member_epoch=int(epoch),
            topics=[OffsetFetchRequestTopics(name="both", partition_indexes=[0])],
        )
        self.answers.append(("fetch", member, epoch, await self._ask(OffsetFetchRequest(groups=[group]), 9)))

    async def do_delete(self) -> None:
        self.answers.append(("delete", await self._ask(DeleteGroupsRequest(groups_names=[self._group_id]), 2)))

    async def do_join(self, name: str, version: str = "3", metadata_size: str = "1000") -> None:
        metadata = (bytes(2) + ConsumerProtocolSubscription(topics=["both"]).write(0))[: int(metadata_size)]
        request = JoinGroupRequest(
            group_id=self._group_id,
            member_id=self._ids.get(name, ""),
            session_timeout_ms=30_000,
            rebalance_timeout_ms=20_000,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=metadata)],
        )
        answer = await self._pair.ask(self._which, request, int(version))
        if answer.member_id:
            self._ids[name] = answer.member_id
        found = [answer.error_code, answer.generation_id, answer.protocol_name, answer.leader == answer.member_id]
        self.answers.append(("join", name, found))

    async def do_sync(self, name: str, generation: str) -> None:
        member_id = self._ids.get(name, name)
        assigned = bytes.fromhex("0000 00000001 0004") + b"both" + bytes.fromhex("00000002 00000000 00000001 ffffffff")
        assignments = [SyncGroupRequestAssignment(member_id=member_id, assignment=assigned)]
        request = SyncGroupRequest(
            group_id=self._group_id, member_id=member_id, generation_id=int(generation), assignments=assignments
        )
        answer = await self._pair.ask(self._which, request, 3)
        self.answers.append(("sync", name, [answer.error_code, answer.assignment]))

    async def do_beat(self, name: str, generation: str) -> None:
        member_id = self._ids.get(name, name)
        request = HeartbeatRequest(group_id=self._group_id, member_id=member_id, generation_id=int(generation))
        self.answers.append(("beat", name, (await self._pair.ask(self._which, request, 3)).error_code))

    async def do_leave(self, name: str) -> None:
        members = [MemberIdentity(member_id=self._ids.get(name, name))]
        request = LeaveGroupRequest(group_id=self._group_id, members=members)
        answer = await self._pair.ask(self._which, request, 4)
        self.answers.append(("leave", name, [answer.error_code, *(each.error_code for each in answer.members)]))


@pytest.mark.parametrize("steps", STEPS)
async def test_members_that_come_and_go(groups: Groups, steps: str) -> None:
    real, simulated = Members(groups, REAL), Members(groups, SIMULATED)

    async def do(each: Members) -> None:
        for step in steps.split("; "):
            await each.do(step)

    await asyncio.gather(do(real), do(simulated))
    for ours, theirs in zip(simulated.answers, real.answers, strict=True):
        assert (ours[:-1], groups.pair.difference(ours[-1], theirs[-1])) == (theirs[:-1], [])


TAKEN_OVER = "a 0 t=both; b 0 t=both; a 2 o=both:0,1; A 0 t=both,single r=sing.* until=5; join x 3; commit a 2"
"""A member that has yet to revoke, a static one, a regular expression and a classic member."""


async def test_a_group_is_taken_over_by_a_real_broker_and_back(groups: Groups, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_log, "REWRITTEN_BYTES", 5_000)
    ours = Members(groups, SIMULATED)
    request = ConsumerGroupDescribeRequest(group_ids=[groups.group_ids[SIMULATED]])

    async def described(which: int) -> Any:
        async with asyncio.timeout(40):
            while (found := await groups.pair.tree(which, request, 1))["groups"][0]["errorCode"]:
                await asyncio.sleep(0.05)
        return found

    await groups.move(SIMULATED, REAL)
    for step in TAKEN_OVER.split("; "):
        await ours.do(step)
    before = await described(SIMULATED)
    assert len(before["groups"][0]["members"]) == 4
    for which in (REAL, SIMULATED):
        await groups.move(which)
        assert groups.pair.difference(await described(which), before) == []
        await groups.move(which, REAL + SIMULATED - which)
