"""The observer follows a good leader, and hostile answers are passed over or fatal exactly where Kafka's are."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mockraft.brokers.metadata.metadata_view import MetadataView
from mockraft.brokers.metadata.observer import CORRUPT_BACKOFF_MS, RETRY_BACKOFF_MS, FatalError, Observer
from mockraft.wire import error_codes, record_batch
from mockraft.wire.messages.fetch_request import FetchPartition, FetchRequest
from mockraft.wire.messages.fetch_response import EpochEndOffset, SnapshotId
from mockraft.wire.messages.fetch_snapshot_request import FetchSnapshotRequest
from mockraft.wire.messages.fetch_snapshot_response import (
    FetchSnapshotResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionSnapshot,
    TopicSnapshot,
)
from mockraft.wire.messages.fetch_snapshot_response import SnapshotId as FetchedSnapshotId

from ..budgets import budget
from .conftest import ENDPOINT, batch, fetched, metadata_version, voters_batch


def fetched_partition(observer: Observer) -> FetchPartition:
    request = observer.request()
    assert isinstance(request, FetchRequest)
    return request.topics[0].partitions[0]


def test_learns_the_leader_from_a_refused_fetch(observer: Observer) -> None:
    heard = observer.receive(fetched(error_code=error_codes.FENCED_LEADER_EPOCH, leader=(3000, 5)))
    assert heard.useful
    assert observer.leader == (3000, 5, ENDPOINT)
    assert observer.request().topics[0].partitions[0].current_leader_epoch == 5


def test_committed_records_are_appended_and_passed_on(following: Observer) -> None:
    assert (following.end_offset, following.high_watermark, following.applied_offset) == (5, 3, 2)
    partition = fetched_partition(following)
    assert (partition.fetch_offset, partition.last_fetched_epoch, partition.high_watermark) == (5, 1, 3)


@pytest.mark.parametrize(("received", "kept"), [(1000, 5), (1, 3)])
def test_a_high_watermark_stays_within_the_log_and_never_falls(following: Observer, received: int, kept: int) -> None:
    following.receive(fetched(high_watermark=received))
    assert (following.high_watermark, following.applied_offset) == (kept, kept - 1)


def test_takes_voters_from_the_log_before_they_are_committed(led: Observer) -> None:
    led.receive(fetched(voters_batch(0, (3000, "here", 1)), high_watermark=0))
    assert led.voters == {3000: {"CONTROLLER": ("here", 1)}}


def test_leader_endpoint_comes_from_the_voters_when_the_response_has_none(led: Observer) -> None:
    voters = voters_batch(0, (3000, "here", 1), (3001, "there", 2))
    led.receive(fetched(voters, high_watermark=1))
    led.receive(fetched(error_code=error_codes.NOT_LEADER_OR_FOLLOWER, leader=(3001, 2), endpoints=()))
    assert led.leader == (3001, 2, ("there", 2))


def test_keeps_a_cut_last_batch_out(led: Observer) -> None:
    led.receive(fetched(batch(0) + batch(1)[:-5], high_watermark=2))
    assert led.end_offset == 1


@pytest.mark.parametrize(
    "answer",
    [
        {"topic_id": b"x" * 16},
        {"partition_index": 1},
        {"top_error_code": error_codes.INCONSISTENT_CLUSTER_ID},
        {"top_error_code": error_codes.BROKER_NOT_AVAILABLE},
        {"error_code": error_codes.UNKNOWN_SERVER_ERROR},
        {"error_code": error_codes.BROKER_NOT_AVAILABLE},
        {"error_code": error_codes.UNKNOWN_LEADER_EPOCH},
        {"leader": (-1, -1)},
        {"leader": (3000, 0)},
        {"snapshot_id": SnapshotId(end_offset=3, epoch=-1)},
        {"snapshot_id": SnapshotId(end_offset=-1, epoch=3)},
    ],
    ids=str,
)
def test_unusable_response_is_ignored_and_the_request_repeated(following: Observer, answer: dict[str, Any]) -> None:
    before = following.request()
    heard = following.receive(fetched(batch(5), high_watermark=6, **answer))
    assert not heard.useful
    assert heard.backoff_ms > 0
    assert heard.note
    assert following.request() == before


def test_refusal_by_another_cluster_names_the_own_cluster_id(following: Observer) -> None:
    heard = following.receive(fetched(top_error_code=error_codes.INCONSISTENT_CLUSTER_ID))
    own = repr(following.cluster_id)
    assert heard.note == f"unexpected error INCONSISTENT_CLUSTER_ID: the controller's cluster is not {own}"
    assert heard.backoff_ms == RETRY_BACKOFF_MS, "as Kafka's raft client: quorum.retry.backoff.ms"


def test_an_answer_without_topics_is_of_no_use(following: Observer) -> None:
    answer = fetched()
    answer.responses = []
    assert not following.receive(answer).useful


@pytest.mark.parametrize("position", [17, 30, 61, 70, None])
def test_corrupt_or_partial_records_are_not_appended_and_not_fetched_in_a_loop(
    following: Observer, position: int | None
) -> None:
    sent = bytearray(batch(5) + batch(5) if position else batch(5)[:-1])
    if position:
        sent[position - len(batch(5))] ^= 0x40
    heard = following.receive(fetched(bytes(sent), high_watermark=7))
    assert (heard.useful, heard.backoff_ms) == (False, CORRUPT_BACKOFF_MS)
    assert following.end_offset == 5, "a batch before the damaged one does not count either"


def test_a_batch_newer_than_its_leader_is_corrupt(following: Observer) -> None:
    heard = following.receive(fetched(batch(5, epoch=2), high_watermark=6))
    assert not heard.useful
    assert following.end_offset == 5


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ({"leader": (1, 2), "endpoints": ((1, "me", 1),)}, "inconsistent"),
        ({"leader": (3001, 1), "error_code": error_codes.NOT_LEADER_OR_FOLLOWER}, "inconsistent"),
        ({"leader": (3001, 2), "endpoints": ()}, "Unknown leader endpoints"),
        ({"error_code": error_codes.INVALID_REQUEST}, "invalid request"),
        ({"top_error_code": error_codes.CLUSTER_AUTHORIZATION_FAILED}, "authorization"),
        ({"diverging_epoch": EpochEndOffset(epoch=1, end_offset=2)}, "truncation to offset 2, which is below"),
        ({"diverging_epoch": EpochEndOffset(epoch=0, end_offset=2)}, "below the current high watermark"),
    ],
    ids=str,
)
def test_fatal_errors_stop_the_broker(following: Observer, answer: dict[str, Any], expected: str) -> None:
    with pytest.raises(FatalError, match=expected):
        following.receive(fetched(**answer))


def test_news_of_a_leader_brings_no_records_yet(observer: Observer) -> None:
    assert observer.receive(fetched(batch(0), high_watermark=1)).useful
    assert (observer.epoch, observer.end_offset) == (1, 0)


def test_a_leader_in_the_epoch_it_starts_with_is_followed_and_used_at_once(observer: Observer) -> None:
    observer.receive(fetched(batch(0, epoch=0), leader=(3000, 0), high_watermark=1))
    assert observer.applied_offset == 0


def test_response_without_a_leader_is_fatal_at_first(observer: Observer) -> None:
    with pytest.raises(FatalError, match="Unattached"):
        observer.receive(fetched(leader=(-1, 0)))


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        (batch(4), "Unexpected offset"),
        (batch(5, epoch=0), "older than the one before"),
        (
            record_batch.encode([b"\x01\x63\x00\x00"], base_offset=5, leader_epoch=1, timestamp_ms=1),
            "Could not deserialize metadata record",
        ),
        (record_batch.encode([b"\x00\x14\x00\x00"], base_offset=5, leader_epoch=1, timestamp_ms=1), "frame version 0"),
        (
            record_batch.encode_control(
                [(record_batch.control_key(6), b"\0\0\7")], base_offset=5, leader_epoch=1, timestamp_ms=1
            ),
            "control record",
        ),
        (record_batch.encode_control([(b"\0", b"")], base_offset=5, leader_epoch=1, timestamp_ms=1), "control record"),
    ],
    ids=["offset again", "older epoch", "unknown record", "unknown frame", "bad voters", "bad control key"],
)
def test_well_formed_batches_with_wrong_content_are_fatal(following: Observer, records: bytes, expected: str) -> None:
    with pytest.raises(FatalError, match=expected):
        following.receive(fetched(records, high_watermark=6))


def test_truncates_to_where_the_logs_part(led: Observer) -> None:
    led.receive(fetched(batch(0) + batch(1) + batch(2), high_watermark=1))
    led.receive(fetched(leader=(3001, 2), endpoints=((3001, "there", 2),)))
    led.receive(fetched(leader=(3001, 2), diverging_epoch=EpochEndOffset(epoch=1, end_offset=2)))
    assert led.end_offset == 2
    led.receive(fetched(batch(2, epoch=2), leader=(3001, 2), high_watermark=3))
    partition = fetched_partition(led)
    assert (partition.fetch_offset, partition.last_fetched_epoch) == (3, 2)
    assert led.applied_offset == 2


def test_truncates_whole_batches(following: Observer) -> None:
    following.receive(fetched(diverging_epoch=EpochEndOffset(epoch=1, end_offset=4)))
    assert following.end_offset == 3, "offsets 3 and 4 came as one batch"


def test_truncates_to_the_end_of_an_epoch_that_the_leader_does_not_have(led: Observer) -> None:
    led.receive(fetched(batch(0) + batch(1), high_watermark=1))
    led.receive(fetched(leader=(3000, 3)))
    led.receive(fetched(batch(2, epoch=3), leader=(3000, 3), high_watermark=1))
    led.receive(fetched(leader=(3000, 4)))
    led.receive(fetched(leader=(3000, 4), diverging_epoch=EpochEndOffset(epoch=2, end_offset=9)))
    assert (led.end_offset, led.last_fetched_epoch) == (2, 1)


def test_truncation_takes_voters_back(led: Observer) -> None:
    led.receive(fetched(voters_batch(0, (3000, "here", 1)), high_watermark=1))
    led.receive(fetched(voters_batch(1, (3001, "there", 2)), high_watermark=1))
    assert set(led.voters) == {3001}
    led.receive(fetched(diverging_epoch=EpochEndOffset(epoch=1, end_offset=1)))
    assert set(led.voters) == {3000}


# Snapshots.


def snapshot_bytes() -> bytes:
    return voters_batch(0, (3000, "snap", 1), epoch=0) + batch(1, metadata_version(30), epoch=0)


def piece(data: bytes, position: int, size: int, *, end_offset: int = 40, **fields: Any) -> FetchSnapshotResponse:
    partition = PartitionSnapshot(
        index=0,
        snapshot_id=FetchedSnapshotId(end_offset=end_offset, epoch=1),
        current_leader=LeaderIdAndEpoch(leader_id=3000, leader_epoch=1),
        size=size,
        position=position,
        unaligned_records=data,
        **fields,
    )
    return FetchSnapshotResponse(
        topics=[TopicSnapshot(name="__cluster_metadata", partitions=[partition])],
        node_endpoints=[NodeEndpoint(node_id=3000, host="127.0.0.1", port=9093)],
    )


@pytest.fixture
def fetching(led: Observer) -> Observer:
    led.receive(fetched(snapshot_id=SnapshotId(end_offset=40, epoch=1)))
    return led


@pytest.mark.parametrize("size", [7, 100, 10_000])
def test_snapshot_is_fetched_in_chunks_and_fetching_resumes_after_it(fetching: Observer, size: int) -> None:
    whole = snapshot_bytes()
    while isinstance(request := fetching.request(), FetchSnapshotRequest):
        position = request.topics[0].partitions[0].position
        assert fetching.receive(piece(whole[position : position + size], position, len(whole))).useful
    assert isinstance(fetching.view, MetadataView)
    assert fetching.view.metadata_version == 30
    assert fetching.voters == {3000: {"CONTROLLER": ("snap", 1)}}
    partition = request.topics[0].partitions[0]
    assert (partition.fetch_offset, partition.last_fetched_epoch, partition.high_watermark) == (40, 1, 40)
    assert fetching.applied_offset == 39


@pytest.mark.parametrize(("last_epoch", "is_fatal"), [(0, False), (1, True)])
def test_a_snapshot_replaces_a_longer_log_of_an_earlier_epoch_only(
    led: Observer, last_epoch: int, is_fatal: bool
) -> None:
    """The end of such a log is uncommitted (KafkaRaftLog.truncateToLatestSnapshot)."""
    records = b"".join(batch(offset, epoch=last_epoch) for offset in range(50))
    led.receive(fetched(records, high_watermark=0))
    assert led.end_offset == 50
    led.receive(fetched(snapshot_id=SnapshotId(end_offset=40, epoch=1)))
    whole = piece(snapshot_bytes(), 0, len(snapshot_bytes()))
    if is_fatal:
        with pytest.raises(FatalError, match="Full log truncation expected"):
            led.receive(whole)
    else:
        led.receive(whole)
        assert (led.end_offset, led.last_fetched_epoch, led.applied_offset) == (40, 1, 39)


def test_starts_over_when_the_leader_has_dropped_the_snapshot(fetching: Observer) -> None:
    assert not fetching.receive(piece(b"", 0, 10, error_code=error_codes.SNAPSHOT_NOT_FOUND)).useful
    assert type(fetching.request()).__name__ == "FetchRequest"


def test_a_new_leader_means_a_new_snapshot(fetching: Observer) -> None:
    answer = piece(b"abc", 0, 10)
    answer.topics[0].partitions[0].current_leader.leader_epoch = 2
    fetching.receive(answer)
    assert type(fetching.request()).__name__ == "FetchRequest"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (piece(b"abc", 1, 10), "invalid id or position"),
        (piece(b"abc", 0, 10, end_offset=41), "invalid id or position"),
        (piece(b"abc", 0, 2), "larger than its announced size of 2 bytes"),
        (piece(b"abc", 0, 3), "the snapshot is corrupt"),
    ],
    ids=["position", "id", "too long", "no batches"],
)
def test_a_snapshot_that_is_none_is_fatal(fetching: Observer, answer: FetchSnapshotResponse, expected: str) -> None:
    with pytest.raises(FatalError, match=expected):
        fetching.receive(answer)


def test_empty_chunk_is_requested_again(fetching: Observer) -> None:
    assert not fetching.receive(piece(b"", 0, 10)).useful


def test_unrequested_snapshot_is_ignored(following: Observer) -> None:
    assert not following.receive(piece(b"abc", 0, 10)).useful


NUMBERS = st.integers(-2, 6)
BATCHES = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 3)), max_size=3)
ANSWERS = st.tuples(BATCHES, NUMBERS, NUMBERS, NUMBERS, NUMBERS, st.sampled_from([0, 0, 0, 6, 8, 74, 75]))


@settings(max_examples=budget(100, 300))
@given(st.lists(ANSWERS, max_size=8))
def test_log_stays_in_order_or_the_broker_stops_for_any_response(responses: list[Any]) -> None:
    observer = Observer(1, "cluster", b"d" * 16, MetadataView(1))
    for batches, high_watermark, epoch, diverging_epoch, diverging_offset, error_code in responses:
        before = (observer.high_watermark, observer.applied_offset)
        answer = fetched(
            b"".join(batch(offset, epoch=of_epoch) for offset, of_epoch in batches),
            high_watermark=high_watermark,
            leader=(3000, epoch),
            diverging_epoch=EpochEndOffset(epoch=diverging_epoch, end_offset=diverging_offset),
            error_code=error_code,
        )
        try:
            observer.receive(answer)
        except FatalError:
            return
        assert (observer.high_watermark, observer.applied_offset) >= before
        assert observer.applied_offset < observer.end_offset
        assert observer.high_watermark <= observer.end_offset
