"""The throttles of moves between directories and of replication, and the estimate of what is left."""

from __future__ import annotations

import pytest
from mockraft.brokers.image import ClusterImage
from mockraft.brokers.image.cluster_image import BROKER_RESOURCE, TOPIC_RESOURCE
from mockraft.brokers.moves.movers import eta_ms
from mockraft.brokers.replication_quota import ReplicationQuota, ReplicationThrottle

from ..rows import each_row


@each_row(
    ("now_ms", "rate", "wait_ms"),
    [(0, 1000, 1000), (500, 1000, 1000), (1000, 1000, 1000), (1600, 625, 400), (1999.5, 500.125, 1), (2000, 500, 0)],
)
def test_copying_waits_until_the_rate_is_that_of_the_quota(now_ms: float, rate: float, wait_ms: float) -> None:
    quota = ReplicationQuota(500)
    quota.record(1000, 0)
    assert quota.rate(now_ms) == pytest.approx(rate)
    assert quota.is_exceeded(now_ms) == (rate > 500)
    assert quota.wait_ms(now_ms) == wait_ms


def test_a_quota_of_0_waits_always_and_none_never() -> None:
    stopped, free = ReplicationQuota(0), ReplicationQuota()
    assert stopped.wait_ms(0) == 0, "nothing was copied yet"
    for quota in (stopped, free):
        quota.record(1, 0)
    assert [stopped.wait_ms(now_ms) for now_ms in (0, 10_999, 11_000)] == [1000, 1000, 0]
    assert free.wait_ms(0) == 0
    free.bytes_per_second = 0.5
    assert free.wait_ms(0) == 1000, "copied bytes count without a limit, too"


def test_bytes_count_for_eleven_seconds_after_the_last_of_their_second() -> None:
    quota = ReplicationQuota()
    quota.record(100, 0)
    quota.record(100, 999)
    quota.record(50, 1000)
    assert quota.rate(1000) == 250
    assert quota.rate(11_998) == pytest.approx(250_000 / 11_998)
    assert quota.rate(11_999) == pytest.approx(50_000 / 10_999)
    assert quota.rate(12_000) == 0


def test_each_second_has_a_sample_and_the_oldest_is_replaced() -> None:
    quota = ReplicationQuota()
    for second in range(13):
        quota.record(100 if second else 1_000_000, second * 1000)
    assert quota.rate(11_999) == pytest.approx(1_200_000 / 10_999)
    assert quota.rate(12_000) == pytest.approx(110)
    assert ReplicationQuota().rate(5) == 0


@each_row(
    ("bytes_left", "copied_bytes", "elapsed_ms", "expected"),
    [(1000, 500, 2000, 4000), (1, 4, 2000, 500), (0, 0, 0, 0), (0, 9, 9, 0), (5, 0, 9, None), (5, 5, 0, None)],
)
def test_the_rest_takes_as_long_as_the_rate_so_far(
    bytes_left: int, copied_bytes: int, elapsed_ms: float, expected: float | None
) -> None:
    assert eta_ms(bytes_left, copied_bytes, elapsed_ms) == expected


@each_row(
    ("listed", "own_rate", "cluster_rate", "partition", "holds"),
    [
        ("0:1,1:2", "100", "", 0, True),
        ("0:1,1:2", "100", "", 1, False),
        ("*", "", "100", 7, True),
        ("*", "10000", "100", 7, False),
        ("*", "", "", 7, False),
        ("", "100", "", 0, False),
    ],
)
def test_a_side_holds_the_replicas_that_a_topic_lists(
    listed: str, own_rate: str, cluster_rate: str, partition: int, holds: bool
) -> None:
    image = ClusterImage()
    image.configs[(TOPIC_RESOURCE, "t")] = {"leader.replication.throttled.replicas": listed}
    image.configs[(BROKER_RESOURCE, "1")] = {"leader.replication.throttled.rate": own_rate}
    image.configs[(BROKER_RESOURCE, "")] = {"leader.replication.throttled.rate": cluster_rate}
    leader, follower = ReplicationThrottle("leader", image, 1), ReplicationThrottle("follower", image, 1)
    for side in (leader, follower):
        side.record("t", partition, 1000, 0)
    assert (leader.holds("t", partition, 0), follower.holds("t", partition, 0)) == (holds, False)
