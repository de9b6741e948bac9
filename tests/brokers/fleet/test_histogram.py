"""Latencies in buckets: what adds up, and how exact a percentile is."""

from __future__ import annotations

import random

import pytest
from mockraft.brokers.fleet.histogram import Histogram


def of(*seconds: float) -> Histogram:
    histogram = Histogram()
    for each in seconds:
        histogram.add(each)
    return histogram


@pytest.mark.parametrize("share", [0.01, 0.5, 0.9, 0.99, 1.0])
def test_a_percentile_is_at_most_a_bucket_above_the_exact_one(share: float) -> None:
    chance = random.Random(1)
    values = sorted(chance.expovariate(50) for _ in range(1000))
    exact_ms = 1000 * values[max(0, round(share * 1000) - 1)]
    assert exact_ms <= (of(*values).percentile_ms(share) or 0) <= exact_ms * 2 ** (1 / 16) * 1.0001


def test_parts_add_up_to_the_whole_and_can_be_taken_away_again() -> None:
    first, second = of(0.001, 0.002, 0.1), of(0.002, 3.0)
    both = first.plus(second)
    assert both.total == 5
    assert both.counts == of(0.001, 0.002, 0.1, 0.002, 3.0).counts
    assert both.largest_s == 3.0
    assert both.minus(first).counts == second.counts


def test_the_largest_is_exact() -> None:
    assert of(0.001, 0.5).percentile_ms(1.0) == 500.0


def test_an_empty_one_has_no_percentile() -> None:
    assert Histogram().percentile_ms(0.5) is None
    assert of(0.1).minus(of(0.1)).percentile_ms(0.99) is None


def test_less_than_a_microsecond_is_a_microsecond() -> None:
    assert of(0.0, 1e-9).counts == {0: 2}
