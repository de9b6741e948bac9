"""The controller: commits, and periodic work."""

from typing import Any

import pytest
from mockraft.server.controller.controller import Controller
from mockraft.server.controller.image import Image
from mockraft.server.controller.log.data_dir import DataDirError
from mockraft.server.controller.periodic import Periodic, PeriodicTask
from mockraft.server.controller.result import ApiError, ControllerResult
from mockraft.wire import error_codes
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.records.begin_transaction_record import BeginTransactionRecord
from mockraft.wire.records.fence_broker_record import FenceBrokerRecord
from mockraft.wire.records.no_op_record import NoOpRecord
from mockraft.wire.records.partition_record import PartitionRecord
from mockraft.wire.records.remove_topic_record import RemoveTopicRecord
from mockraft.wire.records.topic_record import TopicRecord

from ...conftest import Cluster, uuid
from ...rows import each_row
from ..conftest import StillLog


def topics(count: int) -> list[RecordAt]:
    return [RecordAt(TopicRecord(name=f"t{n}", topic_id=(1 << 64 | n).to_bytes(16, "big")), 0) for n in range(count)]


def replayed(cluster: Cluster) -> Controller:
    return Controller(cluster.config, cluster.raft, cluster.rng, cluster.now_ms)


def test_records_are_in_the_log_and_the_image_when_the_response_is_given(cluster: Cluster) -> None:
    end_offset = cluster.log.end_offset
    assert cluster.controller.commit(ControllerResult([], "answer"), cluster.now_ms) == "answer"
    assert cluster.log.end_offset == end_offset
    assert cluster.controller.commit(ControllerResult(topics(3), 7, "three topics"), cluster.now_ms) == 7
    assert cluster.log.end_offset == end_offset + 3
    assert set(cluster.controller.image.topics.by_name) == {"t0", "t1", "t2"}


def test_ten_thousand_records_are_one_operation_and_one_more_is_too_many(cluster: Cluster) -> None:
    no_ops = [RecordAt(NoOpRecord(), 0)] * 10_000
    cluster.controller.commit(ControllerResult(no_ops, None), cluster.now_ms)
    end_offset = cluster.log.end_offset
    with pytest.raises(ApiError, match="Unable to perform excessively large batch operation") as refusal:
        cluster.controller.commit(ControllerResult([*no_ops, *topics(1)], None), cluster.now_ms)
    assert refusal.value.error_code == error_codes.POLICY_VIOLATION
    assert cluster.log.end_offset == end_offset


def test_non_atomic_records_are_split_in_order(cluster: Cluster) -> None:
    many = topics(10_001)
    cluster.controller.commit(ControllerResult(many, None, atomic=False), cluster.now_ms)
    assert [record.record.name for record in cluster.written()] == [f"t{n}" for n in range(10_001)]


@pytest.mark.parametrize(
    ("record", "text"),
    [
        (FenceBrokerRecord(id=7, epoch=1), "FenceBrokerRecord at offset {}: broker 7 is not registered"),
        (PartitionRecord(partition_id=-1, topic_id=uuid(1), replicas=[1], isr=[1]), "PartitionRecord at offset {}: "),
        (RemoveTopicRecord(topic_id=bytes(15) + b"x"), "RemoveTopicRecord at offset {}: "),
    ],
)
def test_a_log_with_a_record_that_fits_no_image_cannot_be_replayed(cluster: Cluster, record: Any, text: str) -> None:
    cluster.create_topic("t", topic_id=uuid(1))
    offset = cluster.log.append([RecordAt(record, 0)], cluster.now_ms)
    with pytest.raises(DataDirError, match=text.format(offset)):
        replayed(cluster)


def test_failed_write_changes_no_image_and_is_survived(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(records: Any, now_ms: int) -> int:
        raise ApiError(error_codes.KAFKA_STORAGE_ERROR, "disk full")

    monkeypatch.setattr(cluster.log, "append", broken)
    with pytest.raises(ApiError, match="disk full"):
        cluster.controller.commit(ControllerResult(topics(1), None), cluster.now_ms)
    assert cluster.controller.image.topics.by_name == {}
    cluster.controller.tick(cluster.now_ms + 500)
    assert cluster.controller.next_tick_ms(cluster.now_ms) == cluster.now_ms + 1000


def test_a_restarted_controller_restores_the_log_and_its_brokers(cluster: Cluster) -> None:
    cluster.start(1, 2)
    cluster.create_topic("t", [1, 2])
    cluster.set_config("t", "min.insync.replicas", "2")
    cluster.fence(1)
    result, restarted = Image(), replayed(cluster)
    for offset, (record, _) in enumerate(cluster.controller.image.to_records(33)):
        result.apply(record, offset)
    assert result == cluster.controller.image
    assert restarted.image.topics == result.topics
    assert restarted.image.cluster.brokers == result.cluster.brokers
    assert restarted.image.configs == result.configs
    cluster.controller = restarted
    assert cluster.heartbeat(2).is_fenced is False
    cluster.advance(11_000)
    assert cluster.broker(2).fenced is True


def test_a_transaction_of_a_dead_controller_is_aborted(cluster: Cluster) -> None:
    cluster.write(RecordAt(BeginTransactionRecord(name="x"), 0), *topics(1))
    restarted = replayed(cluster)
    assert restarted.image.open_transaction is None
    assert restarted.image.topics.by_name == {}
    restarted.commit(ControllerResult(topics(1), None), cluster.now_ms)
    assert set(restarted.image.topics.by_name) == {"t0"}


def test_a_snapshot_is_written_when_the_log_has_grown_enough(new_cluster: type[Cluster]) -> None:
    cluster = new_cluster(metadata_log_max_record_bytes_between_snapshots=2000)
    cluster.controller.commit(ControllerResult(topics(100), None), cluster.now_ms)
    cluster.advance(500)
    assert cluster.log.snapshots
    assert replayed(cluster).image.topics == cluster.controller.image.topics


def test_a_grown_log_wakes_a_controller_without_idle_records(new_cluster: type[Cluster]) -> None:
    cluster = new_cluster(metadata_log_max_record_bytes_between_snapshots=2000, metadata_max_idle_interval_ms=0)
    controller, now_ms = cluster.controller, cluster.now_ms
    controller.tick(now_ms)
    assert controller.next_tick_ms(now_ms) > now_ms
    controller.commit(ControllerResult(topics(100), None), now_ms)
    assert controller.next_tick_ms(now_ms) == now_ms
    controller.tick(now_ms)
    assert cluster.log.snapshots
    assert controller.next_tick_ms(now_ms) > now_ms


def test_the_same_calls_give_the_same_bytes(new_cluster: type[Cluster]) -> None:
    def bytes_of_a_life() -> bytes:
        cluster = new_cluster(seed=5)
        cluster.start(1, 2, 3)
        cluster.create_topic("t", [1, 2, 3])
        cluster.heartbeat(1, want_shut_down=True)
        for _ in range(8):
            cluster.advance(2000)
            cluster.heartbeat(2)
        return bytes(cluster.log.read(0, 1 << 30))

    assert bytes_of_a_life() == bytes_of_a_life()


@pytest.mark.parametrize(("broker_id", "epoch_error"), [(1, -1), (2, 0)])
def test_an_epoch_that_is_not_registered_is_stale(cluster: Cluster, broker_id: int, epoch_error: int) -> None:
    epoch = cluster.register(1)
    cluster.controller.check_broker_epoch(1, epoch)
    with pytest.raises(ApiError) as refusal:
        cluster.controller.check_broker_epoch(broker_id, epoch + epoch_error)
    assert refusal.value.error_code == error_codes.STALE_BROKER_EPOCH


def test_only_a_registered_unfenced_broker_is_active(cluster: Cluster) -> None:
    cluster.register(1)
    cluster.start(2)
    assert [cluster.controller.is_active(broker_id) for broker_id in (1, 2, 3)] == [False, True, False]


class Counting:
    """A task that runs again at once as often as it is told."""

    def __init__(self, again: int = 0) -> None:
        self.runs: list[int] = []
        self.again = again

    def run(self, controller: Any, now_ms: int) -> ControllerResult[bool]:
        self.runs.append(now_ms)
        self.again -= 1
        return ControllerResult([], self.again >= 0)


class Committing:
    log = StillLog()

    def commit(self, result: ControllerResult[bool], now_ms: int) -> bool:
        return result.response


@each_row(
    ("again", "ticks", "runs", "next_ms"),
    {
        "each interval": (0, (0, 99, 100, 150, 200, 201), [100, 200], 300),
        "a late tick once": (0, (1050,), [1050], 1150),
        "again at once": (3, (100,), [100] * 4, 200),
    },
)
def test_a_task_runs(again: int, ticks: tuple[int, ...], runs: list[int], next_ms: int) -> None:
    task = Counting(again)
    periodic = Periodic([PeriodicTask("t", 100, task.run)], now_ms=0)
    for now_ms in ticks:
        periodic.tick(Committing(), now_ms)  # type: ignore[arg-type]
    assert (task.runs, periodic.next_due_ms()) == (runs, next_ms)


def test_a_refused_task_waits_for_its_next_turn_and_others_run() -> None:
    class Refusing(Committing):
        def commit(self, result: ControllerResult[bool], now_ms: int) -> bool:
            raise ApiError(error_codes.KAFKA_STORAGE_ERROR, "disk full")

    first, second = Counting(), Counting()
    periodic = Periodic([PeriodicTask("a", 100, first.run), PeriodicTask("b", 100, second.run)], now_ms=0)
    periodic.tick(Refusing(), 100)  # type: ignore[arg-type]
    assert (first.runs, second.runs) == ([100], [100])
    assert periodic.next_due_ms() == 200


def test_a_no_op_record_is_written_each_half_second(cluster: Cluster) -> None:
    end_offset = cluster.log.end_offset
    cluster.advance(499)
    assert cluster.log.end_offset == end_offset
    cluster.advance(1)
    assert cluster.log.end_offset == end_offset + 1
    cluster.advance(500)
    assert cluster.log.end_offset == end_offset + 2


def test_no_no_op_record_is_written_when_the_interval_is_zero(new_cluster: type[Cluster]) -> None:
    cluster = new_cluster(metadata_max_idle_interval_ms=0)
    end_offset = cluster.log.end_offset
    cluster.advance(60_000)
    assert cluster.log.end_offset == end_offset


def test_stale_brokers_are_looked_for_eight_times_a_session(cluster: Cluster) -> None:
    cluster.start(1)
    born_ms = cluster.now_ms
    while not cluster.broker(1).fenced:
        cluster.now_ms = cluster.controller.next_tick_ms(cluster.now_ms)
        cluster.controller.tick(cluster.now_ms)
    assert 9000 < cluster.now_ms - born_ms <= 9000 * 9 // 8


def test_all_stale_brokers_go_in_one_tick_one_after_the_other(cluster: Cluster) -> None:
    cluster.start(1, 2, 3)
    topic_id = cluster.create_topic("t", [1, 2, 3])
    cluster.advance(11_000)
    assert all(cluster.broker(broker_id).fenced for broker_id in (1, 2, 3))
    assert [record.leader for record, _ in cluster.written() if hasattr(record, "leader")] == [2, 3, -1]
    assert cluster.partition(topic_id).last_known_elr == (3,)


def test_the_next_tick_is_never_in_the_past(cluster: Cluster) -> None:
    assert cluster.controller.next_tick_ms(cluster.now_ms) == cluster.now_ms + 500
    assert cluster.controller.next_tick_ms(cluster.now_ms + 10_000) == cluster.now_ms + 10_000


def test_a_task_that_raises_again_and_again_is_the_failure(cluster: Cluster) -> None:
    def break_down(controller: object, now_ms: int) -> ControllerResult[bool]:
        raise ZeroDivisionError

    controller = cluster.controller
    task = PeriodicTask("broken", 100, break_down)
    controller.periodic = Periodic([task, PeriodicTask("sound", 30, lambda *_: ControllerResult([], False))], 0)
    for number in range(3):
        assert controller.failure is None
        with pytest.raises(ZeroDivisionError):
            controller.tick(100 * (number + 1))
        controller.tick(100 * (number + 1))
    assert controller.failure == "periodic task broken raised 3 times in a row"
    task.run = lambda *_: ControllerResult([], False)
    controller.tick(400)
    assert controller.failure is None
