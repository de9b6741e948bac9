"""Data requests as they are on the wire: the answer of a leader and its follower, version by version."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from mockraft.brokers.apis.api import ConnectionClosedError
from mockraft.brokers.assignments import ReplicaKey
from mockraft.brokers.disks.memory_disk import MemoryDisk
from mockraft.brokers.image import ClusterImage
from mockraft.brokers.log_dirs.errors import LogError
from mockraft.brokers.log_dirs.produced_batches import LogConfig
from mockraft.brokers.log_dirs.replica_log import ReplicaLog
from mockraft.brokers.log_dirs.transaction_markers import Marker
from mockraft.brokers.partitions.hosted import HostedPartition, PartitionHost
from mockraft.brokers.partitions.partition import Assignment, Partition, Registered
from mockraft.brokers.partitions.settings import ReplicaSettings, TopicSettings
from mockraft.brokers.replication_quota import ReplicationThrottle
from mockraft.wire import error_codes, record_batch
from mockraft.wire.messages.delete_records_request import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from mockraft.wire.messages.fetch_request import ReplicaState
from mockraft.wire.messages.list_offsets_request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from mockraft.wire.messages.offset_for_leader_epoch_request import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

from ..partitions.data_requests import BATCH, answered, fetch, produced, transactional, with_producer
from .conftest import Cluster, topic_id

Ask = Callable[..., Any]
ORDERS = topic_id("orders")


class Replicas:
    """The replicas of one broker: its copy of partition 0 of `orders`."""

    settings = ReplicaSettings()

    def __init__(self, broker_id: int, image: ClusterImage) -> None:
        self.log: ReplicaLog | None = ReplicaLog(MemoryDisk(f"/d{broker_id}"), "orders-0")
        self.leader_throttle = ReplicationThrottle("leader", image, broker_id)

        def registered(other_id: int) -> Registered:
            other = image.brokers[other_id]
            return Registered(other.broker_epoch, other.fenced, other.in_controlled_shutdown)

        self.partition = HostedPartition(
            (ORDERS, 0),
            "orders",
            Partition(broker_id, registered),
            lambda: TopicSettings(1, LogConfig()),
            PartitionHost(lambda _key: self.log, lambda _hosted, _change: None, lambda: None),
        )

    def hosted(self, key: ReplicaKey) -> HostedPartition | None:
        return self.partition if key == (ORDERS, 0) else None

    def find(self, key: ReplicaKey) -> HostedPartition:
        if key != (ORDERS, 0):
            raise LogError(error_codes.UNKNOWN_TOPIC_OR_PARTITION, "there is none")
        return self.partition

    def disk_delay_ms(self, _keys: object) -> float:
        return 0


class Pair:
    """Broker 1, which leads, and broker 2, which follows; its fetches are made by `follow`."""

    def __init__(self) -> None:
        self.is_stuck = False
        first, second = Cluster(), Cluster()
        second.image = second.broker.image = first.image
        self.clusters = {1: first, 2: second}
        for broker_id in self.clusters:
            first.register(broker_id)
        first.create("orders", {"replicas": [1, 2], "leader_epoch": 0})
        self.replicas = {broker_id: Replicas(broker_id, first.image) for broker_id in self.clusters}
        for broker_id, cluster in self.clusters.items():
            cluster.broker.replicas = self.replicas[broker_id]
            cluster.meanwhile = self.follow
        assignment = Assignment(leader=1, leader_epoch=0, isr=(1, 2), replicas=(1, 2), partition_epoch=0)
        self.leader.lead(assignment, 0)
        self.follower.follow(assignment)

    @property
    def leader(self) -> HostedPartition:
        return self.replicas[1].partition

    @property
    def follower(self) -> HostedPartition:
        return self.replicas[2].partition

    def ask(self, request: Any, version: int | None = None, broker_id: int = 1) -> Any:
        return self.clusters[broker_id].ask(request, version)

    def follow(self) -> None:
        """Let the follower fetch what there is, and once more, which reports its offsets to the leader."""
        log, state = self.follower.log, ReplicaState(replica_id=2, replica_epoch=12)
        for _ in range(0 if self.is_stuck else 3):
            fields = {"log_start_offset": log.start_offset, "current_leader_epoch": 0, "replica_state": state}
            found = answered(self.ask(fetch(ORDERS, log.end_offset, **fields)))
            if found.records:
                self.follower.append_fetched(bytes(found.records))
            log.high_watermark = min(found.high_watermark, log.end_offset)
            log.advance_start_offset(max(log.start_offset, found.log_start_offset))


@pytest.fixture
def pair() -> Pair:
    return Pair()


@pytest.fixture
def ask(pair: Pair) -> Ask:
    """`ask(request, version, broker_id=1)`."""
    return pair.ask


@pytest.mark.parametrize("version", range(3, 14))
def test_produce_in_every_version(ask: Ask, version: int) -> None:
    first = answered(ask(produced(ORDERS), version))
    second = answered(ask(produced(ORDERS), version))
    assert [(each.error_code, each.base_offset) for each in (first, second)] == [(0, 0), (0, 2)]


@pytest.mark.parametrize("version", range(4, 19))
def test_fetch_in_every_version(ask: Ask, version: int) -> None:
    ask(produced(ORDERS))
    found = answered(ask(fetch(ORDERS), version))
    assert (found.error_code, found.high_watermark, found.last_stable_offset) == (0, 2, 2)
    (batch,) = record_batch.read_batches(found.records)
    assert [value for _, value in batch.records] == [b"a", b"b"]
    assert (batch.base_offset, batch.leader_epoch) == (0, 0)


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        (b"", error_codes.INVALID_RECORD),
        (BATCH + BATCH, error_codes.INVALID_RECORD),
        (BATCH[:40], error_codes.INVALID_RECORD),
        (BATCH[:-1] + b"\xff", error_codes.CORRUPT_MESSAGE),
    ],
    ids=["nothing", "two batches", "half a batch", "wrong CRC"],
)
def test_invalid_batch_is_refused_and_not_written(pair: Pair, ask: Ask, records: bytes, expected: int) -> None:
    assert answered(ask(produced(ORDERS, records))).error_code == expected
    assert pair.leader.log.end_offset == 0


def test_non_leader_is_refused_with_the_current_leader(ask: Ask) -> None:
    response = ask(produced(ORDERS), broker_id=2)
    refused = answered(response)
    assert (refused.error_code, refused.base_offset) == (error_codes.NOT_LEADER_OR_FOLLOWER, -1)
    assert (refused.current_leader.leader_id, refused.current_leader.leader_epoch) == (1, 0)
    assert [node.node_id for node in response.node_endpoints] == [1]
    refused = answered(ask(fetch(ORDERS), 10, broker_id=2))
    assert refused.error_code == error_codes.NOT_LEADER_OR_FOLLOWER


def test_follower_serves_consumers_up_to_its_high_watermark(pair: Pair, ask: Ask) -> None:
    ask(produced(ORDERS))
    pair.follow()
    assert answered(ask(fetch(ORDERS), 12, broker_id=2)).records


def test_topics_and_partitions_that_are_not_there(ask: Ask) -> None:
    unknown = bytes(16)
    assert answered(ask(produced(unknown), 13)).error_code == error_codes.UNKNOWN_TOPIC_ID
    assert answered(ask(produced(ORDERS, partition=7), 13)).error_code == error_codes.UNKNOWN_TOPIC_OR_PARTITION
    assert answered(ask(fetch(unknown), 13)).error_code == error_codes.UNKNOWN_TOPIC_ID
    found = answered(ask(fetch(ORDERS, partition=7), 12))
    assert found.error_code == error_codes.UNKNOWN_TOPIC_OR_PARTITION


def test_acks_that_do_not_exist_are_refused_for_partitions_that_do(ask: Ask) -> None:
    assert answered(ask(produced(ORDERS, acks=2))).error_code == error_codes.INVALID_REQUIRED_ACKS
    unknown = answered(ask(produced(ORDERS, b"", acks=2, partition=7)))
    assert unknown.error_code == error_codes.UNKNOWN_TOPIC_OR_PARTITION
    assert answered(ask(produced(ORDERS, b"", acks=2))).error_code == error_codes.INVALID_RECORD


def test_a_failure_with_acks_0_closes_the_connection(pair: Pair, ask: Ask) -> None:
    with pytest.raises(ConnectionClosedError, match="acks=0"):
        ask(produced(ORDERS, b"", acks=0))


def test_acks_all_times_out_while_a_follower_is_stuck(pair: Pair, ask: Ask) -> None:
    pair.is_stuck = True
    request = produced(ORDERS)
    request.timeout_ms = 100
    assert answered(ask(request)).error_code == error_codes.REQUEST_TIMED_OUT


def test_a_batch_that_is_sent_twice_is_written_once(pair: Pair, ask: Ask) -> None:
    offsets = [answered(ask(produced(ORDERS, with_producer(9, 0, sequence)))).base_offset for sequence in (0, 2, 0, 2)]
    assert offsets == [0, 2, 0, 2]
    assert pair.leader.log.end_offset == 4
    gap = answered(ask(produced(ORDERS, with_producer(9, 0, 6))))
    assert gap.error_code == error_codes.OUT_OF_ORDER_SEQUENCE_NUMBER


@pytest.mark.parametrize(
    ("epoch", "expected"), [(-1, 0), (0, 0), (1, error_codes.UNKNOWN_LEADER_EPOCH)], ids=["none", "ours", "newer"]
)
def test_fetch_with_a_wrong_leader_epoch_is_refused(ask: Ask, epoch: int, expected: int) -> None:
    ask(produced(ORDERS))
    assert answered(ask(fetch(ORDERS, current_leader_epoch=epoch))).error_code == expected


@pytest.mark.parametrize("offset", [-1, 3])
def test_an_offset_outside_the_log_is_out_of_range(ask: Ask, offset: int) -> None:
    ask(produced(ORDERS))
    found = answered(ask(fetch(ORDERS, offset)))
    assert (found.error_code, found.high_watermark, found.records) == (error_codes.OFFSET_OUT_OF_RANGE, -1, b"")


def test_diverging_log_is_answered_with_the_diverging_epoch(ask: Ask) -> None:
    ask(produced(ORDERS))
    found = answered(ask(fetch(ORDERS, 9, last_fetched_epoch=0)))
    assert (found.error_code, found.diverging_epoch.epoch, found.diverging_epoch.end_offset) == (0, 0, 2)
    assert found.records == b""
    newer = answered(ask(fetch(ORDERS, 2, last_fetched_epoch=5)))
    assert newer.error_code == error_codes.OFFSET_OUT_OF_RANGE


def test_a_replica_that_is_not_assigned_may_not_fetch(ask: Ask) -> None:
    stranger = ReplicaState(replica_id=3, replica_epoch=1)
    found = answered(ask(fetch(ORDERS, current_leader_epoch=0, replica_state=stranger)))
    assert found.error_code == error_codes.UNKNOWN_LEADER_EPOCH


def test_no_fetch_session_is_made(ask: Ask) -> None:
    assert (ask(fetch(ORDERS, session_id=0, session_epoch=0))).session_id == 0
    assert ask(fetch(ORDERS, session_epoch=5)).error_code == error_codes.FETCH_SESSION_ID_NOT_FOUND
    assert ask(fetch(ORDERS, session_id=5, session_epoch=-3)).error_code == error_codes.FETCH_SESSION_ID_NOT_FOUND
    response = ask(fetch(ORDERS, session_id=5, session_epoch=3))
    assert response.error_code == error_codes.FETCH_SESSION_ID_NOT_FOUND


def test_first_batch_alone_is_returned_whole_whatever_max_bytes_is(ask: Ask) -> None:
    ask(produced(ORDERS))
    ask(produced(ORDERS))
    assert len(answered(ask(fetch(ORDERS, partition_max_bytes=1))).records) == len(BATCH)
    assert len(answered(ask(fetch(ORDERS, max_bytes=1))).records) == len(BATCH)
    request = fetch(ORDERS, max_bytes=0)
    request.topics[0].partitions *= 3
    (partition,) = ask(request).responses[0].partitions
    assert len(partition.records) == len(BATCH), "named three times, read once"


def offsets(
    timestamp: int, *, replica_id: int = -1, epoch: int = -1, partition: int = 0, isolation_level: int = 0
) -> ListOffsetsRequest:
    asked = ListOffsetsPartition(partition_index=partition, timestamp=timestamp, current_leader_epoch=epoch)
    topics = [ListOffsetsTopic(name="orders", partitions=[asked])]
    return ListOffsetsRequest(replica_id=replica_id, isolation_level=isolation_level, topics=topics)


@pytest.mark.parametrize(
    ("timestamp", "offset", "time_ms"),
    [(-1, 4, -1), (-2, 0, -1), (-3, 2, 5_000), (-4, 0, -1), (0, 0, 1_000), (1_001, 2, 5_000), (5_001, -1, -1)],
)
def test_list_offsets(ask: Ask, timestamp: int, offset: int, time_ms: int) -> None:
    later = record_batch.encode([b"c", b"d"], base_offset=0, leader_epoch=-1, timestamp_ms=5_000)
    ask(produced(ORDERS))
    ask(produced(ORDERS, later))
    found = answered(ask(offsets(timestamp)))
    assert (found.error_code, found.offset, found.timestamp) == (0, offset, time_ms)
    assert found.leader_epoch == (0 if offset >= 0 else -1)


@pytest.mark.parametrize("version", range(1, 12))
def test_list_offsets_in_every_version(ask: Ask, version: int) -> None:
    ask(produced(ORDERS))
    assert answered(ask(offsets(-1), version)).offset == 2


@pytest.mark.parametrize("timestamp", [-1, 0, 1 << 40])
def test_no_offset_is_available_until_the_high_watermark_reaches_the_start_of_the_epoch(
    pair: Pair, ask: Ask, timestamp: int
) -> None:
    pair.is_stuck = True
    answered(ask(produced(ORDERS, acks=1)))
    pair.leader.lead(Assignment(leader=1, leader_epoch=1, isr=(1, 2), replicas=(1, 2), partition_epoch=1), 0)
    codes = [answered(ask(offsets(timestamp), version)).error_code for version in (4, 5)]
    assert codes == [error_codes.LEADER_NOT_AVAILABLE, error_codes.OFFSET_NOT_AVAILABLE]


def test_list_offsets_refuses_invalid_requests(ask: Ask) -> None:
    assert answered(ask(offsets(-1, epoch=3))).error_code == error_codes.UNKNOWN_LEADER_EPOCH
    assert answered(ask(offsets(-1), broker_id=2)).error_code == error_codes.NOT_LEADER_OR_FOLLOWER
    assert answered(ask(offsets(-1, partition=4))).error_code == error_codes.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("version", [2, 3, 4])
def test_the_end_of_a_leader_epoch(ask: Ask, version: int) -> None:
    ask(produced(ORDERS))

    def asked(epoch: int) -> OffsetForLeaderEpochRequest:
        partition = OffsetForLeaderPartition(partition=0, leader_epoch=epoch)
        return OffsetForLeaderEpochRequest(
            replica_id=-1 if version >= 3 else -2, topics=[OffsetForLeaderTopic(topic="orders", partitions=[partition])]
        )

    known = answered(ask(asked(0), version))
    newer = answered(ask(asked(4), version))
    assert (known.error_code, known.leader_epoch, known.end_offset) == (0, 0, 2)
    assert (newer.error_code, newer.leader_epoch, newer.end_offset) == (0, -1, -1)


@pytest.mark.parametrize("broker_id", [1, 2])
def test_readers_of_committed_records_get_what_is_below_the_last_stable_offset(
    pair: Pair, ask: Ask, broker_id: int
) -> None:
    ask(produced(ORDERS))
    pair.leader.append(transactional(7), -1, 1_000, is_verified=True)
    for _ in range(2):
        pair.follow()

    def read() -> list[tuple[Any, ...]]:
        answers = [answered(ask(fetch(ORDERS, isolation_level=level), broker_id=broker_id)) for level in (0, 1)]
        return [
            (
                len(each.records) // len(BATCH),
                each.high_watermark,
                each.last_stable_offset,
                [(one.producer_id, one.first_offset) for one in each.aborted_transactions or ()],
            )
            for each in answers
        ]

    assert read() == [(2, 4, 2, []), (1, 4, 2, [])]
    assert [answered(ask(offsets(-1, isolation_level=level))).offset for level in (0, 1)] == [4, 2]
    pair.leader.append_marker(Marker(7, 0, 3, False), 1_000)
    for _ in range(2):
        pair.follow()
    assert read() == [(3, 5, 5, []), (3, 5, 5, [(7, 2)])]
    assert answered(ask(offsets(-1, isolation_level=1))).offset == 5


def test_list_offsets_finds_no_time_above_the_last_stable_offset(pair: Pair, ask: Ask) -> None:
    ask(produced(ORDERS))
    pair.leader.append(transactional(7), -1, 1_000, is_verified=True)
    pair.follow()
    later = record_batch.encode([b"c"], base_offset=0, leader_epoch=-1, timestamp_ms=5_000)
    ask(produced(ORDERS, later))
    found = [answered(ask(offsets(2_000, isolation_level=level))) for level in (0, 1)]
    assert [(each.error_code, each.offset) for each in found] == [(0, 4), (0, -1)]


def test_a_failed_directory_is_a_storage_error_until_another_leads(pair: Pair, ask: Ask) -> None:
    pair.replicas[1].log = None
    for request in (produced(ORDERS), fetch(ORDERS), offsets(-1)):
        assert answered(ask(request)).error_code == error_codes.KAFKA_STORAGE_ERROR


def test_deleting_records_times_out_while_a_follower_is_stuck(pair: Pair, ask: Ask) -> None:
    ask(produced(ORDERS))
    pair.is_stuck = True
    partitions = [DeleteRecordsPartition(partition_index=0, offset=-1)]
    request = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name="orders", partitions=partitions)], timeout_ms=5_000)
    assert answered(ask(request)).error_code == error_codes.REQUEST_TIMED_OUT
