"""A real broker and a simulated one have a share group each (KIP-932), and lead its topic: equal answers."""

from __future__ import annotations

import asyncio
import itertools
import re
from base64 import b64decode
from contextlib import AsyncExitStack
from typing import Any

import pytest
from mockraft.brokers.log_dirs.batch_headers import read_headers
from mockraft.wire import client, error_codes, json_form, record_batch
from mockraft.wire.messages import alter_share_group_offsets_request as altering
from mockraft.wire.messages import describe_share_group_offsets_request as describing
from mockraft.wire.messages import share_acknowledge_request as acknowledging
from mockraft.wire.messages import share_fetch_request as fetching
from mockraft.wire.messages.alter_client_quotas_request import AlterClientQuotasRequest, EntityData, EntryData, OpData
from mockraft.wire.messages.alter_share_group_offsets_request import AlterShareGroupOffsetsRequest
from mockraft.wire.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from mockraft.wire.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from mockraft.wire.messages.create_topics_request import CreateTopicsRequest
from mockraft.wire.messages.delete_groups_request import DeleteGroupsRequest
from mockraft.wire.messages.delete_share_group_offsets_request import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
)
from mockraft.wire.messages.describe_groups_request import DescribeGroupsRequest
from mockraft.wire.messages.describe_share_group_offsets_request import DescribeShareGroupOffsetsRequest
from mockraft.wire.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from mockraft.wire.messages.list_groups_request import ListGroupsRequest
from mockraft.wire.messages.list_offsets_request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from mockraft.wire.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from mockraft.wire.messages.offset_fetch_request import OffsetFetchRequest, OffsetFetchRequestGroup
from mockraft.wire.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from mockraft.wire.messages.share_acknowledge_request import ShareAcknowledgeRequest
from mockraft.wire.messages.share_fetch_request import ShareFetchRequest
from mockraft.wire.messages.share_group_describe_request import ShareGroupDescribeRequest
from mockraft.wire.messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest

from ...topics import assigned
from .conftest import setting
from .group_pair import REAL, SIMULATED, Groups

pytestmark = pytest.mark.real_kafka

_numbers = itertools.count()
_GROUP = 32

STEPS = [
    "beat a 0 T; join a; beat a 99; beat x 1; beat a -2; beat a 0; beat - 0 T; beat - 1; describe; others"
    "; consumer; beat a -1; beat a -1; beat a 1; describe; delete; describe; delete; join c; describe"
    "; delete; beat c 1 none; alter 1; forget",
    "consumer; beat a 0 both; beat a 1; describe; offsets; alter 1; forget",
    "produce 3; join a; fetch a 0; fetch a 1; ack a 2 0-2:1; offsets; fetch a 3; produce 1; fetch a 4; offsets"
    "; fetch a 5 ack=3:1; fetch a 5; ack a 5; ack a 6; fetch a -1; ack a -1",
    "join a; produce 5; produce 5; fetch a 0 max=1; fetch b 0 max=7 mode=1; ack a 1 0-1:1/2:2; fetch c 0 wait=0"
    "; ack a 2 3:3; ack a 3 4:2; ack b 1 0-4:1; ack b 1 5-9:1; ack b 2 5-12:1; ack b 3 5-9:1,2,1,2,0; fetch c 1"
    "; fetch c 2 ack=7:1",
    "join a; produce 3; fetch a 0; ack a 1 2-1:1; ack a 2 0-1:1,1,1; ack a 3 0-1:; ack a 4 0:1/0:1; ack a 5 0:9"
    "; ack a 6 0:4; ack a 7 0:-1; ack a 8 0:1/2:1; ack a 9 0-2:1; offsets; ack a 10 0-9:1; ack a 11 1:1"
    "; ack a 12 1:1 1; ack a 13 0:1 9; ack a 14 0:1; produce 4; fetch a 15; ack a 16 5:1/3-4:2",
    "join a; fetch - 0; fetch a 1; fetch a -1; ack a 1; ack a 0; fetch a 0 ack=0:1; fetch a 0 p=9; fetch a 1 t=?"
    "; fetch a 2 p=; fetch a 7; fetch a 0 p=; fetch 0123456789012345678901234567890123456789 0; ack a 1 0:1"
    "; fetch a 2 ack=0:1",
    "join a; produce 4; fetch a 0; close a; fetch b 0; ack b 1 0:2; ack b 2 1:1; ack b -1 2-3:2; fetch c 0"
    "; ack c 1 0:1/2:1; ack c 2 3:1; offsets",
    "join a; produce 5; produce 5; produce 5; fetch a 0 max=6 size=5; ack a 1 0-1:2/7-8:2; fetch a 2 max=3"
    "; fetch a 3 max=1 mode=1; fetch b 0 max=3 mode=1; ack a 4 0-1:2/7-8:2; fetch a 5 max=3 mode=1; fetch b 1",
    "offsets; offsets T; forget; join a; offsets; offsets T; offsets T; produce 4; beat a -1; alter 2; offsets"
    "; fetch b 0; alter 0 both; alter 0 T 7; alter 0 none; offsets; forget none; forget; offsets",
    "alter 1; describe; offsets; forget; offsets; nameless",
    "produce 1; alter 9; fetch a 0; offsets",
    "alter -5; alter -1; offsets; produce 1; fetch a 0",
    "join a; produce 9; fetch a 0 max=3; ack a 1 0:1 0,1; ack a 2 1:1 0,1,9; ack a 3 9:9 0,1; ack a 4 - 0,1,9"
    "; fetch a 5 p=0,1 ack=2:1; fetch a 6 p=1; fetch a 7 p=0,1,9 ack=9-8:1; fetch a 8 min=2000000 wait=4000",
]
"""What members do, each text for a group and a topic of its own; see `Sharers`."""


class Sharers:
    """The members of one broker's group, each with a connection of its own; `T` is the topic that the broker leads."""

    def __init__(self, pair: Any, which: int, group_id: str, topic: tuple[str, bytes], stack: AsyncExitStack) -> None:
        self._pair, self._which, self._group_id, self._stack = pair, which, group_id, stack
        self._topic, self._topic_id = topic
        self._connections: dict[str, Any] = {}
        self.answers: list[tuple[str, Any]] = []

    async def await_topic(self) -> None:
        """The metadata comes to each broker in its own time."""
        asked = ListOffsetsPartition(partition_index=0, timestamp=-1)
        request = ListOffsetsRequest(topics=[ListOffsetsTopic(name=self._topic, partitions=[asked])])
        async with asyncio.timeout(40):
            while (await self._ask(request, 7))["topics"][0]["partitions"][0]["errorCode"]:
                await asyncio.sleep(0.01)

    async def do(self, step: str) -> None:
        verb, *arguments = step.split()
        self.answers.append((step, await getattr(self, f"do_{verb}")(*arguments)))

    async def _ask(self, request: Any, version: int, name: str = "") -> Any:
        if name not in self._connections:
            host, port = self._pair.addresses[self._which].rsplit(":", 1)
            self._connections[name] = connection = await client.connect(host, int(port), client_id="test")
            self._stack.push_async_callback(connection.close)
        response = await self._connections[name].send(request, version=version)
        return self._neutral(json_form.to_json(response, version))

    def _neutral(self, tree: Any) -> Any:
        """Leave out other groups, epochs and names; the epochs of real groups depend on when their state is there."""
        if isinstance(tree, dict):
            left_out = ("throttleTimeMs", "memberEpoch", "groupEpoch", "assignmentEpoch", "topicId", "partitionId")
            tree = {key: self._neutral(value) for key, value in tree.items() if key not in left_out}
            if tree.get("startOffset", -1) > 0:
                tree["startOffset"] = 0  # a real one lags behind until the next acknowledgement
            if isinstance(records := tree.get("records"), str):
                tree["records"] = [(each.base_offset, each.last_offset) for each in read_headers(b64decode(records))]
                tree["acquiredRecords"] = [
                    (offset, each["deliveryCount"])
                    for each in tree["acquiredRecords"]
                    for offset in range(each["firstOffset"], each["lastOffset"] + 1)
                ]
            return tree
        if isinstance(tree, list):
            found = map(self._neutral, tree)
            own = [each for each in found if not isinstance(each, dict) or each.get("groupId", "group") == "group"]
            return sorted(own, key=repr)
        if not isinstance(tree, str):
            return tree
        tree = tree.partition(", and it does not match the previous member epoch")[0]
        return re.sub(r"\(\d+\).*", "(n)", tree.replace(self._group_id, "group").replace(self._topic, "T"))

    def _named(self, name: str) -> str:
        return self._topic if name == "T" else name

    async def do_beat(self, name: str, epoch: str, *topics: str) -> Any:
        member_id = "" if name == "-" else name
        named = [self._named(each) for each in topics] or None
        request = ShareGroupHeartbeatRequest(
            group_id=self._group_id, member_id=member_id, member_epoch=int(epoch), subscribed_topic_names=named
        )
        answer = await self._ask(request, 1)
        del answer["assignment"]
        return answer

    async def do_join(self, name: str) -> Any:
        """Send heartbeats until there is an assignment."""
        epoch, topics = 0, [self._topic]
        async with asyncio.timeout(40):
            while True:
                request = ShareGroupHeartbeatRequest(
                    group_id=self._group_id, member_id=name, member_epoch=epoch, subscribed_topic_names=topics
                )
                response = await self._pair.ask(self._which, request, 1)
                assert response.error_code == error_codes.NONE, response
                if response.assignment.topic_partitions:
                    return [each.partitions for each in response.assignment.topic_partitions]
                epoch = response.member_epoch
                await asyncio.sleep(0.1)

    async def do_produce(self, count: str) -> None:
        records = record_batch.encode([b"x"] * int(count), base_offset=0, leader_epoch=-1, timestamp_ms=1)
        data = PartitionProduceData(index=0, records=records)
        topic = TopicProduceData(name=self._topic, topic_id=self._topic_id, partition_data=[data])
        answer = await self._ask(ProduceRequest(acks=-1, timeout_ms=3000, topic_data=[topic]), 13)
        assert answer["responses"][0]["partitionResponses"][0]["errorCode"] == error_codes.NONE

    async def do_fetch(self, name: str, epoch: str, *told: str) -> Any:
        fields = dict(each.split("=", 1) for each in told)
        batches = [fetching.AcknowledgementBatch(**each) for each in _acknowledged(fields.get("ack", ""))]
        index = fields.get("p", "0")
        partitions = [
            fetching.FetchPartition(partition_index=int(each), acknowledgement_batches=[] if number else batches)
            for number, each in enumerate(filter(None, index.split(",")))
        ]
        topic_id = self._topic_id if fields.get("t") != "?" else bytes(15) + b"?"
        request = ShareFetchRequest(
            group_id=self._group_id,
            member_id="" if name == "-" else name,
            share_session_epoch=int(epoch),
            max_wait_ms=int(fields.get("wait", "500")),
            min_bytes=int(fields.get("min", "1")),
            max_records=int(fields.get("max", "500")),
            batch_size=int(fields.get("size", "500")),
            share_acquire_mode=int(fields.get("mode", "0")),
            topics=[fetching.FetchTopic(topic_id=topic_id, partitions=partitions)],
        )
        return await self._ask(request, 2, name)

    async def do_ack(self, name: str, epoch: str, acknowledged: str = "", partition: str = "0") -> Any:
        batches = [acknowledging.AcknowledgementBatch(**each) for each in _acknowledged(acknowledged)]
        first, *others = map(int, partition.split(","))
        named = [acknowledging.AcknowledgePartition(partition_index=first, acknowledgement_batches=batches)]
        named += [acknowledging.AcknowledgePartition(partition_index=each) for each in others]
        request = ShareAcknowledgeRequest(
            group_id=self._group_id,
            member_id=name,
            share_session_epoch=int(epoch),
            topics=[acknowledging.AcknowledgeTopic(topic_id=self._topic_id, partitions=named)]
            if batches or others
            else [],
        )
        return await self._ask(request, 2, name)

    async def do_close(self, name: str) -> None:
        await self._connections.pop(name).close()

    async def do_describe(self) -> Any:
        return [
            await self._ask(ShareGroupDescribeRequest(group_ids=[self._group_id]), 1),
            await self._ask(ListGroupsRequest(types_filter=["share"]), 5),
            await self._ask(ConsumerGroupDescribeRequest(group_ids=[self._group_id]), 1),
            await self._ask(DescribeGroupsRequest(groups=[self._group_id]), 6),
        ]

    async def do_offsets(self, *names: str) -> Any:
        topics = [
            describing.DescribeShareGroupOffsetsRequestTopic(topic_name=self._named(each), partitions=[0])
            for each in names
        ]
        group = describing.DescribeShareGroupOffsetsRequestGroup(group_id=self._group_id, topics=topics or None)
        return await self._ask(DescribeShareGroupOffsetsRequest(groups=[group]), 1)

    async def do_alter(self, offset: str, name: str = "T", index: str = "0") -> Any:
        partition = altering.AlterShareGroupOffsetsRequestPartition(
            partition_index=int(index), start_offset=int(offset)
        )
        topic = altering.AlterShareGroupOffsetsRequestTopic(topic_name=self._named(name), partitions=[partition])
        return await self._ask(AlterShareGroupOffsetsRequest(group_id=self._group_id, topics=[topic]), 0)

    async def do_forget(self, name: str = "T") -> Any:
        topic = DeleteShareGroupOffsetsRequestTopic(topic_name=self._named(name))
        return await self._ask(DeleteShareGroupOffsetsRequest(group_id=self._group_id, topics=[topic]), 0)

    async def do_nameless(self) -> Any:
        """Requests about the group with the empty id."""
        return [
            await self._ask(AlterShareGroupOffsetsRequest(), 0),
            await self._ask(DeleteShareGroupOffsetsRequest(), 0),
            await self._ask(ShareGroupDescribeRequest(group_ids=[""]), 1),
        ]

    async def do_delete(self) -> Any:
        return await self._ask(DeleteGroupsRequest(groups_names=[self._group_id]), 2)

    async def do_others(self) -> Any:
        """Send requests of other groups to this one."""
        partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
        committed = OffsetCommitRequestTopic(topic_id=self._topic_id, partitions=[partition])
        joining = JoinGroupRequest(
            group_id=self._group_id,
            session_timeout_ms=30_000,
            rebalance_timeout_ms=30_000,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range")],
        )
        return [
            await self._ask(OffsetCommitRequest(group_id=self._group_id, topics=[committed]), 10),
            await self._ask(
                OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=self._group_id, topics=None)]), 10
            ),
            await self._ask(joining, 3),
        ]

    async def do_consumer(self) -> Any:
        """A member of a consumer group."""
        request = ConsumerGroupHeartbeatRequest(
            group_id=self._group_id,
            member_id="c",
            rebalance_timeout_ms=1000,
            topic_partitions=[],
            subscribed_topic_names=["both"],
        )
        return await self._ask(request, 1)


def _acknowledged(text: str) -> list[dict[str, Any]]:
    found = []
    for part in filter(None, text.strip("-").split("/")):
        offsets, _, types = part.partition(":")
        first, _, last = offsets.partition("-")
        found.append(
            {
                "first_offset": int(first),
                "last_offset": int(last or first),
                "acknowledge_types": [int(each) for each in types.split(",") if each],
            }
        )
    return found


@pytest.mark.parametrize("steps", STEPS)
async def test_members_that_acquire_and_acknowledge(groups: Groups, steps: str) -> None:
    pair, number = groups.pair, next(_numbers)
    names = {which: f"shared-{number}-{which}" for which in (REAL, SIMULATED)}
    count = 2 if "0,1" in steps else 1
    topics = [assigned(name, *[[which]] * count) for which, name in names.items()] + [
        assigned("__share_group_state", [REAL])
    ]
    # Before the topics: a broker that knows the topic knows the config.
    resets = [(_GROUP, each, "share.auto.offset.reset", "earliest") for each in groups.group_ids.values()]
    await pair.ask(SIMULATED, setting(*resets))
    created = await pair.ask(SIMULATED, CreateTopicsRequest(timeout_ms=10_000, topics=topics))
    ids = {topic.name: topic.topic_id for topic in created.topics}
    ample = EntryData(
        entity=[EntityData(entity_type="client-id", entity_name="test")],
        ops=[OpData(key="consumer_byte_rate", value=1e9)],
    )
    await pair.ask(SIMULATED, AlterClientQuotasRequest(entries=[ample]))
    async with AsyncExitStack() as stack:
        both = [
            Sharers(pair, which, group_id, (names[which], ids[names[which]]), stack)
            for which, group_id in groups.group_ids.items()
        ]

        async def do(each: Sharers) -> None:
            await each.await_topic()
            for step in steps.split("; "):
                await each.do(step)

        await asyncio.gather(*map(do, both))
    theirs, ours = (each.answers for each in both)
    for (step, real), (_, simulated) in zip(theirs, ours, strict=True):
        assert (step, pair.difference(simulated, real)) == (step, [])
