"""Idempotent producers as `ProducerStateManager` and `ProducerAppendInfo` judge them, and blocks of producer ids."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from mockraft.brokers.log_dirs.batch_headers import read_header
from mockraft.brokers.log_dirs.errors import LogError
from mockraft.brokers.log_dirs.transaction_markers import Marker, encode, read_marker
from mockraft.brokers.partitions import producers as producers_module
from mockraft.brokers.partitions.producer_ids import ProducerIds
from mockraft.brokers.partitions.producers import Ended, Producers
from mockraft.wire import error_codes
from mockraft.wire.errors import ApiError
from mockraft.wire.messages.allocate_producer_ids_request import AllocateProducerIdsRequest
from mockraft.wire.messages.allocate_producer_ids_response import AllocateProducerIdsResponse
from mockraft.wire.record_batch import CONTROL, TRANSACTIONAL, BatchHeader

from ...rows import each_row


def header(sequence: int, count: int = 1, *, offset: int = 0, producer_id: int = 7, epoch: int = 0) -> BatchHeader:
    return BatchHeader(0, 100, offset, offset + count - 1, 0, 0, 0, 0, producer_id, epoch, sequence, count)


@pytest.fixture
def producers() -> Producers:
    known = Producers()
    known.written(header(0, 3, offset=10))
    return known


@pytest.mark.parametrize(
    ("asked", "offset_and_time"),
    [
        (header(3), None),
        (header(0, 3), (10, 0)),
        (header(0, epoch=1), None),
        (header(0, producer_id=8), None),
        (header(41, producer_id=8), None),
    ],
    ids=["next", "repeated", "new epoch", "unknown producer", "unknown producer at any sequence"],
)
def test_new_batches_are_taken_and_repeated_ones_answered_with_their_offset(
    producers: Producers, asked: BatchHeader, offset_and_time: tuple[int, int] | None
) -> None:
    assert producers.check(asked) == offset_and_time


def test_only_the_last_five_batches_are_remembered(producers: Producers) -> None:
    for sequence in range(3, 8):
        producers.written(header(sequence, offset=10 + sequence))
    assert producers.check(header(3)) == (13, 0)
    with pytest.raises(LogError) as refused:
        producers.check(header(0, 3))
    assert refused.value.error_code == error_codes.OUT_OF_ORDER_SEQUENCE_NUMBER


@pytest.mark.parametrize("sequence", [1, 2, 4, 99])
def test_a_gap_is_refused(producers: Producers, sequence: int) -> None:
    with pytest.raises(LogError, match="Out of order sequence number for producer 7") as refused:
        producers.check(header(sequence))
    assert refused.value.error_code == error_codes.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_an_older_epoch_is_refused(producers: Producers) -> None:
    producers.written(header(0, epoch=2, offset=20))
    with pytest.raises(LogError) as refused:
        producers.check(header(1, epoch=1))
    assert refused.value.error_code == error_codes.INVALID_PRODUCER_EPOCH


def test_a_new_epoch_begins_with_sequence_0(producers: Producers) -> None:
    with pytest.raises(LogError):
        producers.check(header(3, epoch=1))


def test_batch_without_a_producer_id_is_not_remembered(producers: Producers) -> None:
    producers.written(header(-1, producer_id=-1))
    assert producers.check(header(-1, producer_id=-1)) is None
    assert len(producers) == 1


def test_sequences_go_on_at_0_after_the_largest_number() -> None:
    producers = Producers()
    producers.written(header(2**31 - 2, 2))
    assert producers.check(header(0)) is None
    with pytest.raises(LogError):
        producers.check(header(1))


def marker(
    *, producer_id: int = 7, epoch: int = 0, coordinator: int = 3, commit: bool = True, version: int = 0
) -> Marker:
    return Marker(producer_id, epoch, coordinator, commit, version)


def end(producers: Producers, offset: int, ended: Marker) -> None:
    written = header(-1, offset=offset, producer_id=ended.producer_id, epoch=ended.producer_epoch)
    producers.written(written._replace(attributes=CONTROL | TRANSACTIONAL), ended)


def test_last_stable_offset_waits_for_the_replication_of_the_marker() -> None:
    producers = Producers()
    producers.written(header(0, 3, offset=10)._replace(attributes=TRANSACTIONAL))
    producers.written(header(0, offset=13, producer_id=8))
    assert producers.is_in_transaction(7)
    assert producers.first_unstable_offset(14) == 10
    end(producers, 14, marker())
    assert not producers.is_in_transaction(7)
    assert [producers.first_unstable_offset(at) for at in (14, 15)] == [10, 15]
    assert producers.aborted == []


def test_aborted_transactions_are_kept_in_the_order_of_their_markers() -> None:
    producers = Producers()
    for producer_id, offset in ((7, 0), (8, 1)):
        producers.written(header(0, offset=offset, producer_id=producer_id)._replace(attributes=TRANSACTIONAL))
    end(producers, 2, marker(producer_id=8, commit=False))
    end(producers, 3, marker(commit=False))
    end(producers, 4, marker(producer_id=9, commit=False))
    assert producers.aborted == [Ended(8, 1, 2), Ended(7, 0, 3)]
    producers.forget_before(3)
    assert producers.aborted == [Ended(7, 0, 3)]


def test_sequences_continue_after_a_marker_of_the_same_epoch_and_begin_at_0_after_a_later_one(
    producers: Producers,
) -> None:
    end(producers, 13, marker())
    assert producers.check(header(3)) is None
    end(producers, 14, marker(epoch=1))
    assert producers.check(header(0, epoch=1)) is None
    with pytest.raises(LogError):
        producers.check(header(3, epoch=1))


@pytest.mark.parametrize(
    ("late", "error_code"),
    [
        (marker(epoch=-1), error_codes.INVALID_PRODUCER_EPOCH),
        (marker(version=2), error_codes.INVALID_PRODUCER_EPOCH),
        (marker(coordinator=2), error_codes.TRANSACTION_COORDINATOR_FENCED),
    ],
    ids=["older producer", "version 2 without a new epoch", "older coordinator"],
)
def test_markers_of_fenced_producers_and_coordinators_are_refused(
    producers: Producers, late: Marker, error_code: int
) -> None:
    end(producers, 13, marker())
    producers.check_marker(marker(version=2))  # written again
    producers.written(header(3, offset=14)._replace(attributes=TRANSACTIONAL))
    producers.check_marker(marker())
    with pytest.raises(LogError) as refused:
        producers.check_marker(late)
    assert refused.value.error_code == error_code


def test_other_batches_are_refused_while_a_transaction_is_open() -> None:
    producers = Producers()
    producers.written(header(0)._replace(attributes=TRANSACTIONAL))
    with pytest.raises(LogError) as refused:
        producers.check(header(1))
    assert refused.value.error_code == error_codes.INVALID_TXN_STATE


def test_version_2_of_transactions_begins_with_sequence_0() -> None:
    producers = Producers()
    producers.begin_verification(7, 0, 1, starts_at_zero=True)
    with pytest.raises(LogError) as refused:
        producers.check(header(1))
    assert refused.value.error_code == error_codes.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_batch_with_the_lowest_verified_sequence_comes_first() -> None:
    producers = Producers()
    for sequence in (4, 2, 6):
        producers.begin_verification(7, 0, sequence)
    for sequence in (4, 6):
        with pytest.raises(LogError) as refused:
            producers.check(header(sequence))
        assert refused.value.error_code == error_codes.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert producers.check(header(2)) is None
    producers.begin_verification(7, 1, 5)
    assert producers.check(header(5)) is None


def test_marker_makes_a_verification_void() -> None:
    producers = Producers()
    guard = producers.begin_verification(7, 0, 0)
    producers.written(header(0))
    assert producers.is_verified(7, guard)
    end(producers, 1, marker())
    assert not producers.is_verified(7, guard)
    assert not producers.is_verified(7, None)


def test_marker_leaves_the_verification_of_the_next_transaction_in_version_2() -> None:
    producers = Producers()
    guard = producers.begin_verification(7, 1, 0, starts_at_zero=True)
    end(producers, 1, marker(epoch=1))
    assert producers.is_verified(7, guard)


def test_older_epochs_are_not_verified(producers: Producers) -> None:
    with pytest.raises(LogError) as refused:
        producers.begin_verification(7, -1, 0)
    assert refused.value.error_code == error_codes.INVALID_PRODUCER_EPOCH
    assert producers.check(header(3)) is None


@each_row("is_commit", [True, False])
def test_markers_are_read_as_written(is_commit: bool) -> None:
    written = Marker(7, 1, 3, is_commit)
    batch = encode(written, 1_000)
    found = read_header(batch, 0)
    assert (found.is_control, found.is_transactional, found.record_count) == (True, True, 1)
    assert read_marker(found, batch) == written
    assert read_marker(found, batch[:61]) is None


def test_only_so_many_producers_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(producers_module, "PRODUCERS_MAX", 3)
    producers = Producers()
    for producer_id in (1, 2, 3, 1, 4):
        producers.written(header(0, producer_id=producer_id))
    assert len(producers) == 3
    assert producers.check(header(5, producer_id=2)) is None


Answer = AllocateProducerIdsResponse | ApiError


class Sent:
    """The requests to the controller that were not answered yet."""

    def __init__(self) -> None:
        self.waiting: list[Callable[[Answer], None]] = []
        self.requests: list[AllocateProducerIdsRequest] = []

    def send(self, request: AllocateProducerIdsRequest, answered: Callable[[Answer], None]) -> None:
        self.requests.append(request)
        self.waiting.append(answered)

    def answer(self, answer: Answer) -> None:
        (answered,) = self.waiting
        self.waiting.clear()
        answered(answer)


def block(start: int, length: int) -> AllocateProducerIdsResponse:
    return AllocateProducerIdsResponse(producer_id_start=start, producer_id_len=length)


def test_requests_the_next_block_when_one_is_used_up() -> None:
    sent, ids = Sent(), list[int | None]()
    producer_ids = ProducerIds(sent.send, 1, lambda: 17)
    for _ in range(3):
        producer_ids.next_id(ids.append)
    assert (ids, sent.requests) == ([], [AllocateProducerIdsRequest(broker_id=1, broker_epoch=17)])
    sent.answer(block(1000, 2))
    assert (ids, len(sent.requests)) == ([1000, 1001], 2)
    sent.answer(block(5000, 2))
    producer_ids.next_id(ids.append)
    assert (ids, len(sent.requests)) == ([1000, 1001, 5000, 5001], 2)


@each_row(
    "failure",
    [
        ApiError(error_codes.REQUEST_TIMED_OUT),
        AllocateProducerIdsResponse(error_code=error_codes.STALE_BROKER_EPOCH),
        block(0, 0),
    ],
)
def test_a_failure_is_that_of_the_first_caller_and_the_next_one_requests_again(failure: Answer) -> None:
    sent, ids = Sent(), list[int | None]()
    producer_ids = ProducerIds(sent.send, 1, lambda: 17)
    producer_ids.next_id(ids.append)
    producer_ids.next_id(ids.append)
    sent.answer(failure)
    assert (ids, len(sent.requests)) == ([None], 2)
    sent.answer(block(7, 1))
    assert ids == [None, 7]
