"""Mixed traffic at fixed rates beside the heartbeats: simulated brokers, changes, reads, visitors and nonsense.

Each kind of work has its own task and is due at fixed times. What is created is deleted again, so that a cluster of
constant size changes all the time. An answer that is not expected is counted and kept.
"""

from __future__ import annotations

import asyncio
import itertools
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import NamedTuple

import httpx
from contenders import create_topic, create_topic_on, heartbeat, registrations, shrink_or_grow
from mockraft.brokers.fleet.fleet import Fleet, start_brokers
from mockraft.brokers.lifecycle import BrokerState
from mockraft.wire.client import KafkaConnection, connect
from mockraft.wire.directory_ids import draw_uuid
from mockraft.wire.messages.allocate_producer_ids_request import AllocateProducerIdsRequest
from mockraft.wire.messages.broker_registration_request import BrokerRegistrationRequest
from mockraft.wire.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from mockraft.wire.messages.describe_cluster_request import DescribeClusterRequest
from mockraft.wire.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from mockraft.wire.messages.list_partition_reassignments_request import ListPartitionReassignmentsRequest
from mockraft.wire.messages.unregister_broker_request import UnregisterBrokerRequest

HEARTBEATING, REPLICATING = range(101, 221), range(1, 11)
"""Brokers whose heartbeats load.c sends, and simulated brokers, which replicate the log."""
RETURNING, NEWCOMERS = range(301, 321), range(401, 1_000_000)
"""Brokers that register with a new incarnation in their turns, and brokers that catch up and leave."""
TOPICS, PARTITIONS, MOVING = 100, 3, "moving"
CONTROLLERS, TOPIC = 2, 2
NONSENSE = (
    b"\x00\x00\x00\x04\xff\xff\xff\xff",
    b"GET / HTTP/1.1\r\nHost: controller\r\n\r\n",
    b"\x00\x00\x00\x14\x00\x3f\x00\x02\x00\x00\x00\x01\xff\xff\x00" + b"\xff" * 9,
)
"""A frame that ends in its header, another protocol, and a heartbeat with a body that cannot be read."""
READS = (
    "/v1/state",
    "/v1/brokers",
    "/v1/topics",
    "/v1/quorum",
    "/v1/requests",
    "/v1/records",
    "/metrics",
    "/v1/health",
)
COUNTED = {"match": {"api": "BrokerHeartbeat", "brokerId": HEARTBEATING[0]}}
ANSWER_S_MAX = 30
UNEXPECTED_MAX = 20
"""Unexpected answers whose text is kept; all are counted."""


class Work(NamedTuple):
    """Work that is done at a fixed rate; by itself it raises for what is unexpected."""

    name: str
    every_s: float
    once: Callable[[], Awaitable[None]]


class Traffic:
    """All but the heartbeats of HEARTBEATING, as an async context manager that ends it."""

    def __init__(self, address: tuple[str, int], cluster_id: str, admin_url: str) -> None:
        self.address, self.cluster_id = address, cluster_id
        self.done: Counter[str] = Counter()
        self.unexpected: list[str] = []
        self.unexpected_count = 0
        self.epochs: dict[int, int] = {}
        self._http = httpx.AsyncClient(base_url=admin_url, timeout=ANSWER_S_MAX)
        self._rng = random.Random(1)
        self._stack = AsyncExitStack()
        self._tasks: list[asyncio.Task[None]] = []
        self._topics, self._flips, self._returns, self._reads = (itertools.count() for _ in range(4))
        self._newcomers, self._nonsense = iter(NEWCOMERS), itertools.cycle(NONSENSE)

    async def __aenter__(self) -> Traffic:
        """Register the brokers, create the topics, and begin."""
        self._connection = await self._connect()
        for request in registrations(self.cluster_id, HEARTBEATING):
            self.epochs[request.broker_id] = await self._register(request)
        self._fleet = await self._start_brokers(REPLICATING[0], len(REPLICATING))
        created = await self._connection.send(create_topic_on(MOVING, HEARTBEATING[:3]))
        self._moving = created.topics[0].topic_id
        for _ in range(TOPICS):
            await self._create_topic()
        self._tasks = [asyncio.create_task(self._repeat(work)) for work in self._works()]
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._fleet.shut_down()
        await self._connection.close()
        await self._http.aclose()

    def blame(self, what: str) -> None:
        """Count something unexpected."""
        self.unexpected_count += 1
        if len(self.unexpected) < UNEXPECTED_MAX:
            self.unexpected.append(what)

    def _works(self) -> list[Work]:
        return [
            Work("CreateTopics, DeleteTopics", 1.0, self._change_topics),
            Work("IncrementalAlterConfigs", 1.0, self._change_config),
            Work("AlterPartition", 0.5, self._change_isr),
            Work("AllocateProducerIds", 1.0, self._allocate),
            Work("registrations of new incarnations", 5.0, self._return),
            Work("brokers that catch up and leave", 30.0, self._come_and_go),
            Work("clients that connect and leave", 0.2, self._visit),
            Work("malformed frames", 5.0, self._send_nonsense),
            Work("reads of the admin API", 2.5, self._read),
        ]

    async def _repeat(self, work: Work) -> None:
        loop = asyncio.get_running_loop()
        due_s = loop.time() + self._rng.random() * work.every_s
        while True:
            await asyncio.sleep(max(0.0, due_s - loop.time()))
            due_s += work.every_s
            try:
                async with asyncio.timeout(ANSWER_S_MAX):
                    await work.once()
            except Exception as error:
                self.blame(f"{work.name}: {error!r}")
            self.done[work.name] += 1

    async def _connect(self) -> KafkaConnection:
        connection = await connect(*self.address, client_id="soak")
        await connection.handshake()
        return connection

    async def _register(self, request: BrokerRegistrationRequest) -> int:
        registered = await self._connection.send(request)
        _check(registered.error_code, registered)
        answered = await self._connection.send(heartbeat(request.broker_id, registered.broker_epoch))
        _check(answered.error_code, answered)
        return registered.broker_epoch

    async def _start_brokers(self, first_id: int, count: int) -> Fleet:
        fleet = await start_brokers(
            (self.address,),
            self.cluster_id,
            dict.fromkeys(range(first_id, first_id + count)),
            rng=self._rng,
            log_dirs=1,
        )
        await fleet.wait_until(BrokerState.RUNNING)
        return fleet

    async def _create_topic(self) -> int:
        number = next(self._topics)
        created = await self._connection.send(create_topic(f"topic-{number}", PARTITIONS, 3))
        _check(created.topics[0].error_code, created)
        return number

    async def _change_topics(self) -> None:
        number = await self._create_topic()
        oldest = DeleteTopicState(name=f"topic-{number - TOPICS}")
        deleted = await self._connection.send(DeleteTopicsRequest(topics=[oldest], timeout_ms=60_000))
        _check(deleted.responses[0].error_code, deleted)

    async def _change_config(self) -> None:
        config = AlterableConfig(name="retention.ms", value=str(self._rng.randrange(1, 1 << 30)))
        resource = AlterConfigsResource(resource_type=TOPIC, resource_name=MOVING, configs=[config])
        changed = await self._connection.send(IncrementalAlterConfigsRequest(resources=[resource]))
        _check(changed.responses[0].error_code, changed)

    async def _change_isr(self) -> None:
        number = next(self._flips)
        isr = HEARTBEATING[: 2 if number % 2 == 0 else 3]
        changed = await self._connection.send(shrink_or_grow(self.epochs, self._moving, isr, number))
        _check(changed.topics[0].partitions[0].error_code, changed)

    async def _allocate(self) -> None:
        broker_id = HEARTBEATING[0]
        request = AllocateProducerIdsRequest(broker_id=broker_id, broker_epoch=self.epochs[broker_id])
        allocated = await self._connection.send(request)
        _check(allocated.error_code, allocated)

    async def _return(self) -> None:
        """Register a broker, whose session ends soon: nobody sends further heartbeats. Each fifth is unregistered."""
        number = next(self._returns)
        broker_id = RETURNING[number % len(RETURNING)]
        (request,) = registrations(self.cluster_id, [broker_id])
        request.incarnation_id = draw_uuid(self._rng)
        await self._register(request)
        if number % 5 == 0:
            unregistered = await self._connection.send(UnregisterBrokerRequest(broker_id=broker_id))
            _check(unregistered.error_code, unregistered)

    async def _come_and_go(self) -> None:
        broker_id = next(self._newcomers)
        fleet = await self._start_brokers(broker_id, 1)
        await fleet.shut_down()
        unregistered = await self._connection.send(UnregisterBrokerRequest(broker_id=broker_id))
        _check(unregistered.error_code, unregistered)

    async def _visit(self) -> None:
        """Connect, ask and close, or break off while the answer is on its way."""
        visitor = await self._connect()
        try:
            if self._rng.random() < 0.2:
                visitor.send_soon(ListPartitionReassignmentsRequest(topics=None), lambda _: None)
                return
            answered = await visitor.send(DescribeClusterRequest(endpoint_type=CONTROLLERS))
            _check(answered.error_code, answered)
        finally:
            visitor.break_off()

    async def _send_nonsense(self) -> None:
        reader, writer = await asyncio.open_connection(*self.address)
        writer.write(next(self._nonsense))
        try:
            if await reader.read():
                raise AssertionError("an answer to a malformed frame")
        finally:
            writer.close()

    async def _read(self) -> None:
        number = next(self._reads)
        if number % len(READS) == 0:
            counted = await self._http.post("/v1/requests/count", json=COUNTED)
            counted.raise_for_status()
        (await self._http.get(READS[number % len(READS)])).raise_for_status()


def _check(error_code: int, answer: object) -> None:
    if error_code:
        raise RuntimeError(f"{answer!r}"[:500])
