"""Blocks of producer ids: one request at a time, however many callers wait."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from mockraft.brokers.partitions.producer_ids import ProducerIds
from mockraft.wire import error_codes
from mockraft.wire.errors import ApiError
from mockraft.wire.messages.allocate_producer_ids_request import AllocateProducerIdsRequest
from mockraft.wire.messages.allocate_producer_ids_response import AllocateProducerIdsResponse

Answer = AllocateProducerIdsResponse | ApiError


class Sent:
    """The requests to the controller that were not answered yet."""

    def __init__(self) -> None:
        self.waiting: list[Callable[[Answer], None]] = []
        self.requests: list[AllocateProducerIdsRequest] = []

    def send(self, request: AllocateProducerIdsRequest, answered: Callable[[Answer], None]) -> None:
        self.requests.append(request)
        self.waiting.append(answered)

    def answer(self, answer: Answer) -> None:
        (answered,) = self.waiting
        self.waiting.clear()
        answered(answer)


def block(start: int, length: int) -> AllocateProducerIdsResponse:
    return AllocateProducerIdsResponse(producer_id_start=start, producer_id_len=length)


def test_requests_the_next_block_when_one_is_used_up() -> None:
    sent, ids = Sent(), list[int | None]()
    producer_ids = ProducerIds(sent.send, 1, lambda: 17)
    for _ in range(3):
        producer_ids.next_id(ids.append)
    assert (ids, sent.requests) == ([], [AllocateProducerIdsRequest(broker_id=1, broker_epoch=17)])
    sent.answer(block(1000, 2))
    assert (ids, len(sent.requests)) == ([1000, 1001], 2)
    sent.answer(block(5000, 2))
    producer_ids.next_id(ids.append)
    assert (ids, len(sent.requests)) == ([1000, 1001, 5000, 5001], 2)


@pytest.mark.parametrize(
    "failure",
    [
        ApiError(error_codes.REQUEST_TIMED_OUT),
        AllocateProducerIdsResponse(error_code=error_codes.STALE_BROKER_EPOCH),
        block(0, 0),
    ],
)
def test_a_failure_is_that_of_the_first_caller_and_the_next_one_requests_again(failure: Answer) -> None:
    sent, ids = Sent(), list[int | None]()
    producer_ids = ProducerIds(sent.send, 1, lambda: 17)
    producer_ids.next_id(ids.append)
    producer_ids.next_id(ids.append)
    sent.answer(failure)
    assert (ids, len(sent.requests)) == ([None], 2)
    sent.answer(block(7, 1))
    assert ids == [None, 7]
