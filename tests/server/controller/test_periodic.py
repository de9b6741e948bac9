from typing import Any

from mockraft.server.controller.periodic import Periodic, PeriodicTask
from mockraft.server.controller.result import ApiError, ControllerResult
from mockraft.wire import error_codes

from ...conftest import Cluster


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
    def commit(self, result: ControllerResult[bool], now_ms: int) -> bool:
        return result.response


def test_a_task_runs_each_interval() -> None:
    task = Counting()
    periodic = Periodic([PeriodicTask("t", 100, task.run)], now_ms=0)
    for now_ms in (0, 99, 100, 150, 200, 201):
        periodic.tick(Committing(), now_ms)  # type: ignore[arg-type]
    assert task.runs == [100, 200]
    assert periodic.next_due_ms() == 300


def test_late_tick_runs_once() -> None:
    task = Counting()
    periodic = Periodic([PeriodicTask("t", 100, task.run)], now_ms=0)
    periodic.tick(Committing(), 1050)  # type: ignore[arg-type]
    assert task.runs == [1050]
    assert periodic.next_due_ms() == 1150


def test_a_task_that_wants_to_runs_again_at_once() -> None:
    task = Counting(again=3)
    periodic = Periodic([PeriodicTask("t", 100, task.run)], now_ms=0)
    periodic.tick(Committing(), 100)  # type: ignore[arg-type]
    assert task.runs == [100] * 4


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
