"""AlterPartition requests and their answers (`AlterPartitionManager`)."""

from __future__ import annotations

from typing import Any

import pytest
from mockraft.brokers.partitions.isr_changes import RETRY_MS, IsrChanges
from mockraft.brokers.partitions.partition import CommittedIsr, IsrChange
from mockraft.wire import error_codes
from mockraft.wire.messages.alter_partition_request import AlterPartitionRequest
from mockraft.wire.messages.alter_partition_response import AlterPartitionResponse, PartitionData, TopicData

T1, T2 = b"1" * 16, b"2" * 16
CHANGE = IsrChange(((1, 10), (2, 20)), 4, 7, None)


class Heard(list[Any]):
    def __call__(self, change: IsrChange, what: CommittedIsr | int) -> None:
        self.append((change, what))


@pytest.fixture
def changes() -> IsrChanges:
    return IsrChanges()


@pytest.fixture
def heard() -> Heard:
    return Heard()


def answer(*partitions: tuple[bytes, int, int], error_code: int = 0) -> AlterPartitionResponse:
    """A response with (topic id, partition, error code) each."""
    committed: dict[str, Any] = {"leader_id": 1, "leader_epoch": 4, "isr": [1, 2], "partition_epoch": 8}
    topics = [
        TopicData(topic_id=topic_id, partitions=[PartitionData(partition_index=index, error_code=error, **committed)])
        for topic_id, index, error in partitions
    ]
    return AlterPartitionResponse(error_code=error_code, topics=topics)


def taken(changes: IsrChanges, version: int = 3) -> AlterPartitionRequest:
    request = changes.take(1, 10, version)
    assert request is not None
    return request


def test_pending_changes_share_one_request_with_broker_epochs(changes: IsrChanges, heard: Heard) -> None:
    for key in ((T1, 0), (T1, 1), (T2, 0)):
        changes.add(key, CHANGE, heard)
    request = taken(changes)
    assert (request.broker_id, request.broker_epoch) == (1, 10)
    indexes = {
        topic.topic_id: [partition.partition_index for partition in topic.partitions] for topic in request.topics
    }
    assert indexes == {T1: [0, 1], T2: [0]}
    asked = request.topics[0].partitions[0]
    assert [(b.broker_id, b.broker_epoch) for b in asked.new_isr_with_epochs] == [(1, 10), (2, 20)]
    assert (asked.leader_epoch, asked.partition_epoch, asked.leader_recovery_state) == (4, 7, 0)
    assert AlterPartitionRequest.read(request.write(3), 3) == request


def test_version_2_names_the_brokers_alone(changes: IsrChanges, heard: Heard) -> None:
    changes.add((T1, 0), CHANGE, heard)
    request = taken(changes, 2)
    assert request.topics[0].partitions[0].new_isr == [1, 2]
    assert AlterPartitionRequest.read(request.write(2), 2) == request


def test_changes_during_an_in_flight_request_wait(changes: IsrChanges, heard: Heard) -> None:
    changes.add((T1, 0), CHANGE, heard)
    first = changes.take(1, 10, 3)
    changes.add((T2, 0), CHANGE, heard)
    assert not changes.is_due
    assert changes.take(1, 10, 3) == first
    assert changes.answered(answer((T1, 0, 0))) == 0
    request = taken(changes)
    assert [topic.topic_id for topic in request.topics] == [T2]


def test_no_request_is_sent_without_pending_changes(changes: IsrChanges) -> None:
    assert changes.take(1, 10, 3) is None
    assert not changes.is_due


def test_a_second_change_of_a_partition_is_not_attempted(changes: IsrChanges, heard: Heard) -> None:
    changes.add((T1, 0), CHANGE, heard)
    other = CHANGE._replace(partition_epoch=9)
    changes.add((T1, 0), other, heard)
    assert heard == [(other, error_codes.OPERATION_NOT_ATTEMPTED)]


def test_committed_and_refused_changes_are_reported(changes: IsrChanges, heard: Heard) -> None:
    changes.add((T1, 0), CHANGE, heard)
    changes.add((T2, 0), CHANGE, heard)
    changes.take(1, 10, 3)
    assert changes.answered(answer((T1, 0, 0), (T2, 0, error_codes.INELIGIBLE_REPLICA))) == RETRY_MS
    assert heard == [(CHANGE, CommittedIsr(4, 8, (1, 2))), (CHANGE, error_codes.INELIGIBLE_REPLICA)]
    assert not changes.is_due


def test_change_caused_by_a_response_is_in_the_next_request(changes: IsrChanges) -> None:
    other = CHANGE._replace(partition_epoch=8)
    changes.add((T1, 0), CHANGE, lambda *_: changes.add((T1, 0), other, lambda *_: None))
    changes.take(1, 10, 3)
    changes.answered(answer((T1, 0, 0)))
    request = taken(changes)
    assert request.topics[0].partitions[0].partition_epoch == 8


@pytest.mark.parametrize("error_code", [error_codes.STALE_BROKER_EPOCH, error_codes.CLUSTER_AUTHORIZATION_FAILED, None])
def test_an_error_for_the_whole_request_or_no_answer_means_again_and_later(
    changes: IsrChanges, heard: Heard, error_code: int | None
) -> None:
    changes.add((T1, 0), CHANGE, heard)
    first = changes.take(1, 10, 3)
    result = changes.failed() if error_code is None else changes.answered(answer(error_code=error_code))
    assert (result, changes.take(1, 10, 3), heard) == (RETRY_MS, first, [])


def test_partition_missing_from_the_response_is_requested_again(changes: IsrChanges, heard: Heard) -> None:
    changes.add((T1, 0), CHANGE, heard)
    changes.take(1, 10, 3)
    changes.answered(answer((T2, 5, 0)))
    assert changes.is_due
    assert heard == []
