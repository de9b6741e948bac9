"""A real broker and a simulated one coordinate a transactional id each, and give equal answers about it."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import pytest
from mockraft.wire import error_codes
from mockraft.wire.message import Message
from mockraft.wire.messages.alter_client_quotas_request import AlterClientQuotasRequest, EntityData, EntryData, OpData
from mockraft.wire.messages.create_topics_request import CreateTopicsRequest
from mockraft.wire.messages.delete_groups_request import DeleteGroupsRequest
from mockraft.wire.messages.describe_producers_request import DescribeProducersRequest, TopicRequest
from mockraft.wire.messages.find_coordinator_request import FindCoordinatorRequest
from mockraft.wire.messages.init_producer_id_request import InitProducerIdRequest
from mockraft.wire.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from mockraft.wire.messages.offset_delete_request import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from mockraft.wire.messages.produce_request import ProduceRequest
from mockraft.wire.messages.write_txn_markers_request import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)

from ...topics import assigned
from .transactional_pair import (
    BOTH,
    GROUP_LEADERS,
    REAL,
    SIMULATED,
    TRANSACTION_LEADERS,
    Make,
    Side,
    Transactions,
    adding,
    adding_offsets,
    committing_offsets,
    constantly,
    coordinated_name,
    describing,
    describing_producers,
    ending,
    fetching,
    fetching_offsets,
    initializing,
    listing,
    producing,
)

pytestmark = pytest.mark.real_kafka

NUMBERS = itertools.count()


@pytest.fixture
async def transactions(pair: Any) -> Transactions:
    topics = [
        assigned("__consumer_offsets", *([leader] for leader in GROUP_LEADERS)),
        assigned("__transaction_state", *([leader] for leader in TRANSACTION_LEADERS)),
    ]
    number = next(NUMBERS)
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
                # ReplicaManager makes a topic's partitions leaders one by one, in the order of a hash map.
                or any(
                    each.error_code for each in (await pair.ask(which, describing_producers(side))).topics[0].partitions
                )
            ):
                await asyncio.sleep(0.05)
    return made


async def expect_same_everywhere(transactions: Transactions) -> None:
    """Compare what administrators and readers see."""
    await transactions.expect_same(describing, 0)
    await transactions.expect_same(describing_producers, 0)
    for version in range(3):
        for filters in ({}, {"state_filters": ["Ongoing", "Empty", "nonsense"]}):
            await transactions.expect_same(listing(**filters), version)
    await transactions.expect_same(listing(duration_filter=100_000), 1)
    for pattern in ("", ".*", "id-.*", "d-", "(?i)ID-[0-9]+.*", "none|id-\\d.*", "(", "[z-a]", "a**", "(?=x)"):
        await transactions.expect_same(listing(transactional_id_pattern=pattern), 2)
    await transactions.expect_same(fetching, 11)
    for version in (7, 8, 9):
        for is_stable in (True, False):
            await transactions.expect_same(fetching_offsets(version, is_stable=is_stable), version)
    await transactions.expect_same(fetching_offsets(7, is_all=True), 7)


@pytest.mark.parametrize("version", range(6))
async def test_producers_are_initialized(transactions: Transactions, version: int) -> None:
    for timeout_ms in (0, -1, 900_001):
        await transactions.expect_same(initializing(timeout_ms), version)
    await transactions.expect_same(
        lambda _: InitProducerIdRequest(transactional_id="", transaction_timeout_ms=1), version
    )
    for _ in range(3):
        await transactions.expect_same(initializing(), version)
    await expect_same_everywhere(transactions)
    if version < 3:
        return
    for epochs_ago in (0, 1, 1, 5, -3):
        await transactions.expect_same(initializing(goes_on=True, epochs_ago=epochs_ago), version)
    halves: list[Any] = [{"producer_id": 5}, {"producer_epoch": 5}]
    for half in halves:
        await transactions.expect_same(constantly(InitProducerIdRequest(transactional_id=None, **half)), version)


@pytest.mark.parametrize("version", range(4))
async def test_partitions_are_added(transactions: Transactions, version: int) -> None:
    await transactions.expect_same(adding(0, version=version), version)  # an unknown id
    await transactions.initialize()
    bys: list[Any] = [{"id_by": 1000}, {"epoch_by": 1}, {"epoch_by": -1}]
    for by in bys:
        await transactions.expect_same(adding(0, version=version, **by), version)
    await transactions.expect_same(adding(0, 7, version=version), version)
    await transactions.expect_same(adding(0, version=version, topic="none"), version)
    assert await transactions.state() == "Empty"
    for indexes in ((0,), (0, 1), (1,)):
        await transactions.expect_same(adding(*indexes, version=version), version)
        await expect_same_everywhere(transactions)


@pytest.mark.parametrize("version", [4, 5])
async def test_brokers_verify_and_add_partitions(transactions: Transactions, version: int) -> None:
    await transactions.expect_same(adding(-1, version=version), version)
    await transactions.initialize()
    await transactions.expect_same(adding(-1, -2, version=version), version)
    await transactions.expect_same(adding(0, version=version), version)
    bys: list[Any] = [{}, {"id_by": 1000}, {"epoch_by": 1}]
    for by in bys:
        await transactions.expect_same(adding(-1, -2, version=version, **by), version)
    await expect_same_everywhere(transactions)


@pytest.mark.parametrize("version", range(6))
@pytest.mark.parametrize("is_commit", [True, False])
async def test_transactions_are_ended(transactions: Transactions, version: int, is_commit: bool) -> None:
    await transactions.expect_same(ending(is_commit=is_commit), version)  # an unknown id
    await transactions.initialize()
    if version < 5:
        await transactions.expect_same(ending(is_commit=is_commit), version)
    await transactions.expect_same(adding(0, 1), 3)
    await transactions.expect_same(producing(), 11)
    await expect_same_everywhere(transactions)
    for by in ({"id_by": 1000}, {"epoch_by": 1}, {"epoch_by": -1}):
        await transactions.expect_same(ending(is_commit=is_commit, **by), version)
    await transactions.expect_same(ending(is_commit=is_commit), version)
    assert await transactions.completed() == ("CompleteCommit" if is_commit else "CompleteAbort")
    await expect_same_everywhere(transactions)
    repeats = -1 if version >= 5 else 0
    await transactions.expect_same(ending(is_commit=is_commit, epoch_by=repeats), version)
    await transactions.expect_same(ending(is_commit=not is_commit, epoch_by=repeats), version)
    await transactions.expect_same(ending(is_commit=True, epoch_by=-2), version)
    await transactions.expect_same(ending(is_commit=True), version)
    await expect_same_everywhere(transactions)


async def test_each_transaction_has_an_epoch(transactions: Transactions) -> None:
    await transactions.initialize()
    for number in range(4):
        for _ in range(2):
            await transactions.expect_same(producing(), 12, settles=True)
            for side in transactions.sides.values():
                side.sequence += 1
        assert await transactions.state() == "Ongoing"
        await transactions.expect_same(ending(is_commit=number % 2 == 0), 5)
        await transactions.completed()
        await expect_same_everywhere(transactions)
    await transactions.expect_same(ending(is_commit=True), 5)
    await transactions.expect_same(ending(is_commit=False), 5)
    await transactions.completed()
    await expect_same_everywhere(transactions)


@pytest.mark.parametrize("version", range(3, 14))
async def test_transactional_records(transactions: Transactions, version: int) -> None:
    await transactions.expect_same(producing(), version)  # without a producer id
    await transactions.initialize()
    await transactions.expect_same(producing(id_by=100_000), version)
    if version < 12:
        await transactions.expect_same(producing(), version)
        await transactions.expect_same(adding(0), 3)
    await transactions.expect_same(producing(sequence=3), version)
    await transactions.expect_same(producing(is_named=False), version)
    await transactions.expect_same(producing(), version)
    bys: list[Any] = [{"epoch_by": -1}, {"epoch_by": 1}, {"sequence": 1}, {"sequence": 7}]
    for by in bys:
        await transactions.expect_same(producing(**by), version)
    await transactions.expect_same(producing(1), version)
    await expect_same_everywhere(transactions)


async def test_older_epoch_leaves_the_open_transaction(transactions: Transactions) -> None:
    for _ in range(2):
        await transactions.initialize()
    await transactions.expect_same(adding(0), 3)
    await transactions.expect_same(producing(), 11)
    await transactions.expect_same(producing(epoch_by=-1), 11)
    answer = await transactions.expect_same(producing(sequence=1), 11)
    assert answer["responses"][0]["partitionResponses"][0]["errorCode"] == error_codes.NONE


@pytest.mark.parametrize("other", [{"epoch_by": 1}, {"id_by": 1000}])
async def test_request_has_the_records_of_one_producer(transactions: Transactions, other: Any) -> None:
    def make(side: Side) -> Message:
        first, second = producing(0)(side), producing(1, **other)(side)
        assert isinstance(first, ProduceRequest)
        assert isinstance(second, ProduceRequest)
        first.topic_data[0].partition_data += second.topic_data[0].partition_data
        return first

    await transactions.initialize()
    for version in (3, 12):
        answer = await transactions.expect_same(make, version)
        codes = {each["errorCode"] for each in answer["responses"][0]["partitionResponses"]}
        assert codes == {error_codes.INVALID_PRODUCER_ID_MAPPING}


async def test_next_transaction_begins_while_markers_are_written(transactions: Transactions) -> None:
    await transactions.initialize()
    await transactions.expect_same(producing(), 11)  # verified, and refused
    await transactions.expect_same(adding(0), 3)
    for _ in range(3):
        await transactions.expect_same(ending(), 5)
        answer = await transactions.expect_same(committing_offsets(), 5, settles=True)
        assert answer["topics"][0]["partitions"][0]["errorCode"] == error_codes.NONE
        answer = await transactions.expect_same(producing(), 12, settles=True)
        assert answer["responses"][0]["partitionResponses"][0]["errorCode"] == error_codes.NONE


@pytest.mark.parametrize("change", ["the group is deleted", "the offset is deleted", "another one is committed"])
async def test_offsets_that_change_while_a_transaction_is_open(transactions: Transactions, change: str) -> None:
    def make(side: Side) -> Message:
        if change == "the group is deleted":
            return DeleteGroupsRequest(groups_names=[side.group_id])
        if change == "the offset is deleted":
            deleted = OffsetDeleteRequestTopic(name=side.topic, partitions=[OffsetDeleteRequestPartition()])
            return OffsetDeleteRequest(group_id=side.group_id, topics=[deleted])
        committed = [OffsetCommitRequestPartition(committed_offset=9)]
        topic = OffsetCommitRequestTopic(name=side.topic, partitions=committed)
        return OffsetCommitRequest(group_id=side.group_id, topics=[topic])

    await transactions.initialize()
    await transactions.expect_same(committing_offsets(), 5)
    for is_stable in (True, False):
        await transactions.expect_same(fetching_offsets(9, is_stable=is_stable), 9)
    await transactions.expect_same(make, 0 if "offset" in change else 2)
    await transactions.expect_same(ending(), 5)
    await transactions.completed()
    answer = await transactions.expect_same(fetching_offsets(9), 9, settles=True)
    found = {each["committedOffset"] for each in answer["groups"][0]["topics"][0]["partitions"]}
    assert found == ({9, -1} if "another" in change else {-1})


@pytest.mark.parametrize("version", range(7))
async def test_offsets_in_transactions(transactions: Transactions, version: int) -> None:
    await transactions.expect_same(committing_offsets("none"), version)
    await transactions.initialize()
    if version < 5:
        await transactions.expect_same(committing_offsets(), version)
        for _ in range(2):
            await transactions.expect_same(adding_offsets, min(version, 4))
    await transactions.expect_same(committing_offsets(epoch_by=1), version)
    if version >= 3:
        await transactions.expect_same(committing_offsets(generation=4, member_id="m"), version)
    await transactions.expect_same(committing_offsets(metadata="x" * 5000), version)
    for end in (False, True):
        await transactions.expect_same(committing_offsets(), version, settles=True)
        await expect_same_everywhere(transactions)
        await transactions.expect_same(ending(is_commit=end), 5 if version >= 5 else 4)
        await transactions.completed()
        await asyncio.sleep(0)
        await expect_same_everywhere(transactions)
        if not end and version < 5:
            await transactions.expect_same(adding_offsets, 4)


async def test_producers_of_topics_that_are_not_there(transactions: Transactions) -> None:
    topics = [TopicRequest(name=name, partition_indexes=[0, 7]) for name in ("none", "a/b", "")]
    await transactions.expect_same(constantly(DescribeProducersRequest(topics=topics)), 0)


async def test_next_producer_aborts_the_transaction_of_the_first(transactions: Transactions) -> None:
    for version in (3, 5):
        await transactions.initialize(version)
        await transactions.expect_same(adding(0), 3)
        await transactions.expect_same(producing(), 11)
        await transactions.expect_same(initializing(), version)
        await transactions.completed()
        await expect_same_everywhere(transactions)
        await transactions.expect_same(producing(sequence=1), 11)
        await transactions.expect_same(initializing(), version, settles=True)
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
        await transactions.expect_same(make, version)


@pytest.mark.parametrize("version", range(7))
async def test_both_name_the_same_coordinators(pair: Any, transactions: Transactions, version: int) -> None:
    kinds = (0, 1, 2, 3) if version >= 1 else (0,)
    topic_id = "A" * 22
    shares = (f"g:{topic_id}:0", f"g::{topic_id}:+7::", f":{topic_id}:0", f" :{topic_id}:0", f"g:{topic_id}:x", "g:x:0")
    for kind, name in itertools.product(kinds, ("a", "b", "Köln", "x" * 200, "", *shares)):
        keys: Any = {"coordinator_keys": [name]} if version >= 4 else {"key": name}
        answer = await pair.same(FindCoordinatorRequest(key_type=kind, **keys), version)
        found = answer["coordinators"][0] if version >= 4 else answer
        is_known = kind < 2 or (kind == 2 and version >= 6 and name in shares[:2])
        assert (found["nodeId"] in BOTH) is is_known


@pytest.mark.parametrize("version", [1, 2])
async def test_markers(transactions: Transactions, version: int) -> None:
    for _ in range(2):
        await transactions.initialize()
    await transactions.expect_same(adding(0), 3)
    await transactions.expect_same(producing(), 11)

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

    await transactions.expect_same(marking(3, topic="none"), version)
    for epoch, epoch_by in ((3, -2), (3, -1), (3, 0), (2, 0), (3, 0), (3, 1)):
        await transactions.expect_same(marking(epoch, epoch_by=epoch_by), version)
        await transactions.expect_same(describing_producers, 0)
        await transactions.expect_same(fetching, 11)
    await transactions.expect_same(lambda _: WriteTxnMarkersRequest(), version)
