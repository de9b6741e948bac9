import itertools
from collections import Counter
from collections.abc import Collection
from random import Random

import pytest
from mockraft.server.controller.result import ApiError
from mockraft.server.controller.topics.placement import place
from mockraft.server.controller.topics.racks import Rack, UsableBroker, in_racks, usable_brokers
from mockraft.wire import error_codes

from ....conftest import Cluster
from ....rows import each_row

NONE_USABLE = "All brokers are currently fenced, or have all their log directories cordoned."


def brokers(*racks: str | None, fenced: Collection[int] = ()) -> list[Rack]:
    """Brokers 0, 1, … on these racks."""
    return in_racks(UsableBroker(broker_id, rack, broker_id in fenced) for broker_id, rack in enumerate(racks))


@each_row("seed", range(20))
def test_replicas_spread_evenly_over_racks_whose_leaders_rotate(seed: int) -> None:
    assert all(len(set(replicas)) == 5 for replicas in place(brokers(*"abcabc", None), 50, 5, Random(seed)))
    placed = place(brokers(*"aabbcc"), 30, 4, Random(seed))
    assert placed == place(brokers(*"aabbcc"), 30, 4, Random(seed))
    for replicas in placed:
        by_rack = Counter("aabbcc"[broker] for broker in replicas)
        assert (len(by_rack), max(by_rack.values())) == (3, 2)
    leaders = ["aabbcc"[replicas[0]] for replicas in place(brokers(*"aabbcc"), 6, 2, Random(seed))]
    assert leaders[:3] == leaders[3:]
    assert sorted(leaders[:3]) == ["a", "b", "c"]


@each_row("seed", range(20))
def test_a_rack_of_fenced_brokers_leaves_its_turn_to_lead_to_the_next(seed: int) -> None:
    placed = place(brokers(*"abcdef", fenced=(2, 4)), 4, 6, Random(seed))
    assert {replicas[0] for replicas in placed} <= {0, 1, 3, 5}
    followers = ["abcdef"[broker] for broker in placed[0]]
    assert sorted(followers) == list("abcdef")


@each_row("seed", range(20))
def test_a_rack_gives_its_fenced_brokers_last(seed: int) -> None:
    placed = place(brokers(*"aaaa", fenced=(0, 1)), 20, 3, Random(seed))
    assert all({2, 3} < set(replicas) for replicas in placed)
    assert all(replicas[2] in (0, 1) for replicas in placed)


def test_stripes_start_one_rack_and_one_broker_further_each_time() -> None:
    placed = place(brokers(*"aaabbbccc"), 3, 3, Random(5))
    racks = ["".join("aaabbbccc"[broker] for broker in replicas) for replicas in placed]
    start = "abc".index(racks[0][0])
    assert racks == ["abcabc"[(start + n) % 3 :][:3] for n in range(3)]
    for earlier, later in itertools.pairwise(placed):
        assert not set(earlier) & set(later)


def test_after_as_many_partitions_as_leaders_the_lists_are_shuffled() -> None:
    rounds = [place(brokers(*[None] * 9), 27, 3, Random(seed)) for seed in range(20)]
    assert any(placed[:9] != placed[9:18] for placed in rounds)


def test_one_unfenced_broker_leads_all() -> None:
    placed = place(brokers("a", "a", "b", fenced=(1, 2)), 12, 2, Random(1))
    assert {replicas[0] for replicas in placed} == {0}


@each_row(
    ("usable", "factor", "message"),
    [
        (brokers("a"), 0, "Invalid replication factor 0: the replication factor must be positive."),
        ([], 1, NONE_USABLE),
        (brokers("a", "b", fenced=(0, 1)), 3, NONE_USABLE),
        (
            brokers("a", "b", fenced=(0,)),
            3,
            "The target replication factor of 3 cannot be reached because only 2 broker(s) are registered or some "
            "brokers have all their log directories cordoned.",
        ),
    ],
)
def test_too_few_brokers_are_reported_with_the_reason(usable: list[Rack], factor: int, message: str) -> None:
    with pytest.raises(ApiError) as refused:
        place(usable, 1, factor, Random(1))
    assert (refused.value.error_code, refused.value.message) == (error_codes.INVALID_REPLICATION_FACTOR, message)


def test_a_broker_that_has_shut_down_is_usable_as_a_fenced_one(cluster: Cluster) -> None:
    cluster.start(1)
    cluster.heartbeat(1, want_shut_down=True)
    assert [
        (broker.broker_id, broker.fenced)
        for broker in usable_brokers(cluster.controller.image.cluster, cluster.controller.heartbeats)
    ] == [(1, True)]


def test_every_change_of_a_broker_counts_in_the_next_placement(cluster: Cluster) -> None:
    controller = cluster.controller

    def kept() -> list[Rack]:
        return controller.usable_racks.of(controller.image.cluster, controller.heartbeats)

    def unfenced_and_fenced() -> list[Rack]:
        racks = kept()
        assert racks == in_racks(usable_brokers(controller.image.cluster, controller.heartbeats))
        return racks

    cluster.start(1, 2, 3, 4)
    assert unfenced_and_fenced() == [([1, 2, 3, 4], [])]
    cluster.fence(2)
    assert unfenced_and_fenced() == [([1, 3, 4], [2])]
    cluster.heartbeat(3, cordoned_log_dirs=list(cluster.broker(3).log_dirs))
    assert unfenced_and_fenced() == [([1, 4], [2])]
    cluster.create_topic("t", [4, 1])
    cluster.heartbeat(4, want_shut_down=True)
    assert unfenced_and_fenced() == [([1], [2])]
    assert kept() is kept(), "nothing changed: nothing is grouped anew"
