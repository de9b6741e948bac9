import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mockraft.spark_replay.report.sketches import DistinctKeys, LogHistogram, Tally, TimeBins

NUMBERS = st.lists(st.integers(1, 10**15), min_size=1, max_size=50)


def test_a_percentile_is_off_by_no_more_than_a_bucket() -> None:
    histogram = LogHistogram()
    values = np.random.default_rng(5).lognormal(15, 2, 20_000).astype(np.int64)
    histogram.add(values)
    for share in (0.5, 0.9, 0.99, 0.999):
        assert histogram.quantile(share) == pytest.approx(np.quantile(values, share), rel=0.05)
    assert (histogram.total, histogram.least, histogram.most) == (20_000, values.min(), values.max())


def test_empty_sketch_has_no_percentile() -> None:
    assert LogHistogram().quantile(0.5) is None


@given(NUMBERS, NUMBERS)
def test_histograms_that_are_merged_are_one_of_all(left: list[int], right: list[int]) -> None:
    both, one, other = LogHistogram(), LogHistogram(), LogHistogram()
    both.add(np.array(left + right))
    one.add(np.array(left))
    other.add(np.array(right))
    one.merge(other)
    assert (one.counts == both.counts).all()
    assert (one.least, one.most) == (both.least, both.most)


@given(NUMBERS, NUMBERS)
def test_time_bins_keep_every_count_when_they_get_wider_and_are_merged(left: list[int], right: list[int]) -> None:
    both, one, other = TimeBins(8), TimeBins(8), TimeBins(8)
    both.add(np.array(left + right))
    one.add(np.array(left))
    other.add(np.array(right))
    one.merge(other)
    assert sum(one.values.values()) == len(left + right)
    assert len(one.values) <= 8
    both.widen(one.step)
    one.widen(both.step)
    assert one.values == both.values


def test_time_bins_of_the_largest_keep_it() -> None:
    bins = TimeBins(4, of_largest=True)
    bins.add(np.array([1, 2, 10**9]), np.array([5, 9, 3]))
    assert sorted(bins.values.values()) == [3, 9]


def test_few_keys_are_counted_exactly_and_many_within_five_percent() -> None:
    few, many = DistinctKeys(), DistinctKeys(kept_max=2_000)
    hashes = np.random.default_rng(7).integers(0, 2**64, 100_000, dtype=np.uint64)
    few.add(np.concatenate([hashes[:500], hashes[:500]]))
    for part in np.split(hashes, 10):
        many.add(part)
    assert few.count == 500
    assert many.count == pytest.approx(100_000, rel=0.05)


def test_a_tally_is_full_of_keys_at_some_time_and_never_of_counts() -> None:
    tally: Tally[str] = Tally(keys_max=2)
    for key in ("a", "b", "c", "a", "d"):
        tally.add(key)
    assert (tally.counts, tally.others, tally.total) == ({"a": 2, "b": 1}, 2, 5)
