"""One transactional id, group and topic on each of two brokers, and the same requests about them to both."""

from __future__ import annotations

import asyncio
import itertools
import time
from base64 import b64decode
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from mockraft.brokers.log_dirs.transaction_markers import with_producer
from mockraft.brokers.partitions.hosted import whole_batches
from mockraft.wire import error_codes, json_form, record_batch
from mockraft.wire.java_values import hash_code
from mockraft.wire.message import Message
from mockraft.wire.messages.add_offsets_to_txn_request import AddOffsetsToTxnRequest
from mockraft.wire.messages.add_partitions_to_txn_request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from mockraft.wire.messages.describe_producers_request import DescribeProducersRequest, TopicRequest
from mockraft.wire.messages.describe_transactions_request import DescribeTransactionsRequest
from mockraft.wire.messages.end_txn_request import EndTxnRequest
from mockraft.wire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from mockraft.wire.messages.init_producer_id_request import InitProducerIdRequest
from mockraft.wire.messages.list_transactions_request import ListTransactionsRequest
from mockraft.wire.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from mockraft.wire.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from mockraft.wire.messages.txn_offset_commit_request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from mockraft.wire.record_batch import TRANSACTIONAL

REAL, SIMULATED = 1, 2
BOTH = (REAL, SIMULATED)
GROUP_LEADERS = (REAL, SIMULATED)
TRANSACTION_LEADERS = (REAL, SIMULATED, REAL)
IGNORED = {
    "throttleTimeMs",
    "errorMessage",
    "transactionStartTimeMs",
    "lastTimestamp",
    "currentLeader",
    "nodeEndpoints",
    "sessionId",
    "topicId",
    "coordinatorEpoch",
}
"""Times and words, and epochs of leaders."""
TIMEOUT_MS = 60_000


@dataclass
class Side:
    """A broker's transactional id and group, its topic of two partitions, and its producer."""

    transactional_id: str
    group_id: str
    topic: str
    topic_id: bytes
    producer_id: int = -1
    epoch: int = -1
    sequence: int = 0
    ids: list[int] = field(default_factory=list)


Make = Callable[[Side], Message]


class Transactions:
    """The same requests to both brokers, each about its own."""

    def __init__(self, pair: Any, sides: dict[int, Side]) -> None:
        self.pair = pair
        self.sides = sides

    async def expect_same(self, make: Make, version: int, *, settles: bool = False) -> Any:
        """Return the equal answer of both; fail on a difference. `settles`: while a transaction ends it is repeated."""
        answers = {}
        for which, side in self.sides.items():
            async with asyncio.timeout(20):
                while True:
                    request = make(side)
                    response = await self.pair.ask(which, request, version)
                    tree = json_form.to_json(response, version)
                    if not settles or not UNSETTLED & set(_codes(tree)):
                        break
                    await asyncio.sleep(0.02)
            if type(request).__name__.endswith(("InitProducerIdRequest", "EndTxnRequest")):
                self._remember(side, response)
            answers[which] = self._neutral(tree, side)
        differences = self.pair.difference(answers[SIMULATED], answers[REAL])
        assert not differences, "\n".join(differences)
        return answers[REAL]

    async def initialize(self, version: int = 5) -> None:
        answer = await self.expect_same(initializing(), version, settles=True)
        assert answer["errorCode"] == 0

    async def state(self) -> str:
        """The equal state of both."""
        return str((await self.expect_same(describing, 0))["transactionStates"][0]["transactionState"])

    async def completed(self) -> str:
        """The state of both once the markers are written."""
        async with asyncio.timeout(20):
            for which, side in self.sides.items():
                while (await self.pair.ask(which, describing(side))).transaction_states[0].transaction_state in ENDING:
                    await asyncio.sleep(0.01)
        return await self.state()

    def _remember(self, side: Side, response: Any) -> None:
        if response.error_code == error_codes.NONE and response.producer_id >= 0:
            side.producer_id, side.epoch, side.sequence = response.producer_id, response.producer_epoch, 0

    def _neutral(self, tree: Any, side: Side, name: str = "") -> Any:
        """Without names and ids of producers: these are numbered as they come."""
        if isinstance(tree, dict):
            if isinstance(tree.get("records"), str):
                tree["records"] = _values(tree["records"])
            if tree.get("topic") == "__consumer_offsets":
                tree["partitions"] = len(tree["partitions"])
            return {key: self._neutral(value, side, key) for key, value in tree.items() if key not in IGNORED}
        if isinstance(tree, list):
            found = [self._neutral(each, side) for each in tree if _is_of(each, side)]
            return sorted(found, key=repr)
        if name == "producerId" and isinstance(tree, int) and tree >= 0:
            if tree not in side.ids:
                side.ids.append(tree)
            return f"producer {side.ids.index(tree)}"
        if isinstance(tree, str):
            for own, neutral in ((side.transactional_id, "id"), (side.group_id, "group"), (side.topic, "topic")):
                tree = tree.replace(own, neutral)
        return tree


ENDING = ("PrepareCommit", "PrepareAbort")
UNSETTLED = {error_codes.CONCURRENT_TRANSACTIONS}


def _codes(tree: Any) -> list[int]:
    if isinstance(tree, dict):
        own = [value for key, value in tree.items() if key in ("errorCode", "partitionErrorCode")]
        return own + [code for value in tree.values() for code in _codes(value)]
    return [code for each in tree for code in _codes(each)] if isinstance(tree, list) else []


def _is_of(tree: Any, side: Side) -> bool:
    return not isinstance(tree, dict) or tree.get("transactionalId", side.transactional_id) == side.transactional_id


def _values(records: str) -> list[str]:
    data = whole_batches(b64decode(records), 1 << 30)
    return [
        f"{header.attributes & 0x30:#x} at {header.base_offset}"
        for header in record_batch.read_headers(data, allow_partial_tail=True)
    ]


def coordinated_name(prefix: str, leaders: tuple[int, ...], which: int) -> str:
    """A name whose partition this broker leads."""
    names = (f"{prefix}-{each}" for each in itertools.count())
    return next(name for name in names if leaders[abs(hash_code(name)) % len(leaders)] == which)


# Requests.


def initializing(timeout_ms: int = TIMEOUT_MS, *, goes_on: bool = False, epochs_ago: int = 0) -> Make:
    def make(side: Side) -> InitProducerIdRequest:
        given: Any = {"producer_id": side.producer_id, "producer_epoch": side.epoch - epochs_ago} if goes_on else {}
        return InitProducerIdRequest(transactional_id=side.transactional_id, transaction_timeout_ms=timeout_ms, **given)

    return make


def constantly(request: Message) -> Make:
    return lambda _side: request


def adding(*indexes: int, topic: str | None = None, version: int = 3, id_by: int = 0, epoch_by: int = 0) -> Make:
    """Add partitions, or verify them from version 4 on with negative indexes (-1 is partition 0)."""

    def make(side: Side) -> AddPartitionsToTxnRequest:
        verifies = any(index < 0 for index in indexes)
        topics = [
            AddPartitionsToTxnTopic(
                name=side.topic if topic is None else topic,
                partitions=[-1 - index if verifies else index for index in indexes],
            )
        ]
        producer_id, epoch = side.producer_id + id_by, side.epoch + epoch_by
        if version < 4:
            return AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=side.transactional_id,
                v3_and_below_producer_id=producer_id,
                v3_and_below_producer_epoch=epoch,
                v3_and_below_topics=topics,
            )
        return AddPartitionsToTxnRequest(
            transactions=[
                AddPartitionsToTxnTransaction(
                    transactional_id=side.transactional_id,
                    producer_id=producer_id,
                    producer_epoch=epoch,
                    verify_only=verifies,
                    topics=topics,
                )
            ]
        )

    return make


def adding_offsets(side: Side) -> AddOffsetsToTxnRequest:
    return AddOffsetsToTxnRequest(
        transactional_id=side.transactional_id,
        producer_id=side.producer_id,
        producer_epoch=side.epoch,
        group_id=side.group_id,
    )


def producing(
    index: int = 0, *, epoch_by: int = 0, sequence: int | None = None, id_by: int = 0, is_named: bool = True
) -> Make:
    """Produce one record in the transaction."""

    def make(side: Side) -> ProduceRequest:
        plain = record_batch.encode_pairs([(b"k", b"v")], timestamp_ms=time.time_ns() // 1_000_000)
        at = side.sequence if sequence is None else sequence
        batch = with_producer(plain, side.producer_id + id_by, side.epoch + epoch_by, TRANSACTIONAL, at)
        data = PartitionProduceData(index=index, records=batch)
        topic = TopicProduceData(name=side.topic, topic_id=side.topic_id, partition_data=[data])
        name = side.transactional_id if is_named else None
        return ProduceRequest(transactional_id=name, acks=-1, timeout_ms=10_000, topic_data=[topic])

    return make


def committing_offsets(
    *topics: str, epoch_by: int = 0, member_id: str = "", generation: int = -1, metadata: str = ""
) -> Make:
    def make(side: Side) -> TxnOffsetCommitRequest:
        return TxnOffsetCommitRequest(
            transactional_id=side.transactional_id,
            group_id=side.group_id,
            producer_id=side.producer_id,
            producer_epoch=side.epoch + epoch_by,
            member_id=member_id,
            generation_id_or_member_epoch=generation,
            topics=[
                TxnOffsetCommitRequestTopic(
                    name=name,
                    topic_id=side.topic_id if name == side.topic else b"?" * 16,
                    partitions=[
                        TxnOffsetCommitRequestPartition(
                            partition_index=0, committed_offset=3, committed_metadata=metadata
                        )
                    ],
                )
                for name in topics or (side.topic,)
            ],
        )

    return make


def fetching_offsets(version: int, *, is_stable: bool = True, is_all: bool = False) -> Make:
    def make(side: Side) -> OffsetFetchRequest:
        if version >= 8:
            topics = [OffsetFetchRequestTopics(name=side.topic, topic_id=side.topic_id, partition_indexes=[0, 1])]
            group = OffsetFetchRequestGroup(group_id=side.group_id, topics=None if is_all else topics)
            return OffsetFetchRequest(groups=[group], require_stable=is_stable)
        return OffsetFetchRequest(
            group_id=side.group_id,
            topics=None if is_all else [OffsetFetchRequestTopic(name=side.topic, partition_indexes=[0, 1])],
            require_stable=is_stable,
        )

    return make


def ending(*, is_commit: bool = True, epoch_by: int = 0, id_by: int = 0) -> Make:
    return lambda side: EndTxnRequest(
        transactional_id=side.transactional_id,
        producer_id=side.producer_id + id_by,
        producer_epoch=side.epoch + epoch_by,
        committed=is_commit,
    )


def describing(side: Side) -> DescribeTransactionsRequest:
    return DescribeTransactionsRequest(transactional_ids=[side.transactional_id])


def listing(**filters: Any) -> Make:
    return lambda _side: ListTransactionsRequest(**filters)


def describing_producers(side: Side) -> DescribeProducersRequest:
    return DescribeProducersRequest(topics=[TopicRequest(name=side.topic, partition_indexes=[0, 1])])


def fetching(side: Side) -> FetchRequest:
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    topic = FetchTopic(topic=side.topic, topic_id=side.topic_id, partitions=[partition])
    return FetchRequest(max_wait_ms=0, min_bytes=1, max_bytes=1 << 20, topics=[topic], isolation_level=1)
