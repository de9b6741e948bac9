"""Members of a group of one broker, which do what a test's steps say.

Members with a capital letter are static: it is their instance id.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import Any

from mockraft.wire import error_codes
from mockraft.wire.message import Message
from mockraft.wire.messages.heartbeat_request import HeartbeatRequest
from mockraft.wire.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from mockraft.wire.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from mockraft.wire.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from mockraft.wire.messages.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment

STEPS = [
    "join p 4; heartbeat p 0; leave p; leave p; join p 4",
    "join a; sync a 1; join p 4; heartbeat a 1; leave p; heartbeat a 1",
    "join a; sync a 1; join p 4; join& b; join& a; join p 4; finish a; finish b",
    "join a; sync a 1; join p 4; join& b; join& a; leave p; finish a; finish b",
    "join a; join a; join& b; join a; finish b; join b; join a; sync& b 2; sync a 2; join b 3 range 20000; join& a",
    "join a 3 range,x; join a 3 x,range; join a 3 y; join a 3 x,y; join a 3 range",
    "commit x -1; join a; commit a -1; commit a 1; sync a 1; commit a 1; commit a -1; leave a; commit a -1",
    "join a; join& b; join a; finish b; sync a 2; heartbeat b 2; await_rebalance a 2; heartbeat b 2",
    "join a; join& b; join a; finish b; sync& b 2; finish b; heartbeat a 2",
    "join_elsewhere a",
    "join A; sync A 1; restart A; join A 9; heartbeat A' 1; heartbeat A 1; sync A' 1; sync A 1; commit A' 1; commit A 1"
    "; join A'; leave A'; leave A; heartbeat A 1; leave A",
    "join A; join& B; join A; finish B; sync& B 2; sync A 2; finish B; restart B; join B; sync B 2; restart A; join A"
    "; sync A 2; restart A; join A 9; sync A 2; leave_by_instance B; heartbeat A 2",
    "join A; sync A 1; join& B; restart A; join A; finish B; restart A; join& A; restart B; join B; finish A",
    "join A; sync A 1; join& b; finish b; heartbeat A 1; heartbeat A 2; restart A; join& A; join b; finish A",
    "join A; sync A 1; join& B; restart B; join& B; finish B'; join A; finish B; sync& B 2; restart B; join& B"
    "; finish B'",
    "join a 4; as_static a; join A 5 range,x; sync A 1; restart A; join A 5 x; restart A; join A 5 y; join& B 5 x",
]
"""Members that come and go, each text for a group of its own."""


def committing(group_id: str, _member_id: str) -> OffsetCommitRequest:
    topics = [
        OffsetCommitRequestTopic(name=name, partitions=[OffsetCommitRequestPartition(committed_offset=3)])
        for name in ("both", "single")
    ]
    return OffsetCommitRequest(group_id=group_id, topics=topics)


def instance_id(name: str) -> str | None:
    return name[0] if name[0].isupper() else None


class Members:
    """The members of one broker's group by name, and what each request was answered with."""

    def __init__(self, pair: Any, which: int, group_id: str, other_id: str) -> None:
        self.answers: dict[str, list[object]] = defaultdict(list)
        self.group_id = group_id
        self._pair, self._which, self._other_id = pair, which, other_id
        self._ids: dict[str, str] = {}
        self._waiting: dict[str, asyncio.Task[None]] = {}

    async def do(self, step: str) -> None:
        """Do one step: its verb, the member and the arguments; a verb with an ampersand is not waited for."""
        verb, name, *arguments = step.split()
        if verb == "finish":
            await self._waiting[name]
        elif verb.endswith("&"):
            self._waiting[name] = asyncio.create_task(getattr(self, verb[:-1])(name, *arguments))
            await asyncio.wait([self._waiting[name]], timeout=0.2)
            self.answers[name].append([each for each, task in self._waiting.items() if not task.done()])
        else:
            await getattr(self, verb)(name, *arguments)

    async def _ask(self, request: Message, version: int) -> Any:
        return await self._pair.ask(self._which, request, version)

    async def join(self, name: str, version: str = "3", protocols: str = "range", session_ms: str = "30000") -> None:
        """Join; a new member of version 4 gets an id first."""
        named = [JoinGroupRequestProtocol(name=each, metadata=b"m") for each in protocols.split(",")]
        request = JoinGroupRequest(
            group_id=self.group_id,
            member_id=self._ids.get(name, ""),
            group_instance_id=instance_id(name),
            session_timeout_ms=int(session_ms),
            rebalance_timeout_ms=1_000,
            protocol_type="consumer",
            protocols=named,
        )
        answer = await self._ask(request, max(int(version), 5) if instance_id(name) else int(version))
        if answer.error_code in (error_codes.NONE, error_codes.MEMBER_ID_REQUIRED):
            self._ids[name] = answer.member_id
        leads = answer.leader == answer.member_id != ""
        found = (answer.error_code, answer.generation_id, leads, len(answer.members), answer.skip_assignment)
        self.answers[name].append((*found, bool(answer.member_id)))

    async def restart(self, name: str) -> None:
        """Forget the member's id, which the name with an apostrophe keeps."""
        self._ids[f"{name}'"] = self._ids.pop(name, "")
        if name in self._waiting:
            self._waiting[f"{name}'"] = self._waiting.pop(name)

    async def as_static(self, name: str) -> None:
        """Join as a static member with the id of another one."""
        self._ids[name.upper()] = self._ids[name]
        await self.join(name.upper())
        del self._ids[name.upper()]

    async def join_elsewhere(self, name: str) -> None:
        """Join the other broker's group with a session of one millisecond."""
        request = JoinGroupRequest(group_id=self._other_id, session_timeout_ms=1, rebalance_timeout_ms=1)
        self.answers[name].append((await self._ask(request, 3)).error_code)

    async def sync(self, name: str, generation: str) -> None:
        """Sync; the leader assigns each its name."""
        assignments = [
            SyncGroupRequestAssignment(member_id=each, assignment=key.encode()) for key, each in self._ids.items()
        ]
        request = SyncGroupRequest(
            group_id=self.group_id, generation_id=int(generation), member_id=self._ids[name], assignments=assignments
        )
        request.group_instance_id = instance_id(name)
        answer = await self._ask(request, 3)
        self.answers[name].append((answer.error_code, answer.assignment))

    async def heartbeat(self, name: str, generation: str) -> None:
        """Send a heartbeat."""
        request = HeartbeatRequest(group_id=self.group_id, member_id=self._ids[name], generation_id=int(generation))
        request.group_instance_id = instance_id(name)
        self.answers[name].append((await self._ask(request, 3)).error_code)

    async def leave(self, name: str) -> None:
        """Leave; the id stays known here."""
        if instance_id(name) is not None:
            await self.leave_by_instance(name, self._ids[name])
            return
        request = LeaveGroupRequest(group_id=self.group_id, member_id=self._ids[name])
        self.answers[name].append((await self._ask(request, 2)).error_code)

    async def leave_by_instance(self, name: str, member_id: str = "") -> None:
        """Let a static member leave."""
        member = MemberIdentity(member_id=member_id, group_instance_id=instance_id(name))
        answer = await self._ask(LeaveGroupRequest(group_id=self.group_id, members=[member]), 4)
        self.answers[name].append((answer.error_code, [each.error_code for each in answer.members]))

    async def commit(self, name: str, generation: str) -> None:
        """Commit an offset."""
        request = committing(self.group_id, "")
        request.generation_id_or_member_epoch, request.member_id = int(generation), self._ids.get(name, name)
        request.group_instance_id = instance_id(name)
        answer = await self._ask(request, 7)
        self.answers[name].append([partition.error_code for topic in answer.topics for partition in topic.partitions])

    async def await_rebalance(self, name: str, generation: str) -> None:
        """Send heartbeats until one tells of a rebalance."""
        async with asyncio.timeout(40):
            while self.answers[name][-1:] != [error_codes.REBALANCE_IN_PROGRESS]:
                await self.heartbeat(name, generation)
                await asyncio.sleep(0.05)
        self.answers[name] = [error_codes.REBALANCE_IN_PROGRESS]
