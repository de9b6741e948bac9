"""The replica state machine against Kafka's rules (`Partition.scala`, `Replica.java`)."""

from __future__ import annotations

import pytest
from mockraft.brokers.partitions.partition import (
    GIVES_UP,
    NOT_APPLIED,
    Assignment,
    CommittedIsr,
    IsrChange,
    Partition,
    Registered,
)
from mockraft.wire import error_codes

LAG_MS = 1000
EPOCHS = {1: 10, 2: 20, 3: 30}


class Brokers(dict[int, Registered]):
    def __call__(self, broker_id: int) -> Registered | None:
        return self.get(broker_id)


@pytest.fixture
def brokers() -> Brokers:
    return Brokers({broker_id: Registered(epoch) for broker_id, epoch in EPOCHS.items()})


def assigned(
    isr: tuple[int, ...] = (1, 2, 3), *, leader: int = 1, leader_epoch: int = 0, partition_epoch: int = 0
) -> Assignment:
    return Assignment(leader, leader_epoch, isr, (1, 2, 3), partition_epoch)


def leading(
    brokers: Brokers,
    isr: tuple[int, ...] = (1, 2, 3),
    *,
    end_offset: int = 0,
    high_watermark: int = 0,
    min_isr: int = 1,
    appended: int | None = None,
) -> Partition:
    """Led by broker 1, which then appends up to this offset."""
    partition = Partition(1, brokers, lambda: min_isr, lag_time_max_ms=LAG_MS)
    assert partition.lead(assigned(isr), end_offset, high_watermark, now_ms=0)
    if appended is not None:
        partition.appended(appended, now_ms=1)
    return partition


def fetch(partition: Partition, replica: int, offset: int, now_ms: int = 0, epoch: int | None = None) -> bool:
    return partition.fetched(replica, offset, 0, EPOCHS[replica] if epoch is None else epoch, now_ms)


def joined_by_3(brokers: Brokers) -> Partition:
    """Replica 3 has fetched all there is, and is proposed for the ISR of 1 and 2."""
    partition = leading(brokers, (1, 2))
    fetch(partition, 3, 0)
    return partition


def test_metadata_of_the_same_epoch_discards_a_pending_change_as_kafka_does(brokers: Brokers) -> None:
    """The high watermark then passes a member that the controller may have accepted (Partition.makeLeader)."""
    partition = leading(brokers, (1, 2), appended=10)
    fetch(partition, 2, 5)
    fetch(partition, 3, 5)
    assert members(pending(partition)) == [1, 2, 3]
    fetch(partition, 2, 10)
    assert partition.high_watermark == 5
    partition.lead(assigned((1, 2)), 10, 5, now_ms=2 * LAG_MS)
    assert partition.pending is None
    assert partition.high_watermark == 10


def pending(partition: Partition) -> IsrChange:
    assert partition.pending is not None
    return partition.pending


def members(change: IsrChange) -> list[int]:
    return [replica for replica, _ in change.isr_with_epochs]


# High watermark.


def test_the_high_watermark_is_the_smallest_end_offset_of_the_isr(brokers: Brokers) -> None:
    partition = leading(brokers)
    assert not partition.appended(10, now_ms=1)
    assert not fetch(partition, 2, 10)
    assert fetch(partition, 3, 7)
    assert partition.high_watermark == 7
    assert fetch(partition, 3, 10)
    assert partition.high_watermark == 10


def test_sole_replica_commits_its_appends(brokers: Brokers) -> None:
    partition = leading(brokers, (1,))
    assert partition.appended(3, now_ms=LAG_MS + 1)
    assert partition.high_watermark == 3


def test_high_watermark_never_decreases_when_a_follower_is_truncated(brokers: Brokers) -> None:
    partition = leading(brokers, (1, 2), appended=10)
    fetch(partition, 2, 10)
    assert not fetch(partition, 2, 4)
    assert partition.high_watermark == 10


def test_the_high_watermark_waits_for_a_follower_that_is_about_to_join(brokers: Brokers) -> None:
    partition = leading(brokers, (1,))
    partition.appended(10, now_ms=LAG_MS + 1)
    fetch(partition, 2, 0, now_ms=2000)
    assert partition.pending is None
    fetch(partition, 2, 10, now_ms=2001)
    partition.refused(pending(partition), error_codes.INELIGIBLE_REPLICA)
    assert not partition.appended(12, now_ms=2002)
    assert partition.high_watermark == 10
    assert partition.appended(13, now_ms=2002 + 2 * LAG_MS)
    assert partition.high_watermark == 13


def test_high_watermark_ignores_fenced_followers(brokers: Brokers) -> None:
    partition = leading(brokers, (1,))
    partition.appended(10, now_ms=LAG_MS + 1)
    brokers[2] = Registered(EPOCHS[2], fenced=True)
    fetch(partition, 2, 10, now_ms=2000)
    assert partition.appended(12, now_ms=2001)
    assert partition.high_watermark == 12


def test_the_high_watermark_stands_below_the_min_isr(brokers: Brokers) -> None:
    partition = leading(brokers, (1, 2), min_isr=3, appended=5)
    assert not fetch(partition, 2, 5)
    assert partition.high_watermark == 0


def test_the_min_isr_is_at_most_the_number_of_replicas(brokers: Brokers) -> None:
    assert leading(brokers, min_isr=9).effective_min_isr == 3


def test_new_leader_keeps_its_high_watermark_until_the_isr_has_fetched(brokers: Brokers) -> None:
    partition = leading(brokers, end_offset=10, high_watermark=6)
    assert partition.high_watermark == 6
    fetch(partition, 2, 10)
    assert partition.high_watermark == 6
    assert fetch(partition, 3, 10)
    assert partition.high_watermark == 10


# Shrinking.


def test_a_stuck_follower_is_proposed_out_after_the_lag_time(brokers: Brokers) -> None:
    partition = leading(brokers, appended=5)
    fetch(partition, 2, 5, now_ms=900)
    assert not partition.shrink(LAG_MS)
    assert partition.shrink(LAG_MS + 1)
    assert pending(partition) == IsrChange(((1, 10), (2, 20)), 0, 0, None)


def test_a_slow_follower_counts_as_caught_up_at_the_fetch_that_it_now_reaches(brokers: Brokers) -> None:
    partition = leading(brokers, (1, 2), appended=5)
    fetch(partition, 2, 0, now_ms=500)
    partition.appended(9, now_ms=501)
    fetch(partition, 2, 5, now_ms=1200)
    assert partition.followers[2].caught_up_ms == 500
    assert not partition.shrink(1500)
    assert partition.shrink(1501)


def test_a_follower_with_all_records_stays_however_long_it_is_silent(brokers: Brokers) -> None:
    partition = leading(brokers, (1, 2))
    fetch(partition, 2, 0)
    assert not partition.shrink(100 * LAG_MS)


def test_while_a_shrink_is_pending_the_high_watermark_waits_for_the_old_isr(brokers: Brokers) -> None:
    partition = leading(brokers, appended=5)
    fetch(partition, 2, 5, now_ms=900)
    partition.shrink(LAG_MS + 1)
    assert (partition.maximal_isr, partition.high_watermark) == (frozenset({1, 2, 3}), 0)
    assert partition.committed(pending(partition), CommittedIsr(0, 1, (1, 2)), LAG_MS + 5)
    assert (partition.high_watermark, partition.partition_epoch, partition.pending) == (5, 1, None)


def test_no_second_change_is_proposed_while_one_is_pending(brokers: Brokers) -> None:
    partition = joined_by_3(brokers)
    change = pending(partition)
    partition.appended(5, now_ms=1)
    assert not partition.shrink(100 * LAG_MS)
    assert partition.pending is change


# Expanding.


def test_a_follower_at_the_high_watermark_is_proposed_in(brokers: Brokers) -> None:
    partition = leading(brokers, (1, 2), appended=8)
    fetch(partition, 2, 8)
    fetch(partition, 3, 7)
    assert partition.pending is None
    fetch(partition, 3, 8)
    assert pending(partition) == IsrChange(((1, 10), (2, 20), (3, 30)), 0, 0, 3)
    assert (partition.maximal_isr, partition.isr) == (frozenset({1, 2, 3}), frozenset({1, 2}))


def test_a_follower_below_the_start_of_the_leader_epoch_does_not_join(brokers: Brokers) -> None:
    partition = leading(brokers, (1, 2), end_offset=10, high_watermark=4)
    fetch(partition, 3, 9)
    assert partition.pending is None
    fetch(partition, 3, 10)
    assert members(pending(partition)) == [1, 2, 3]


@pytest.mark.parametrize(
    "registered",
    [None, Registered(30, fenced=True), Registered(30, in_controlled_shutdown=True), Registered(29)],
    ids=["unknown", "fenced", "shutting down", "another life"],
)
def test_ineligible_follower_does_not_join_the_isr(brokers: Brokers, registered: Registered | None) -> None:
    partition = leading(brokers, (1, 2))
    if registered is None:
        del brokers[3]
    else:
        brokers[3] = registered
    fetch(partition, 3, 0)
    assert partition.pending is None


def test_follower_without_a_broker_epoch_may_join(brokers: Brokers) -> None:
    partition = leading(brokers, (1, 2))
    fetch(partition, 3, 0, epoch=-1)
    assert pending(partition).isr_with_epochs == ((1, 10), (2, -1), (3, -1))


def test_the_joining_replica_holds_the_high_watermark_before_it_is_committed(brokers: Brokers) -> None:
    partition = joined_by_3(brokers)
    partition.appended(5, now_ms=100 * LAG_MS)
    assert not fetch(partition, 2, 5, now_ms=100 * LAG_MS)
    assert partition.high_watermark == 0
    assert fetch(partition, 3, 5, now_ms=100 * LAG_MS)


# What the controller answers.


@pytest.mark.parametrize(
    ("error_code", "is_sent_again", "maximal_isr"),
    [
        *((code, False, (1, 2, 3)) for code in sorted(GIVES_UP)),
        *((code, False, (1, 2)) for code in sorted(NOT_APPLIED)),
        (error_codes.NOT_CONTROLLER, True, (1, 2, 3)),
        (error_codes.UNKNOWN_SERVER_ERROR, True, (1, 2, 3)),
    ],
)
def test_a_refused_change_stays_pending_is_taken_back_or_is_sent_again(
    brokers: Brokers, error_code: int, is_sent_again: bool, maximal_isr: tuple[int, ...]
) -> None:
    partition = joined_by_3(brokers)
    assert partition.refused(pending(partition), error_code) == is_sent_again
    assert (partition.maximal_isr, partition.pending is None) == (frozenset(maximal_isr), error_code in NOT_APPLIED)


@pytest.mark.parametrize("isr", [CommittedIsr(1, 1, (1, 2, 3)), CommittedIsr(0, -1, (1, 2, 3))])
def test_response_of_another_epoch_is_ignored(brokers: Brokers, isr: CommittedIsr) -> None:
    partition = joined_by_3(brokers)
    assert not partition.committed(pending(partition), isr, 1)
    assert partition.isr == {1, 2}


def test_an_answer_to_a_change_that_the_log_overtook_is_passed_over(brokers: Brokers) -> None:
    partition = joined_by_3(brokers)
    change = pending(partition)
    partition.lead(assigned((1,), partition_epoch=1), 0, 0, 1)
    assert not partition.committed(change, CommittedIsr(0, 1, (1, 2, 3)), 1)
    assert not partition.refused(change, error_codes.NOT_CONTROLLER)
    assert partition.isr == {1}


# The metadata log.


def test_an_older_partition_epoch_is_passed_over(brokers: Brokers) -> None:
    partition = joined_by_3(brokers)
    partition.committed(pending(partition), CommittedIsr(0, 1, (1, 2, 3)), 1)
    assert not partition.lead(assigned((1, 2)), 0, 0, 1)
    assert not partition.follow(assigned(leader=2, leader_epoch=1))
    assert partition.is_leader
    assert partition.isr == {1, 2, 3}


def test_same_leader_epoch_keeps_the_follower_state(brokers: Brokers) -> None:
    partition = leading(brokers, appended=5)
    fetch(partition, 2, 4)
    partition.lead(assigned((1, 2), partition_epoch=1), 5, 0, 2)
    assert partition.followers[2].end_offset == 4
    assert (partition.epoch_start_offset, partition.high_watermark) == (0, 4)


def test_a_new_epoch_of_the_same_leader_gives_the_isr_another_lag_time(brokers: Brokers) -> None:
    partition = leading(brokers, (1, 2), appended=5)
    fetch(partition, 2, 4, now_ms=2)
    partition.lead(assigned((1, 2), leader_epoch=1, partition_epoch=1), 5, 4, 5000)
    assert partition.epoch_start_offset == 5
    assert (partition.followers[2].caught_up_ms, partition.followers[2].end_offset) == (5000, 4)


def test_a_leader_that_follows_forgets_isr_and_followers(brokers: Brokers) -> None:
    partition = leading(brokers)
    assert partition.follow(assigned(leader=2, leader_epoch=1, partition_epoch=1))
    assert (partition.is_leader, partition.isr, partition.followers, partition.pending) == (
        False,
        frozenset(),
        {},
        None,
    )
    assert not partition.follow(assigned((2,), leader=2, leader_epoch=1, partition_epoch=2))
    assert not partition.shrink(100 * LAG_MS)


# Requests.


@pytest.mark.parametrize(
    ("claimed", "expected"),
    [
        (-1, error_codes.NONE),
        (4, error_codes.FENCED_LEADER_EPOCH),
        (5, error_codes.NONE),
        (6, error_codes.UNKNOWN_LEADER_EPOCH),
    ],
)
def test_request_with_a_wrong_leader_epoch_is_refused(brokers: Brokers, claimed: int, expected: int) -> None:
    partition = Partition(1, brokers)
    partition.lead(assigned(leader_epoch=5), 0, 0, 0)
    assert partition.check_leader_epoch(claimed) == expected


def test_a_follower_is_no_leader(brokers: Brokers) -> None:
    partition = Partition(1, brokers)
    partition.follow(assigned(leader=2))
    assert partition.check_leader_epoch(0) == error_codes.NOT_LEADER_OR_FOLLOWER
    assert partition.check_leader_epoch(0, only_leader=False) == error_codes.NONE
    assert partition.check_append(1) == error_codes.NOT_LEADER_OR_FOLLOWER
    assert partition.reached(0) == (True, error_codes.NOT_LEADER_OR_FOLLOWER)


def test_acks_all_needs_the_min_isr_before_and_after_the_append(brokers: Brokers) -> None:
    partition = leading(brokers, (1, 2), min_isr=2)
    assert partition.check_append(-1) == error_codes.NONE
    partition.appended(5, now_ms=1)
    assert partition.reached(5) == (False, error_codes.NONE)
    fetch(partition, 2, 5)
    assert partition.reached(5) == (True, error_codes.NONE)
    partition.lead(assigned((1,), partition_epoch=1), 5, 5, 2)
    assert partition.reached(5) == (True, error_codes.NOT_ENOUGH_REPLICAS_AFTER_APPEND)
    assert partition.check_append(-1) == error_codes.NOT_ENOUGH_REPLICAS
    assert partition.check_append(1) == error_codes.NONE


def test_a_replica_that_is_not_assigned_may_not_fetch(brokers: Brokers) -> None:
    partition = leading(brokers)
    assert partition.check_follower(9, 0, 1) == error_codes.UNKNOWN_LEADER_EPOCH
    assert partition.check_follower(9, -1, 1) == error_codes.NOT_LEADER_OR_FOLLOWER
    assert partition.check_follower(2, 0, 20) == error_codes.NONE
    assert partition.check_follower(2, 0, 19) == error_codes.NOT_LEADER_OR_FOLLOWER
