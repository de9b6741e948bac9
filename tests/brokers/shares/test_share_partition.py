"""A share group's state of one partition over time; what a real broker answers is compared elsewhere."""

from __future__ import annotations

import pytest
from mockraft.brokers.partitions.producers import Ended
from mockraft.brokers.shares.share_partition import AcknowledgedRange, Acquired, SharePartition, ShareSettings, Wanted
from mockraft.wire.errors import ApiError
from mockraft.wire.record_batch import TRANSACTIONAL, BatchHeader

SETTINGS = ShareSettings(lock_ms=100, deliveries_max=2, locks_max=6, read_committed=True)


def batch(first: int, last: int, producer_id: int = -1, attributes: int = 0) -> BatchHeader:
    return BatchHeader(0, 0, first, last, 0, attributes, 0, 0, producer_id, 0, 0, last - first + 1)


def acquired(share: SharePartition, *batches: BatchHeader, now_ms: int = 0, **wanted: int) -> list[Acquired]:
    """Let member `a` acquire records of the batches that hold the next offset and those behind it."""
    offset = share.next_offset(SETTINGS, 0)
    found = [each for each in batches if offset is not None and each.last_offset >= offset]
    fields = {"records_max": 500, "batch_size": 500, **wanted}
    return share.acquire(Wanted("a", **fields), found, [Ended(7, 0, 100)], SETTINGS, now_ms)


def test_records_whose_lock_ends_are_delivered_again_until_the_limit() -> None:
    share = SharePartition(0)
    assert acquired(share, batch(0, 1)) == [Acquired(0, 1, 1)]
    assert share.next_tick_ms == 100
    share.acknowledge("a", [AcknowledgedRange(1, 1, [4])], SETTINGS, 50)
    assert share.tick(100, SETTINGS), "the lock of the other record is renewed"
    assert acquired(share, batch(0, 1), now_ms=100) == [Acquired(0, 0, 2)]
    assert share.next_tick_ms == 150
    share.tick(200, SETTINGS)
    assert (share.start_offset, share.done_count) == (1, 0), "the first one is archived"
    assert acquired(share, batch(0, 1), now_ms=200) == [Acquired(1, 1, 2)]


def test_members_have_as_many_records_as_they_may_lock() -> None:
    share = SharePartition(0)
    batches = [batch(0, 3), batch(4, 7), batch(8, 9)]
    assert acquired(share, *batches) == [Acquired(0, 7, 1)], "up to the end of a batch"
    assert acquired(share, *batches) == []
    share.release("a", SETTINGS)
    assert acquired(share, *batches, records_max=5, mode=1) == [Acquired(0, 4, 2)], "these are known already"
    share.acknowledge("a", [AcknowledgedRange(0, 4, [1])], SETTINGS, 0)
    assert acquired(share, *batches) == [Acquired(5, 7, 2)]
    assert acquired(share, *batches) == [Acquired(8, 9, 1)]


def test_ranges_end_with_batches() -> None:
    batches = [batch(0, 1), batch(2, 3), batch(4, 5)]
    assert acquired(SharePartition(0), *batches, batch_size=3) == [Acquired(0, 3, 1), Acquired(4, 5, 1)]


def test_aborted_records_gaps_and_deleted_records_are_nobodys() -> None:
    share = SharePartition(0)
    batches = [batch(0, 0), batch(1, 1, 7, TRANSACTIONAL), batch(4, 4)]
    assert acquired(share, *batches) == [Acquired(0, 0, 1), Acquired(4, 4, 1)]
    share.acknowledge("a", [AcknowledgedRange(0, 0, [1])], SETTINGS, 0)
    assert share.start_offset == 4
    assert share.next_offset(SETTINGS, 9) == 9
    assert share.start_offset == 9


def test_a_batch_of_any_number_of_records_is_acquired_in_parts() -> None:
    share = SharePartition(0)
    many = batch(0, 2**31 - 2)
    for first in (0, 10_000):
        assert acquired(share, many, batch(2**31 - 1, 2**31)) == [Acquired(first, first + 9_999, 1)]
        share.acknowledge("a", [AcknowledgedRange(first, first + 9_999, [1])], SETTINGS, 0)
    assert acquired(share, batch(0, 2**31 - 2, 7, TRANSACTIONAL)) == [], "aborted"
    assert share.next_offset(SETTINGS, 2**62) == 2**62
    share.acknowledge("a", [AcknowledgedRange(0, 2**62 - 1, [1])], SETTINGS, 0)
    with pytest.raises(ApiError):
        share.acknowledge("a", [AcknowledgedRange(0, 2**63 - 1, [1])], SETTINGS, 0)
