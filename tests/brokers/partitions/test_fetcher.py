"""A fetcher without a network: its requests, and its reaction to each kind of response."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from mockraft.brokers.effects import Link
from mockraft.brokers.partitions.partition import Assignment
from mockraft.brokers.partitions.settings import ReplicaSettings
from mockraft.wire import error_codes
from mockraft.wire.errors import DisconnectedError
from mockraft.wire.messages import fetch_request as fetch
from mockraft.wire.messages import list_offsets_request as list_offsets
from mockraft.wire.messages.fetch_response import EpochEndOffset, FetchableTopicResponse, FetchResponse, PartitionData
from mockraft.wire.messages.list_offsets_response import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)

from .fetching_broker import KEY, OTHER, TOPIC_ID, Cluster, Sent, batch

BACKOFF_MS = 1000


@pytest.fixture
def cluster() -> Cluster:
    cluster = Cluster()
    cluster.fetcher.start()
    return cluster


def response(partition: int = 0, **fields: Any) -> FetchResponse:
    data = PartitionData(partition_index=partition, **{"records": b"", "high_watermark": 0, **fields})
    return FetchResponse(responses=[FetchableTopicResponse(topic_id=TOPIC_ID, partitions=[data])])


def offset(value: int, error_code: int = error_codes.NONE) -> ListOffsetsResponse:
    partition = ListOffsetsPartitionResponse(partition_index=0, error_code=error_code, offset=value)
    return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="orders", partitions=[partition])])


@pytest.mark.parametrize("version", [13, 14, 15, 18])
def test_a_request_has_every_partition_with_the_end_of_its_log(cluster: Cluster, version: int) -> None:
    cluster.version = version
    cluster.settings = ReplicaSettings(
        replica_fetch_wait_max_ms=123,
        replica_fetch_min_bytes=45,
        replica_fetch_max_bytes=678,
        replica_fetch_response_max_bytes=9012,
    )
    cluster.follow(records=3).log.high_watermark = 2
    cluster.logs[KEY].advance_start_offset(1)
    cluster.follow(OTHER)
    sent = cluster.next()
    assert sent.link == Link("fetcher 2", "broker-1-fetcher-0", "node2", 9092, 30_000, handshake=False, to_broker=True)
    assert (sent.version, sent.timeout_ms) == (version, 30_000)
    partitions = [
        fetch.FetchPartition(
            partition=0,
            current_leader_epoch=4,
            fetch_offset=3,
            last_fetched_epoch=3,
            log_start_offset=1,
            partition_max_bytes=678,
        ),
        fetch.FetchPartition(
            partition=1,
            current_leader_epoch=4,
            fetch_offset=0,
            last_fetched_epoch=-1,
            log_start_offset=0,
            partition_max_bytes=678,
        ),
    ]
    expected = fetch.FetchRequest(
        max_wait_ms=123,
        min_bytes=45,
        max_bytes=9012,
        topics=[fetch.FetchTopic(topic_id=TOPIC_ID, partitions=partitions)],
    )
    if version < 15:
        expected.replica_id = 1
    else:
        expected.replica_state = fetch.ReplicaState(replica_id=1, replica_epoch=77)
    assert sent.message == expected


def test_fetched_records_are_appended_and_the_next_request_follows_at_once(cluster: Cluster) -> None:
    hosted = cluster.follow()
    woken = hosted.changes
    first = cluster.next()
    first.answer(response(records=batch(0) + batch(1) + batch(2, epoch=5), high_watermark=1, log_start_offset=1))
    assert (hosted.log.end_offset, hosted.log.high_watermark, hosted.log.start_offset) == (2, 1, 1)
    assert (hosted.changes, cluster.fetcher.fetches, cluster.fetcher.note) == (woken + 1, 1, "")
    again = cluster.next()
    assert (again.link, again.message.topics[0].partitions[0].fetch_offset) == (first.link, 2)
    again.answer(response(high_watermark=2, log_start_offset=0))
    assert (hosted.log.high_watermark, hosted.log.start_offset, hosted.changes) == (2, 1, woken + 1)


def test_a_response_to_an_earlier_offset_or_for_another_partition_is_ignored(cluster: Cluster) -> None:
    log = cluster.follow().log
    sent = cluster.next()
    log.append_as_leader(batch(), 3, 0)
    sent.answer(response(records=batch(0)))
    assert log.end_offset == 1
    cluster.next().answer(response(partition=5, records=batch(1)))
    assert log.end_offset == 1
    assert cluster.next().message.topics[0].partitions[0].fetch_offset == 1


def test_a_response_of_an_earlier_leader_epoch_is_ignored(cluster: Cluster) -> None:
    log = cluster.follow().log
    sent = cluster.next()
    cluster.fetcher.follow(KEY, 5)
    sent.answer(response(records=batch(0)))
    assert log.end_offset == 0
    assert cluster.next().message.topics[0].partitions[0].current_leader_epoch == 5


@pytest.mark.parametrize("how", ["error", "failure", "no endpoint"])
def test_after_a_failure_the_fetcher_connects_again_after_the_back_off(
    cluster: Cluster, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    cluster.follow()
    note = {"error": "Fetch: UNKNOWN_SERVER_ERROR", "failure": "gone", "no endpoint": "broker 2 has no endpoint"}[how]
    for _ in range(2):
        if how == "no endpoint":
            cluster.endpoint = None
            cluster.wait(0 if cluster.fetcher.note == "" else BACKOFF_MS)
        else:
            if cluster.fetcher.note:
                cluster.wait(BACKOFF_MS)
            sent = cluster.next()
            if how == "error":
                sent.answer(FetchResponse(error_code=error_codes.UNKNOWN_SERVER_ERROR))
            else:
                sent.fail(DisconnectedError("gone"))
        assert (cluster.fetcher.note, cluster.open, cluster.sent) == (note, set(), [])
    assert caplog.messages.count(f"broker 1: fetching from 2: {note}") == 1
    cluster.endpoint = ("elsewhere", 1)
    cluster.wait(BACKOFF_MS)
    assert (cluster.sent[0].link.host, cluster.sent[0].link.port) == ("elsewhere", 1)
    cluster.next().answer(response())
    assert cluster.fetcher.note == ""


def test_a_mistake_of_ours_is_no_failure_of_the_network(cluster: Cluster) -> None:
    cluster.follow()
    sent = cluster.next()
    with pytest.raises(KeyError):
        sent.fail(KeyError("a mistake"))


def test_a_partition_with_an_error_waits_and_the_others_go_on(cluster: Cluster) -> None:
    cluster.follow()
    cluster.follow(OTHER)
    cluster.next().answer(response(error_code=error_codes.FENCED_LEADER_EPOCH))
    sent = cluster.next()
    assert [each.partition for each in sent.message.topics[0].partitions] == [1]
    cluster.now_ms += 100
    sent.answer(response(partition=1, error_code=error_codes.NOT_LEADER_OR_FOLLOWER))
    assert cluster.sent == []
    cluster.wait(BACKOFF_MS - 100)
    sent = cluster.next()
    assert [each.partition for each in sent.message.topics[0].partitions] == [0]
    cluster.now_ms += 100
    sent.answer(response())
    assert [each.partition for each in cluster.next().message.topics[0].partitions] == [0, 1]


def test_a_new_partition_does_not_wait_for_the_back_off_of_another(cluster: Cluster) -> None:
    cluster.follow()
    cluster.next().answer(response(error_code=error_codes.FENCED_LEADER_EPOCH))
    cluster.follow(OTHER)
    sent = cluster.next()
    assert [each.partition for each in sent.message.topics[0].partitions] == [1]


def test_a_batch_that_the_log_refuses_is_fetched_again_after_the_back_off(cluster: Cluster) -> None:
    log = cluster.follow().log
    damaged = bytearray(batch(0))
    damaged[-1] ^= 1
    cluster.next().answer(response(records=bytes(damaged)))
    assert log.end_offset == 0
    assert cluster.sent == []
    cluster.wait(BACKOFF_MS)
    assert cluster.next().message.topics[0].partitions[0].fetch_offset == 0


@pytest.mark.parametrize("how", ["left", "removed", "leads"])
def test_a_partition_that_is_not_followed_any_more_is_left_out(cluster: Cluster, how: str) -> None:
    cluster.follow(OTHER)
    hosted = cluster.follow()
    sent = cluster.next()
    match how:
        case "left":
            cluster.fetcher.leave(KEY)
        case "removed":
            del cluster.replicas[KEY]
        case _:
            hosted.lead(Assignment(leader=1, leader_epoch=5, isr=(1, 2), replicas=(1, 2), partition_epoch=2), 0)
    sent.answer(response(records=batch(0)))
    assert hosted.log.end_offset == 0
    assert [each.partition for each in cluster.next().message.topics[0].partitions] == [1]
    assert (list(cluster.fetcher.partitions), cluster.over) == ([OTHER], [])


@pytest.mark.parametrize("how", ["removed", "offline"])
def test_a_partition_that_goes_between_two_requests_is_left_out(cluster: Cluster, how: str) -> None:
    cluster.follow(OTHER)
    cluster.follow()
    del (cluster.replicas if how == "removed" else cluster.logs)[KEY]
    assert [each.partition for each in cluster.next().message.topics[0].partitions] == [1]
    assert list(cluster.fetcher.partitions) == [OTHER]


def test_a_fetcher_without_partitions_ends(cluster: Cluster) -> None:
    cluster.follow()
    sent = cluster.next()
    cluster.fetcher.leave(KEY)
    cluster.fetcher.leave(KEY)
    sent.answer(response())
    assert (cluster.over, cluster.open, cluster.sent, cluster.due) == ([cluster.fetcher], set(), [], None)


def test_a_stuck_broker_neither_processes_responses_nor_fetches(cluster: Cluster) -> None:
    log = cluster.follow().log
    sent = cluster.next()
    cluster.is_stuck = True
    sent.answer(response(records=batch(0)))
    assert (log.end_offset, cluster.fetcher.fetches, cluster.sent) == (0, 0, [])
    cluster.is_stuck = False
    cluster.fetcher.unstick()
    assert (log.end_offset, cluster.fetcher.fetches) == (1, 1)
    cluster.next().fail(DisconnectedError("gone"))
    cluster.is_stuck = True
    cluster.wait(BACKOFF_MS)
    assert cluster.sent == []
    cluster.is_stuck = False
    cluster.fetcher.unstick()
    assert cluster.next().message.topics[0].partitions[0].fetch_offset == 1
    cluster.fetcher.unstick()
    assert cluster.sent == []


@pytest.mark.parametrize(("epoch", "end_offset", "expected"), [(3, 2, 2), (-1, 1, 1), (0, -1, 0), (3, 0, 0)], ids=str)
def test_a_diverging_log_is_truncated(cluster: Cluster, epoch: int, end_offset: int, expected: int) -> None:
    log = cluster.follow(records=3).log
    cluster.next().answer(response(diverging_epoch=EpochEndOffset(epoch=epoch, end_offset=end_offset)))
    assert log.end_offset == expected
    assert cluster.next().message.topics[0].partitions[0].fetch_offset == expected


def asked_for_an_offset(sent: Sent, timestamp: int) -> bool:
    partition = list_offsets.ListOffsetsPartition(partition_index=0, current_leader_epoch=4, timestamp=timestamp)
    topics = [list_offsets.ListOffsetsTopic(name="orders", partitions=[partition])]
    expected = list_offsets.ListOffsetsRequest(replica_id=1, topics=topics)
    return bool(sent.message == expected) and sent.version == 8


OUT_OF_RANGE = response(error_code=error_codes.OFFSET_OUT_OF_RANGE)
LATEST, EARLIEST_LOCAL = -1, -4


def test_a_log_that_is_longer_than_the_leaders_is_truncated_to_its_end(cluster: Cluster) -> None:
    log = cluster.follow(records=3).log
    cluster.next().answer(OUT_OF_RANGE)
    sent = cluster.next()
    assert asked_for_an_offset(sent, LATEST)
    sent.answer(offset(1))
    assert (log.start_offset, log.end_offset) == (0, 1)
    assert cluster.next().message.topics[0].partitions[0].fetch_offset == 1


@pytest.mark.parametrize(("leader_start", "expected"), [(20, (20, 20)), (4, (4, 4)), (3, (0, 3)), (0, (0, 3))])
def test_a_log_that_ends_before_the_leaders_starts_there(
    cluster: Cluster, leader_start: int, expected: tuple[int, int]
) -> None:
    log = cluster.follow(records=3).log
    cluster.next().answer(OUT_OF_RANGE)
    cluster.next().answer(offset(30 if leader_start else 3))
    sent = cluster.next()
    assert asked_for_an_offset(sent, EARLIEST_LOCAL)
    sent.answer(offset(leader_start))
    assert (log.start_offset, log.end_offset) == expected
    assert cluster.next().message.topics[0].partitions[0].fetch_offset == expected[1]


@pytest.mark.parametrize(
    "answer", [offset(1, error_codes.NOT_LEADER_OR_FOLLOWER), ListOffsetsResponse()], ids=["error", "empty"]
)
def test_a_leader_that_names_no_offset_is_asked_again_after_the_back_off(cluster: Cluster, answer: Any) -> None:
    log = cluster.follow(records=3).log
    cluster.next().answer(OUT_OF_RANGE)
    cluster.next().answer(answer)
    assert (log.end_offset, cluster.sent) == (3, [])
    cluster.wait(BACKOFF_MS)
    assert cluster.next().message.topics[0].partitions[0].fetch_offset == 3


def test_an_offset_of_an_earlier_leader_epoch_is_ignored(cluster: Cluster) -> None:
    log = cluster.follow(records=3).log
    cluster.next().answer(OUT_OF_RANGE)
    sent = cluster.next()
    cluster.fetcher.follow(KEY, 5)
    sent.answer(offset(1))
    assert log.end_offset == 3


def test_the_rest_of_a_response_is_processed_after_a_request_about_one_of_its_partitions(cluster: Cluster) -> None:
    cluster.follow(records=3)
    other = cluster.follow(OTHER).log
    both = response(error_code=error_codes.OFFSET_OUT_OF_RANGE)
    both.responses += response(partition=1, records=batch(0)).responses
    cluster.next().answer(both)
    assert other.end_offset == 0
    cluster.next().answer(offset(1))
    assert other.end_offset == 1
