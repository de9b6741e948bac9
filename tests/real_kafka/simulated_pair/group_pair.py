"""Two groups, one coordinated by the real broker and one by the simulated one, and the same requests to both."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from typing import Any

from mockraft.wire import error_codes, json_form
from mockraft.wire.java_values import hash_code
from mockraft.wire.message import Message
from mockraft.wire.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from mockraft.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from mockraft.wire.messages.create_topics_request import CreateTopicsRequest
from mockraft.wire.messages.describe_groups_request import DescribeGroupsRequest
from mockraft.wire.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from mockraft.wire.messages.metadata_request import MetadataRequest, MetadataRequestTopic

from ...topics import assigned

REAL, SIMULATED = 1, 2
LEADERS = (REAL, SIMULATED)
"""The leaders of the partitions of __consumer_offsets."""
_numbers = itertools.count()

Make = Callable[[str, str], Message]
"""Make a request from the group's id and its member's id."""


class Groups:
    """One group on each of the two brokers, and the same requests to both."""

    def __init__(self, pair: Any, group_ids: dict[int, str]) -> None:
        self.pair = pair
        self.group_ids = group_ids
        self.member_ids = {REAL: "", SIMULATED: ""}

    async def expect_same(self, make: Make, version: int) -> Any:
        """Return the equal answer of both; fail on a difference."""
        answers = {}
        for which, group_id in self.group_ids.items():
            response = await self.pair.ask(which, make(group_id, self.member_ids[which]), version)
            answers[which] = self._neutral(json_form.to_json(response, version), group_id)
        assert self.pair.difference(answers[SIMULATED], answers[REAL]) == []
        return answers[REAL]

    async def join(self, protocol_type: str = "consumer", metadata: bytes | None = None) -> None:
        """Let one member join, which leads."""
        if metadata is None:
            metadata = bytes(2) + ConsumerProtocolSubscription(topics=["both"]).write(0)
        protocols = [JoinGroupRequestProtocol(name="range", metadata=metadata)]
        for which, group_id in self.group_ids.items():
            joined = await self.pair.ask(
                which,
                JoinGroupRequest(
                    group_id=group_id,
                    session_timeout_ms=30_000,
                    rebalance_timeout_ms=30_000,
                    protocol_type=protocol_type,
                    protocols=protocols,
                ),
                3,
            )
            assert joined.error_code == error_codes.NONE
            self.member_ids[which] = joined.member_id

    async def move(self, *replicas: int) -> None:
        """Move the partition of the simulated broker's group; the first replica leads."""
        partition = ReassignablePartition(partition_index=LEADERS.index(SIMULATED), replicas=[*replicas])
        topics = [ReassignableTopic(name="__consumer_offsets", partitions=[partition])]
        await self.pair.ask(SIMULATED, AlterPartitionReassignmentsRequest(topics=topics, timeout_ms=10_000))
        described = MetadataRequest(topics=[MetadataRequestTopic(name="__consumer_offsets")])
        async with asyncio.timeout(40):
            while True:
                (topic,) = (await self.pair.ask(SIMULATED, described, 9)).topics
                found = next(each for each in topic.partitions if each.partition_index == partition.partition_index)
                if sorted(found.isr_nodes) == sorted(found.replica_nodes) == sorted(replicas):
                    return
                await asyncio.sleep(0.05)

    def _neutral(self, tree: Any, group_id: str) -> Any:
        """Without the ids of the groups and their members, and without other groups."""
        if isinstance(tree, dict):
            tree = {key: value for key, value in tree.items() if key not in {"throttleTimeMs", "leader"}}
            named = {key: "member" for key in ("memberId",) if tree.get(key)}
            return {key: self._neutral(value, group_id) for key, value in (tree | named).items()}
        if isinstance(tree, list):
            return [
                self._neutral(each, group_id)
                for each in tree
                if not isinstance(each, dict) or each.get("groupId", group_id) == group_id
            ]
        return tree.replace(group_id, "group") if isinstance(tree, str) else tree


async def loaded(pair: Any) -> Groups:
    """Two groups, each of whose coordinator has loaded its partition."""
    topic = assigned("__consumer_offsets", *([leader] for leader in LEADERS))
    await pair.ask(SIMULATED, CreateTopicsRequest(timeout_ms=10_000, topics=[topic]))
    number = next(_numbers)
    names = (f"group-{number}-{each}" for each in itertools.count())
    ids: dict[int, str] = {}
    while len(ids) < 2:
        name = next(names)
        ids.setdefault(LEADERS[abs(hash_code(name)) % len(LEADERS)], name)
    for which, name in ids.items():
        # The coordinator loads the partition.
        async with asyncio.timeout(40):
            while (await pair.ask(which, describing(name), 6)).groups[0].error_code != error_codes.GROUP_ID_NOT_FOUND:
                await asyncio.sleep(0.05)
    return Groups(pair, {which: ids[which] for which in (REAL, SIMULATED)})


def describing(group_id: str, _member_id: str = "") -> DescribeGroupsRequest:
    return DescribeGroupsRequest(groups=[group_id])
