"""Sessions of brokers, and what fencing changes."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest
from mockraft.server.controller.brokers import fencing
from mockraft.server.controller.brokers.heartbeat_states import BrokerState, HeartbeatStates, Session, Sessions
from mockraft.server.controller.image import TopicPartition
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.records.broker_registration_change_record import BrokerRegistrationChangeRecord
from mockraft.wire.records.fence_broker_record import FenceBrokerRecord
from mockraft.wire.records.no_op_record import NoOpRecord
from mockraft.wire.records.partition_change_record import PartitionChangeRecord
from mockraft.wire.records.remove_topic_record import RemoveTopicRecord
from mockraft.wire.records.unfence_broker_record import UnfenceBrokerRecord

from ....conftest import Cluster
from ....rows import each_row


def test_a_session_of_one_epoch_lasts_the_timeout_and_not_a_millisecond_longer() -> None:
    sessions = Sessions(9000)
    assert not sessions.is_valid(1, 5, 100)
    sessions.touch(1, 5, 100)
    assert [sessions.is_valid(1, epoch, now_ms) for epoch, now_ms in ((5, 9100), (5, 9101), (6, 100))] == [
        True,
        False,
        False,
    ]
    assert sessions.pop_expired(9100) is None


def test_the_stalest_session_expires_first_and_each_once() -> None:
    sessions = Sessions(9000)
    sessions.touch(1, 5, 100)
    sessions.touch(2, 6, 200)
    sessions.touch(1, 5, 300)
    assert sessions.pop_expired(9250) == Session(2, 6, 200)
    assert sessions.pop_expired(9250) is None
    assert sessions.pop_expired(9301) == Session(1, 5, 300)
    assert sessions.pop_expired(99999) is None


def test_a_restarted_controller_gives_unfenced_brokers_a_fresh_session(cluster: Cluster) -> None:
    cluster.start(1, 2)
    cluster.fence(2)
    cluster.advance(8000)
    restarted = type(cluster.controller)(cluster.config, cluster.raft, cluster.rng, cluster.now_ms)
    epochs = {broker_id: cluster.broker(broker_id).broker_epoch for broker_id in (1, 2)}
    assert restarted.sessions.is_valid(1, epochs[1], cluster.now_ms + 9000)
    assert not restarted.sessions.is_valid(2, epochs[2], cluster.now_ms)


def lose(cluster: Cluster, *broker_ids: int) -> None:
    """Let these sessions end, and tick once."""
    for broker_id in broker_ids:
        cluster.controller.sessions.expire(broker_id, cluster.broker(broker_id).broker_epoch)
    cluster.advance(1125)


def test_a_broker_of_many_partitions_leaves_them_in_steps_between_which_others_are_answered(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fencing, "PARTITIONS_AT_ONCE", 2)
    cluster.start(1, 2)
    kept = cluster.create_topic("kept", *[[1, 2]] * 5)
    deleted = cluster.create_topic("deleted", *[[1, 2]] * 4)
    leaders: list[int] = []
    lose(cluster, 1)
    while not cluster.broker(1).fenced:
        in_isr = len(cluster.controller.image.topics.index.in_isr(1))
        leaders.append(in_isr)
        assert cluster.controller.next_tick_ms(cluster.now_ms) == cluster.now_ms
        assert not cluster.heartbeat(2).is_fenced
        if deleted in cluster.controller.image.topics.by_id:
            cluster.write(RecordAt(RemoveTopicRecord(topic_id=deleted), 0))
            cluster.create_topic("new", [1, 2])
        cluster.controller.tick(cluster.now_ms)
    assert leaders[0] == 7
    assert len(leaders) > 3
    assert cluster.controller.image.topics.index.in_isr(1) == []
    assert {cluster.partition(kept, index).leader for index in range(5)} == {2}
    assert cluster.controller.next_tick_ms(cluster.now_ms) > cluster.now_ms


@pytest.mark.parametrize("partitions", [3, 5])
def test_a_broker_that_registers_again_between_two_steps_is_not_fenced(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, partitions: int
) -> None:
    monkeypatch.setattr(fencing, "PARTITIONS_AT_ONCE", 2)
    cluster.start(1, 2)
    cluster.create_topic("t", *[[1, 2]] * partitions)
    lose(cluster, 1)
    cluster.register(1, incarnation_id=bytes([9] * 16))
    cluster.heartbeat(1)
    cluster.controller.tick(cluster.now_ms)
    assert not cluster.broker(1).fenced
    assert cluster.controller.image.topics.index.in_isr(1) == []
    assert cluster.controller.next_tick_ms(cluster.now_ms) > cluster.now_ms


def test_a_broker_that_is_unregistered_between_two_steps_is_not_fenced(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fencing, "PARTITIONS_AT_ONCE", 2)
    cluster.start(1, 2)
    cluster.create_topic("t", *[[1, 2]] * 3)
    lose(cluster, 1)
    cluster.unregister(1)
    end_offset = cluster.log.end_offset
    cluster.controller.tick(cluster.now_ms)
    assert not cluster.controller.steps
    assert cluster.log.end_offset == end_offset


@pytest.mark.parametrize("replicas", [[1, 2], [1]])
def test_a_heartbeat_between_two_steps_comes_after_the_whole_fencing(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, replicas: list[int]
) -> None:
    monkeypatch.setattr(fencing, "PARTITIONS_AT_ONCE", 2)
    cluster.start(1, 2)
    topic_id = cluster.create_topic("t", *[replicas] * 7)
    lose(cluster, 1)
    assert cluster.controller.fenced_in_steps == 1
    assert not cluster.heartbeat(1).is_fenced
    cluster.controller.tick(cluster.now_ms)
    assert not cluster.broker(1).fenced
    assert {cluster.partition(topic_id, index).leader for index in range(7)} == {replicas[-1]}
    changes = [
        record for _, (record, _) in cluster.log.records(0) if isinstance(record, BrokerRegistrationChangeRecord)
    ]
    assert [(each.broker_id, each.fenced) for each in changes][-2:] == [(1, 1), (1, -1)]


def test_partitions_without_another_replica_are_visited_once(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fencing, "PARTITIONS_AT_ONCE", 2)
    cluster.start(1, 2)
    cluster.create_topic("t", *[[1]] * 5)
    visited = Counter[TopicPartition]()
    updates = fencing.leader_and_isr_updates

    def counted(controller: Any, places: Iterable[TopicPartition], **who: int) -> list[RecordAt]:
        seen = list(places)
        visited.update(seen)
        return updates(controller, seen, **who)

    monkeypatch.setattr(fencing, "leader_and_isr_updates", counted)
    lose(cluster, 1)
    while cluster.controller.steps:
        cluster.controller.tick(cluster.now_ms)
    assert set(visited.values()) == {1}
    assert len(visited) == 5


def test_two_stale_brokers_with_many_partitions_are_fenced_one_after_the_other(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fencing, "PARTITIONS_AT_ONCE", 2)
    cluster.start(1, 2)
    topic_id = cluster.create_topic("t", *[[1, 2]] * 5)
    lose(cluster, 1, 2)
    while not (cluster.broker(1).fenced and cluster.broker(2).fenced):
        assert cluster.controller.next_tick_ms(cluster.now_ms) == cluster.now_ms
        cluster.controller.tick(cluster.now_ms)
    assert {cluster.partition(topic_id, index).leader for index in range(5)} == {-1}


def end_and_return(cluster: Cluster) -> None:
    """Let broker 1 shut down, return, crash and return, with and without eligible leader replicas."""
    assert not cluster.heartbeat(1, want_shut_down=True).should_shut_down
    for broker_id in (2, 3):
        cluster.heartbeat(broker_id)
    assert cluster.heartbeat(1, want_shut_down=True).should_shut_down
    cluster.controller.sessions.expire(1, cluster.broker(1).broker_epoch)
    cluster.register(1, incarnation_id=bytes([9] * 16), previous_broker_epoch=cluster.broker(1).broker_epoch)
    cluster.heartbeat(1)
    cluster.fence(1)
    cluster.heartbeat(1)
    lose(cluster, 1)
    while cluster.controller.steps:
        cluster.controller.tick(cluster.now_ms)
    cluster.register(1, incarnation_id=bytes([8] * 16))
    cluster.heartbeat(1)


@pytest.mark.parametrize("elr", [0, 1])
@pytest.mark.parametrize("at_once", [1, 2, 5])
def test_steps_write_the_records_of_the_whole_change(monkeypatch: pytest.MonkeyPatch, at_once: int, elr: int) -> None:
    written = []
    for partitions_at_once in (1000, at_once):
        monkeypatch.setattr(fencing, "PARTITIONS_AT_ONCE", partitions_at_once)
        cluster = Cluster(features={"eligible.leader.replicas.version": elr})
        cluster.start(1, 2, 3)
        cluster.create_topic("a", *[[1, 2, 3]] * 4, [2, 1], [1])
        cluster.create_topic("b", *[[1]] * 5, [3, 1])
        begin = cluster.log.end_offset
        end_and_return(cluster)
        since = [record_at for _, record_at in cluster.log.records(begin)]
        written.append([record_at for record_at in since if not isinstance(record_at.record, NoOpRecord)])
    assert written[0] == written[1]
    assert len(written[0]) > 40


def test_a_broker_that_comes_back_into_an_isr_between_two_steps_leaves_it_before_it_is_fenced(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fencing, "PARTITIONS_AT_ONCE", 2)
    cluster.start(1, 2)
    topic_id = cluster.create_topic("t", *[[1, 2]] * 5)
    lose(cluster, 1)
    assert cluster.partition(topic_id, 0).isr == (2,)
    cluster.write(RecordAt(PartitionChangeRecord(topic_id=topic_id, partition_id=0, isr=[2, 1]), 0))
    cluster.create_topic("new", [1, 2])
    while cluster.controller.steps:
        cluster.controller.tick(cluster.now_ms)
    assert cluster.broker(1).fenced
    assert cluster.controller.image.topics.index.in_isr(1) == []


@pytest.mark.parametrize("removed", [1, 2])
def test_partitions_that_share_their_state_change_as_each_would_alone(cluster: Cluster, removed: int) -> None:
    cluster.start(1, 2, 3)
    cluster.create_topic("a", *[[1, 2, 3]] * 3, [2, 1, 3], [3, 1])
    cluster.create_topic("b", *[[1, 2, 3]] * 2)
    cluster.set_config("b", "min.insync.replicas", "3")
    places = cluster.controller.image.topics.index.in_isr(removed)
    together = fencing.leader_and_isr_updates(cluster.controller, places, removed=removed)
    alone = [
        change
        for place in places
        for change in fencing.leader_and_isr_updates(cluster.controller, [place], removed=removed)
    ]
    assert together == alone
    assert len(together) == len(places)


def test_the_lowest_offset_is_that_of_active_brokers() -> None:
    states = HeartbeatStates()
    for broker_id, offset in ((1, 10), (2, 20), (3, 30)):
        states.register(broker_id, fenced=True)
        states.touch(broker_id, fenced=False, metadata_offset=offset)
    states.enter_controlled_shutdown(1, 25)
    assert not states.others_passed_shutdown(1)
    states.touch(2, fenced=False, metadata_offset=25)
    assert states.others_passed_shutdown(1)
    states.touch(2, fenced=False, metadata_offset=3)
    assert not states.others_passed_shutdown(1)
    states.touch(2, fenced=True, metadata_offset=3)
    assert states.others_passed_shutdown(1)


def test_the_shutdown_offset_is_set_once_and_cleared_by_fencing() -> None:
    states = HeartbeatStates()
    states.register(1, fenced=False)
    states.enter_controlled_shutdown(1, 7)
    assert states.others_passed_shutdown(1), "there is no other"
    states.enter_controlled_shutdown(1, 9)
    assert states.brokers[1].shutdown_offset == 7
    states.touch(1, fenced=True, metadata_offset=9)
    assert not states.brokers[1].is_shutting_down


def test_a_registration_change_forgets_the_offset_unless_it_flips_the_fencing() -> None:
    states = HeartbeatStates()
    states.register(1, fenced=False)
    states.touch(1, fenced=False, metadata_offset=12)
    states.register(1, fenced=True)
    assert states.brokers[1].metadata_offset == 12
    states.register(1, fenced=True)
    assert states.brokers[1].metadata_offset == -1


def test_the_lowest_offset_stays_right_over_thousands_of_heartbeats() -> None:
    states = HeartbeatStates()
    for broker_id in range(5):
        states.register(broker_id, fenced=False)
    states.touch(4, fenced=False, metadata_offset=0)
    for step in range(1, 5000):
        states.touch(step % 4, fenced=False, metadata_offset=step)
    states.register(9, fenced=False)
    states.enter_controlled_shutdown(9, 1)
    assert not states.others_passed_shutdown(9)
    states.touch(4, fenced=False, metadata_offset=5000)
    assert states.others_passed_shutdown(9)


def states(cluster: Cluster, topic_id: bytes) -> tuple[Any, ...]:
    partition = cluster.partition(topic_id)
    return partition.leader, partition.isr, partition.elr, partition.last_known_elr


@each_row(("level", "without_leader"), {"elr": (30, (-1, (), (2,), (2,))), "no elr": (20, (-1, (2,), (), ()))})
def test_the_life_of_two_replicas_is_as_seen_on_a_real_controller(
    new_cluster: type[Cluster], level: int, without_leader: tuple[Any, ...]
) -> None:
    cluster = new_cluster(metadata_version=level)
    cluster.start(1, 2)
    topic_id = cluster.create_topic("t", [1, 2])
    cluster.fence(1)
    assert states(cluster, topic_id) == (2, (2,), (), ())
    cluster.fence(2)
    assert states(cluster, topic_id) == without_leader
    cluster.heartbeat(1)
    assert len(cluster.written()) == 1
    assert cluster.partition(topic_id).leader == -1
    cluster.heartbeat(2)
    assert states(cluster, topic_id) == (2, (2,), (), ())


@pytest.mark.parametrize(("value", "leader"), [("true", 2), ("TRUE", 2), ("false", -1)])
def test_an_unclean_election_is_the_topics_choice(cluster: Cluster, value: str, leader: int) -> None:
    cluster.start(1, 2)
    topic_id = cluster.create_topic("t", [1, 2], isr=[1])
    cluster.set_config("t", "unclean.leader.election.enable", value)
    cluster.fence(1)
    partition = cluster.partition(topic_id)
    assert (partition.leader, partition.leader_recovery_state) == (leader, int(leader == 2))
    if leader == 2:
        assert states(cluster, topic_id) == (2, (2,), (), ())


def test_min_isr_is_at_most_the_replication_factor(cluster: Cluster) -> None:
    cluster.start(1, 2, 3)
    topic_id = cluster.create_topic("t", [1, 2])
    cluster.set_config("t", "min.insync.replicas", "5")
    cluster.fence(2)
    assert states(cluster, topic_id) == (1, (1,), (2,), ())


def test_fencing_costs_only_the_brokers_own_partitions(cluster: Cluster) -> None:
    cluster.start(1, 2, 3)
    mine = cluster.create_topic("mine", [1, 2])
    cluster.create_topic("others", [2, 3])
    cluster.fence(1)
    changed = [record.topic_id for record, _ in cluster.written() if record.api_key == 5]
    assert changed == [mine]


def test_completing_a_reassignment_may_fall_to_a_fencing(cluster: Cluster) -> None:
    cluster.start(1, 2, 3)
    topic_id = cluster.create_topic("t", [1, 2, 3], isr=[1, 2, 3], removing_replicas=[3], adding_replicas=[2])
    cluster.fence(3)
    partition = cluster.partition(topic_id)
    assert (partition.replicas, partition.is_reassigning, partition.leader_epoch) == ((1, 2), False, 1)


def test_a_broker_in_controlled_shutdown_is_not_elected(cluster: Cluster) -> None:
    cluster.start(1, 2, 3)
    cluster.create_topic("hold", [2])
    topic_id = cluster.create_topic("t", [1, 2, 3])
    cluster.heartbeat(2, want_shut_down=True)
    cluster.fence(1)
    assert cluster.partition(topic_id).leader == 3


def test_an_expired_session_is_the_first_to_be_removed_and_no_timeout() -> None:
    sessions = Sessions(9000)
    sessions.touch(1, 5, 100)
    sessions.touch(2, 6, 200)
    sessions.expire(2, 6)
    assert not sessions.is_valid(2, 6, 200)
    assert sessions.pop_expired(300) == Session(2, 6, None)
    assert (sessions.last_contact_ms(2, 6), sessions.last_contact_ms(1, 5), sessions.timed_out) == (None, 100, 0)
    assert sessions.pop_expired(300) is None


def test_old_fence_records_move_the_heartbeats_of_their_broker(cluster: Cluster) -> None:
    cluster.start(1)
    epoch = cluster.broker(1).broker_epoch
    found = []
    for record in (FenceBrokerRecord(id=1, epoch=epoch), UnfenceBrokerRecord(id=1, epoch=epoch)):
        cluster.write(RecordAt(record, 0))
        found.append(cluster.controller.heartbeats.brokers[1].current)
    assert found == [BrokerState.FENCED, BrokerState.UNFENCED]
