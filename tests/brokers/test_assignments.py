"""Assignments go out in batches, one request at a time, and come back into the queue when they fail."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from mockraft.brokers.assignments import ASSIGNMENTS_PER_REQUEST_MAX, Assignments
from mockraft.wire import error_codes
from mockraft.wire.messages.assign_replicas_to_dirs_request import AssignReplicasToDirsRequest
from mockraft.wire.messages.assign_replicas_to_dirs_response import (
    AssignReplicasToDirsResponse,
    DirectoryData,
    PartitionData,
    TopicData,
)

TOPIC, OTHER_TOPIC = b"t" * 16, b"u" * 16
DIR_A, DIR_B = b"a" * 16, b"b" * 16


class Everywhere:
    """Every replica is still on the broker."""

    def __contains__(self, key: object) -> bool:
        return True


@pytest.fixture
def assignments() -> Assignments:
    return Assignments()


def taken(assignments: Assignments) -> AssignReplicasToDirsRequest:
    request = assignments.take(1, 17, Everywhere())
    assert request is not None
    return request


def answer_to(request: AssignReplicasToDirsRequest, failing: Iterable[int] = ()) -> AssignReplicasToDirsResponse:
    return AssignReplicasToDirsResponse(
        directories=[
            DirectoryData(
                id=directory.id,
                topics=[
                    TopicData(
                        topic_id=topic.topic_id,
                        partitions=[
                            PartitionData(
                                partition_index=p.partition_index,
                                error_code=error_codes.UNKNOWN_TOPIC_ID if p.partition_index in failing else 0,
                            )
                            for p in topic.partitions
                        ],
                    )
                    for topic in directory.topics
                ],
            )
            for directory in request.directories
        ]
    )


def assigned(request: Any) -> dict[tuple[bytes, int], bytes]:
    return {
        (topic.topic_id, partition.partition_index): directory.id
        for directory in request.directories
        for topic in directory.topics
        for partition in topic.partitions
    }


def test_waits_a_moment_for_more_and_groups_by_directory(assignments: Assignments) -> None:
    expected = {(TOPIC, 0): DIR_A, (TOPIC, 1): DIR_B, (OTHER_TOPIC, 0): DIR_A, (TOPIC, 2): DIR_A}
    for now_ms, (key, directory) in enumerate(expected.items()):
        assignments.add(key, directory, 1000 + now_ms)
    assert assignments.due_ms == 1100
    request = taken(assignments)
    assert (request.broker_id, request.broker_epoch) == (1, 17)
    assert assigned(request) == expected
    assert sorted(directory.id for directory in request.directories) == [DIR_A, DIR_B]


def test_sends_one_request_at_a_time(assignments: Assignments) -> None:
    assignments.add((TOPIC, 0), DIR_A, 0)
    request = taken(assignments)
    assignments.add((TOPIC, 1), DIR_A, 0)
    assert assignments.due_ms is None
    assert assignments.take(1, 17, Everywhere()) is None
    assert assignments.queued == 2
    assignments.answered(answer_to(request), 50)
    assert assignments.queued == 1
    assert assigned(taken(assignments)) == {(TOPIC, 1): DIR_A}


def test_refused_or_missing_assignments_are_sent_again(assignments: Assignments) -> None:
    for partition in range(3):
        assignments.add((TOPIC, partition), DIR_A, 0)
    request = taken(assignments)
    answer = answer_to(request, failing=[1])
    answer.directories[0].topics[0].partitions.pop(2)
    assignments.answered(answer, 500)
    assert assignments.due_ms == 600
    assert assigned(taken(assignments)) == {(TOPIC, 1): DIR_A, (TOPIC, 2): DIR_A}


@pytest.mark.parametrize(("error_code", "due_ms"), [(0, 100), (error_codes.STALE_BROKER_EPOCH, 200)])
def test_an_answer_about_other_partitions_or_a_refusal_of_everything_confirms_none(
    assignments: Assignments, error_code: int, due_ms: int
) -> None:
    assignments.add((TOPIC, 0), DIR_A, 0)
    taken(assignments)
    assignments.answered(AssignReplicasToDirsResponse(error_code=error_code), 0)
    assert (assignments.queued, assignments.due_ms) == (1, due_ms)


def test_failures_are_retried_later_each_time(assignments: Assignments) -> None:
    assignments.add((TOPIC, 0), DIR_A, 0)
    waits = []
    for _ in range(9):
        taken(assignments)
        assignments.failed(0)
        waits.append(assignments.due_ms)
    assert waits == [200, 400, 800, 1600, 3200, 6400, 10_000, 10_000, 10_000]
    assignments.answered(answer_to(taken(assignments)), 0)
    assert assignments.queued == 0


def test_a_newer_assignment_is_not_overwritten_by_a_failed_one(assignments: Assignments) -> None:
    assignments.add((TOPIC, 0), DIR_A, 0)
    taken(assignments)
    assignments.add((TOPIC, 0), DIR_B, 0)
    assignments.failed(0)
    assert assigned(taken(assignments)) == {(TOPIC, 0): DIR_B}


def test_drops_replicas_that_are_no_longer_here(assignments: Assignments) -> None:
    assignments.add((TOPIC, 0), DIR_A, 0)
    assignments.add((TOPIC, 1), DIR_A, 0)
    assert assigned(assignments.take(1, 17, {(TOPIC, 1)})) == {(TOPIC, 1): DIR_A}
    assignments.failed(0)
    assert assignments.take(1, 17, ()) is None
    assert assignments.queued == 0


def test_long_queue_is_sent_in_batches_without_delay(assignments: Assignments) -> None:
    for partition in range(ASSIGNMENTS_PER_REQUEST_MAX + 10):
        assignments.add((TOPIC, partition), DIR_A, 1000)
    assert assignments.due_ms == 1000
    request = taken(assignments)
    assert len(assigned(request)) == ASSIGNMENTS_PER_REQUEST_MAX
    assignments.answered(answer_to(request), 1000)
    assert len(assigned(taken(assignments))) == 10


def test_waiter_is_notified_when_its_own_assignment_is_confirmed(assignments: Assignments) -> None:
    heard: list[str] = []
    assignments.add((TOPIC, 0), DIR_A, 0, lambda: heard.append("a"))
    request = taken(assignments)
    assignments.add((TOPIC, 0), DIR_B, 0, lambda: heard.append("b"))
    assignments.answered(answer_to(request), 10)
    assert heard == ["a"]
    request = taken(assignments)
    assignments.answered(answer_to(request, failing=[0]), 200)
    assert heard == ["a"], "a refused one is told nothing, and sent again"
    assignments.answered(answer_to(taken(assignments)), 400)
    assert heard == ["a", "b"]


def test_assignments_queued_during_a_request_wait_for_the_next_batch(assignments: Assignments) -> None:
    assignments.add((TOPIC, 0), DIR_A, 0)
    request = taken(assignments)
    assignments.add((TOPIC, 1), DIR_A, 10)
    assignments.answered(answer_to(request), 500)
    assert assignments.due_ms == 600
