"""Data requests to brokers over sockets: producer ids, promoted followers, waits."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from mockraft.wire import error_codes
from mockraft.wire.messages.delete_records_request import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from mockraft.wire.messages.init_producer_id_request import InitProducerIdRequest

from ...topics import ask as ask_at
from ...waiting import until
from .data_requests import BATCH, answered, fetch, produced, with_producer

Ask = Callable[..., Awaitable[Any]]


@pytest.fixture
async def topic_id(brokers: Any) -> bytes:
    """Topic `orders` on brokers 1 (which leads) and 2."""
    await brokers.start(1, 2)
    key = await brokers.create_topic("orders", assigned=[1, 2])
    return bytes(key[0])


@pytest.fixture
def ask(brokers: Any, topic_id: bytes) -> Ask:
    """`ask(request, version, broker_id=1)` over a connection of its own."""

    async def run(request: Any, version: int | None = None, broker_id: int = 1) -> Any:
        return await ask_at(brokers.running[broker_id].listener.bootstrap, request, version, request_timeout_ms=8_000)

    return run


async def test_promoted_follower_has_the_producer_state(brokers: Any, ask: Ask, topic_id: bytes) -> None:
    await ask(produced(topic_id, with_producer(9, 0, 0)))
    await brokers.kill(1)
    await until(lambda: (leader := brokers.leader("orders")) and leader.state.broker_id == 2)
    assert answered(await ask(produced(topic_id, with_producer(9, 0, 0)), broker_id=2)).base_offset == 0


async def test_a_fetch_waits_until_there_is_something(ask: Ask, topic_id: bytes) -> None:
    waiting = asyncio.ensure_future(ask(fetch(topic_id, max_wait_ms=6_000)))
    await asyncio.sleep(0)
    await ask(produced(topic_id))
    assert len(answered(await waiting).records) == len(BATCH)


async def test_producer_ids_are_never_given_twice(ask: Ask) -> None:
    given = [(await ask(InitProducerIdRequest(transactional_id=None), broker_id=each)) for each in (1, 2, 1, 2)]
    assert [each.error_code for each in given] == [0, 0, 0, 0]
    assert len({each.producer_id for each in given}) == 4
    refused = await ask(InitProducerIdRequest(transactional_id="t", transaction_timeout_ms=1))
    assert (refused.error_code, refused.producer_id) == (error_codes.NOT_COORDINATOR, -1)


async def test_records_are_deleted_on_every_replica(brokers: Any, ask: Ask, topic_id: bytes) -> None:
    def asked(offset: int) -> DeleteRecordsRequest:
        topic = DeleteRecordsTopic(name="orders", partitions=[DeleteRecordsPartition(partition_index=0, offset=offset)])
        return DeleteRecordsRequest(topics=[topic], timeout_ms=5_000)

    await ask(produced(topic_id))
    await ask(produced(topic_id))
    assert answered(await ask(asked(9))).error_code == error_codes.OFFSET_OUT_OF_RANGE
    deleted = answered(await ask(asked(2)))
    assert (deleted.error_code, deleted.low_watermark) == (0, 2)
    assert [brokers.hosted(each, "orders").log.start_offset for each in (1, 2)] == [2, 2]
    assert answered(await ask(fetch(topic_id, 1))).error_code == error_codes.OFFSET_OUT_OF_RANGE
    assert answered(await ask(asked(-1))).low_watermark == 4
