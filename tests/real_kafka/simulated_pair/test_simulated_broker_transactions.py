"""A real broker and a simulated one coordinate a transactional id each, and give equal answers about it."""

from __future__ import annotations

import asyncio
import itertools
import time
from base64 import b64decode
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from mockraft.brokers.log_dirs.batch_headers import TRANSACTIONAL
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
from mockraft.wire.messages.alter_client_quotas_request import AlterClientQuotasRequest, EntityData, EntryData, OpData
from mockraft.wire.messages.create_topics_request import CreateTopicsRequest
from mockraft.wire.messages.describe_producers_request import DescribeProducersRequest, TopicRequest
from mockraft.wire.messages.describe_transactions_request import DescribeTransactionsRequest
from mockraft.wire.messages.end_txn_request import EndTxnRequest
from mockraft.wire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from mockraft.wire.messages.find_coordinator_request import FindCoordinatorRequest
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
from mockraft.wire.messages.write_txn_markers_request import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)

from ...topics import assigned

pytestmark = pytest.mark.real_kafka

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
_numbers = itertools.count()


@dataclass
class Side:
    """What one broker coordinates: a transactional id, a group, a topic with two partitions; its producer."""

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

    async def same(self, make: Make, version: int, *, settles: bool = False) -> Any:
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
        answer = await self.same(initializing(), version, settles=True)
        assert answer["errorCode"] == 0

    async def state(self) -> str:
        """The equal state of both."""
        return str((await self.same(describing, 0))["transactionStates"][0]["transactionState"])

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


@pytest.fixture
async def transactions(pair: Any) -> Transactions:
    topics = [
        assigned("__consumer_offsets", *([leader] for leader in GROUP_LEADERS)),
        assigned("__transaction_state", *([leader] for leader in TRANSACTION_LEADERS)),
    ]
    number = next(_numbers)
    names = {which: f"transactional-{number}-{which}" for which in BOTH}
    topics += [assigned(name, [which], [which]) for which, name in names.items()]
    created = await pair.ask(SIMULATED, CreateTopicsRequest(timeout_ms=10_000, topics=topics))
    # The cluster's quota for everyone would have the real broker answer with nothing.
    entity = EntityData(entity_type="client-id", entity_name="test")
    ample = EntryData(entity=[entity], ops=[OpData(key="consumer_byte_rate", value=1e9)])
    await pair.ask(SIMULATED, AlterClientQuotasRequest(entries=[ample]))
    ids = {topic.name: topic.topic_id for topic in created.topics}
    sides = {
        which: Side(
            coordinated_name(f"id-{number}", TRANSACTION_LEADERS, which),
            coordinated_name(f"group-{number}", GROUP_LEADERS, which),
            names[which],
            ids[names[which]],
        )
        for which in BOTH
    }
    made = Transactions(pair, sides)
    for which, side in sides.items():
        # The coordinators load their partitions, the topic's leader is elected; a real broker has no producer id when
        # it is first asked for one.
        new_id = InitProducerIdRequest(transactional_id=None)
        async with asyncio.timeout(40):
            while (
                (await pair.ask(which, new_id)).error_code
                or (await pair.ask(which, describing(side))).transaction_states[0].error_code
                != error_codes.TRANSACTIONAL_ID_NOT_FOUND
                or (await pair.ask(which, fetching_offsets(9)(side), 9)).groups[0].error_code
                or (await pair.ask(which, describing_producers(side))).topics[0].partitions[1].error_code
            ):
                await asyncio.sleep(0.05)
    return made


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


def producing(index: int = 0, *, epoch_by: int = 0, sequence: int | None = None, id_by: int = 0) -> Make:
    """Produce one record in the transaction."""

    def make(side: Side) -> ProduceRequest:
        plain = record_batch.encode_pairs([(b"k", b"v")], timestamp_ms=time.time_ns() // 1_000_000)
        at = side.sequence if sequence is None else sequence
        batch = with_producer(plain, side.producer_id + id_by, side.epoch + epoch_by, TRANSACTIONAL, at)
        data = PartitionProduceData(index=index, records=batch)
        topic = TopicProduceData(name=side.topic, topic_id=side.topic_id, partition_data=[data])
        return ProduceRequest(transactional_id=side.transactional_id, acks=-1, timeout_ms=10_000, topic_data=[topic])

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


async def expect_same_everywhere(transactions: Transactions) -> None:
    """Compare what administrators and readers see."""
    await transactions.same(describing, 0)
    await transactions.same(describing_producers, 0)
    for version in (0, 1):
        for filters in ({}, {"state_filters": ["Ongoing", "Empty", "nonsense"]}):
            await transactions.same(listing(**filters), version)
    await transactions.same(listing(duration_filter=100_000), 1)
    await transactions.same(fetching, 11)
    for version in (7, 8, 9):
        for is_stable in (True, False):
            await transactions.same(fetching_offsets(version, is_stable=is_stable), version)
    await transactions.same(fetching_offsets(7, is_all=True), 7)


# Tests.


@pytest.mark.parametrize("version", range(6))
async def test_producers_are_initialized(transactions: Transactions, version: int) -> None:
    for timeout_ms in (0, -1, 900_001):
        await transactions.same(initializing(timeout_ms), version)
    await transactions.same(lambda _: InitProducerIdRequest(transactional_id="", transaction_timeout_ms=1), version)
    for _ in range(3):
        await transactions.same(initializing(), version)
    await expect_same_everywhere(transactions)
    if version < 3:
        return
    for epochs_ago in (0, 1, 1, 5, -3):
        await transactions.same(initializing(goes_on=True, epochs_ago=epochs_ago), version)
    halves: list[Any] = [{"producer_id": 5}, {"producer_epoch": 5}]
    for half in halves:
        await transactions.same(constantly(InitProducerIdRequest(transactional_id=None, **half)), version)


@pytest.mark.parametrize("version", range(4))
async def test_partitions_are_added(transactions: Transactions, version: int) -> None:
    await transactions.same(adding(0, version=version), version)  # an unknown id
    await transactions.initialize()
    bys: list[Any] = [{"id_by": 1000}, {"epoch_by": 1}, {"epoch_by": -1}]
    for by in bys:
        await transactions.same(adding(0, version=version, **by), version)
    await transactions.same(adding(0, 7, version=version), version)
    await transactions.same(adding(0, version=version, topic="none"), version)
    assert await transactions.state() == "Empty"
    for indexes in ((0,), (0, 1), (1,)):
        await transactions.same(adding(*indexes, version=version), version)
        await expect_same_everywhere(transactions)


@pytest.mark.parametrize("version", [4, 5])
async def test_brokers_verify_and_add_partitions(transactions: Transactions, version: int) -> None:
    await transactions.same(adding(-1, version=version), version)
    await transactions.initialize()
    await transactions.same(adding(-1, -2, version=version), version)
    await transactions.same(adding(0, version=version), version)
    bys: list[Any] = [{}, {"id_by": 1000}, {"epoch_by": 1}]
    for by in bys:
        await transactions.same(adding(-1, -2, version=version, **by), version)
    await expect_same_everywhere(transactions)


@pytest.mark.parametrize("version", range(6))
@pytest.mark.parametrize("is_commit", [True, False])
async def test_transactions_are_ended(transactions: Transactions, version: int, is_commit: bool) -> None:
    await transactions.same(ending(is_commit=is_commit), version)  # an unknown id
    await transactions.initialize()
    if version < 5:
        await transactions.same(ending(is_commit=is_commit), version)
    await transactions.same(adding(0, 1), 3)
    await transactions.same(producing(), 11)
    await expect_same_everywhere(transactions)
    for by in ({"id_by": 1000}, {"epoch_by": 1}, {"epoch_by": -1}):
        await transactions.same(ending(is_commit=is_commit, **by), version)
    await transactions.same(ending(is_commit=is_commit), version)
    assert await transactions.completed() == ("CompleteCommit" if is_commit else "CompleteAbort")
    await expect_same_everywhere(transactions)
    repeats = -1 if version >= 5 else 0
    await transactions.same(ending(is_commit=is_commit, epoch_by=repeats), version)
    await transactions.same(ending(is_commit=not is_commit, epoch_by=repeats), version)
    await transactions.same(ending(is_commit=True, epoch_by=-2), version)
    await transactions.same(ending(is_commit=True), version)
    await expect_same_everywhere(transactions)


async def test_each_transaction_has_an_epoch(transactions: Transactions) -> None:
    await transactions.initialize()
    for number in range(4):
        for _ in range(2):
            await transactions.same(producing(), 12, settles=True)
            for side in transactions.sides.values():
                side.sequence += 1
        assert await transactions.state() == "Ongoing"
        await transactions.same(ending(is_commit=number % 2 == 0), 5)
        await transactions.completed()
        await expect_same_everywhere(transactions)
    await transactions.same(ending(is_commit=True), 5)
    await transactions.same(ending(is_commit=False), 5)
    await transactions.completed()
    await expect_same_everywhere(transactions)


@pytest.mark.parametrize("version", range(3, 14))
async def test_transactional_records(transactions: Transactions, version: int) -> None:
    await transactions.same(producing(), version)  # without a producer id
    await transactions.initialize()
    await transactions.same(producing(id_by=100_000), version)
    if version < 12:
        await transactions.same(producing(), version)
        await transactions.same(adding(0), 3)
    await transactions.same(producing(sequence=3), version)
    await transactions.same(producing(), version)
    for by in ({"epoch_by": -1}, {"epoch_by": 1}, {"sequence": 1}, {"sequence": 7}):
        await transactions.same(producing(**by), version)
    await transactions.same(producing(1), version)
    await expect_same_everywhere(transactions)


@pytest.mark.parametrize("version", range(6))
async def test_offsets_in_transactions(transactions: Transactions, version: int) -> None:
    await transactions.same(committing_offsets("none"), version)
    await transactions.initialize()
    if version < 5:
        await transactions.same(committing_offsets(), version)
        for _ in range(2):
            await transactions.same(adding_offsets, min(version, 4))
    await transactions.same(committing_offsets(epoch_by=1), version)
    if version >= 3:
        await transactions.same(committing_offsets(generation=4, member_id="m"), version)
    await transactions.same(committing_offsets(metadata="x" * 5000), version)
    for end in (False, True):
        await transactions.same(committing_offsets(), version, settles=True)
        await expect_same_everywhere(transactions)
        await transactions.same(ending(is_commit=end), 5 if version >= 5 else 4)
        await transactions.completed()
        await asyncio.sleep(0)
        await expect_same_everywhere(transactions)
        if not end and version < 5:
            await transactions.same(adding_offsets, 4)


async def test_next_producer_aborts_the_transaction_of_the_first(transactions: Transactions) -> None:
    for version in (3, 5):
        await transactions.initialize(version)
        await transactions.same(adding(0), 3)
        await transactions.same(producing(), 11)
        await transactions.same(initializing(), version)
        await transactions.completed()
        await expect_same_everywhere(transactions)
        await transactions.same(producing(sequence=1), 11)
        await transactions.same(initializing(), version, settles=True)
        await expect_same_everywhere(transactions)


async def test_ids_of_another_coordinator_are_refused(transactions: Transactions) -> None:
    transactions.sides = {REAL: transactions.sides[SIMULATED], SIMULATED: transactions.sides[REAL]}
    for make, version in (
        (initializing(), 5),
        (adding(0), 3),
        (adding_offsets, 4),
        (ending(), 5),
        (describing, 0),
        (describing_producers, 0),
        (committing_offsets(), 5),
        (fetching_offsets(9), 9),
    ):
        await transactions.same(make, version)


@pytest.mark.parametrize("version", range(7))
async def test_both_name_the_same_coordinators(pair: Any, transactions: Transactions, version: int) -> None:
    for kind, names in ((0, ("a", "b", "Köln", "")), (1, ("a", "b", "Köln", "x" * 200))):
        for name in names:
            keys: Any = {"coordinator_keys": [name]} if version >= 4 else {"key": name}
            fields: Any = {"key_type": kind} if version >= 1 else {}
            if kind == 0 or version >= 1:
                await pair.same(FindCoordinatorRequest(**keys, **fields), version, without_words)


def without_words(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {key: without_words(value) for key, value in tree.items() if key != "errorMessage"}
    return [without_words(each) for each in tree] if isinstance(tree, list) else tree


@pytest.mark.parametrize("version", [1, 2])
async def test_markers(transactions: Transactions, version: int) -> None:
    for _ in range(2):
        await transactions.initialize()
    await transactions.same(adding(0), 3)
    await transactions.same(producing(), 11)

    def marking(coordinator_epoch: int, *, epoch_by: int = 0, topic: str | None = None) -> Make:
        def make(side: Side) -> WriteTxnMarkersRequest:
            names = [WritableTxnMarkerTopic(name=topic or side.topic, partition_indexes=[0, 5])]
            marker = WritableTxnMarker(
                producer_id=side.producer_id,
                producer_epoch=side.epoch + epoch_by,
                transaction_result=True,
                topics=names,
                coordinator_epoch=coordinator_epoch,
            )
            return WriteTxnMarkersRequest(markers=[marker])

        return make

    await transactions.same(marking(3, topic="none"), version)
    for epoch, epoch_by in ((3, -2), (3, -1), (3, 0), (2, 0), (3, 0), (3, 1)):
        await transactions.same(marking(epoch, epoch_by=epoch_by), version)
        await transactions.same(describing_producers, 0)
        await transactions.same(fetching, 11)
    await transactions.same(lambda _: WriteTxnMarkersRequest(), version)
