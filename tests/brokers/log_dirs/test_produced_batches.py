"""Checks of a producer's batches at their bounds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from mockraft.brokers.log_dirs.errors import LogError
from mockraft.brokers.log_dirs.produced_batches import LogConfig, check_produced, read_produced
from mockraft.wire import error_codes, record_batch

from ...rows import each_row
from .conftest import with_header

NOW_MS = 1_000_000
CONFIG = LogConfig(timestamp_before_max_ms=500, timestamp_after_max_ms=300)


def batch(*values: bytes, at_ms: int = NOW_MS) -> bytes:
    return record_batch.encode(list(values), base_offset=0, leader_epoch=0, timestamp_ms=at_ms)


def check(records: bytes, config: LogConfig = CONFIG) -> None:
    for header in read_produced(records):
        check_produced(records, header, config, NOW_MS)


def refusal(work: Callable[[], None]) -> tuple[int, str]:
    with pytest.raises(LogError) as refused:
        work()
    return refused.value.error_code, str(refused.value)


def test_records_of_every_length_around_a_longer_varint_are_counted() -> None:
    for size in (*range(50, 62), *range(118, 126)):
        check(batch(bytes(size), b"x", bytes(size)))


@each_row("ahead_ms", [-500, 0, 300])
def test_times_at_the_bounds_are_taken(ahead_ms: int) -> None:
    check(batch(b"a", at_ms=NOW_MS + ahead_ms))


@each_row("ahead_ms", [-501, 301])
def test_times_beyond_the_bounds_are_refused_unless_the_log_writes_its_own(ahead_ms: int) -> None:
    records = batch(b"a", at_ms=NOW_MS + ahead_ms)
    assert refusal(lambda: check(records))[0] == error_codes.INVALID_TIMESTAMP
    check(records, replace(CONFIG, is_log_append_time=True))


def test_the_size_of_each_batch_counts_alone() -> None:
    one = batch(b"a" * 100)
    check(one * 3, replace(CONFIG, max_message_bytes=len(one)))
    code, message = refusal(lambda: check(one * 3, replace(CONFIG, max_message_bytes=len(one) - 1)))
    assert code == error_codes.MESSAGE_TOO_LARGE
    assert f"is {len(one)} bytes which exceeds the maximum configured value of {len(one) - 1}" in message


@each_row(("codec", "most"), [(2, 50), (3, 582), (4, 74_898)])
def test_a_count_that_compressed_records_cannot_have_is_refused(codec: int, most: int) -> None:
    def claiming(count: int) -> bytes:
        return with_header(batch(b"x", b"x"), attributes=codec, last_offset_delta=count - 1, count=count)

    check(claiming(most))
    assert "premature EOF" in refusal(lambda: check(claiming(most + 1)))[1]


def test_the_longest_batch_is_incomplete_and_a_longer_one_fails() -> None:
    records = batch(b"a")

    def with_length(length: int) -> bytes:
        return records[:8] + length.to_bytes(4, "big") + records[12:]

    assert read_produced(with_length((1 << 31) - 13)) == []
    with pytest.raises(LogError) as refused:
        read_produced(with_length((1 << 31) - 12))
    assert refused.value.error_code == error_codes.UNKNOWN_SERVER_ERROR
