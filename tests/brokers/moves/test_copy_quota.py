"""Copying between directories is held to a rate, as Kafka measures it."""

from __future__ import annotations

from mockraft.brokers.moves.copy_quota import BACKOFF_MS, CopyQuota

MEBIBYTE = 2**20


def test_copy_without_a_quota_never_waits() -> None:
    quota = CopyQuota()
    quota.record(100 * MEBIBYTE, 0)
    assert quota.wait_ms(0) == 0
    assert not quota.is_exceeded(0)


def test_a_piece_is_copied_whole_and_waited_for_afterwards() -> None:
    quota = CopyQuota(MEBIBYTE)
    assert quota.wait_ms(0) == 0
    quota.record(3 * MEBIBYTE // 2, 0)
    assert quota.is_exceeded(0)
    assert quota.wait_ms(0) == 1000
    assert quota.wait_ms(1200) == 300
    assert quota.wait_ms(1500) == 0


def test_the_wait_is_never_longer_than_the_back_off() -> None:
    quota = CopyQuota(1)
    quota.record(MEBIBYTE, 0)
    assert quota.wait_ms(5) == BACKOFF_MS


def test_zero_quota_stops_copying_until_the_window_has_passed() -> None:
    quota = CopyQuota(0)
    assert quota.wait_ms(0) == 0
    quota.record(1, 0)
    assert quota.wait_ms(10_999) == BACKOFF_MS
    assert quota.wait_ms(11_000) == 0


def test_the_rate_is_taken_over_a_second_at_least() -> None:
    quota = CopyQuota()
    quota.record(500, 0)
    assert quota.rate(1) == quota.rate(1000) == 500
    assert quota.rate(2000) == 250


def test_copied_bytes_per_minute_equal_the_quota() -> None:
    quota = CopyQuota(10_000)
    now_ms, copied_bytes = 0.0, 0
    while now_ms < 60_000:
        wait_ms = quota.wait_ms(now_ms)
        if wait_ms:
            now_ms += wait_ms
            continue
        quota.record(700, now_ms)
        copied_bytes += 700
        now_ms += 1
    assert 590_000 < copied_bytes < 680_000


def test_a_raised_quota_counts_at_once() -> None:
    quota = CopyQuota(1_000)
    quota.record(5_000, 0)
    assert quota.is_exceeded(0)
    quota.bytes_per_second = 5_000
    assert not quota.is_exceeded(0)
    quota.bytes_per_second = None
    assert quota.wait_ms(0) == 0
