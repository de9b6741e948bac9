"""Concurrent clients of a quorum's active controller that record their operations.

Each client finds the leader by DescribeQuorum and keeps its connection until the leader refuses or goes. Operations
change topics, configs and producer ids. A response that does not come, or one that leaves open whether the records were
committed (NOT_CONTROLLER, REQUEST_TIMED_OUT), gives the operation an unknown outcome.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import count
from typing import Any, TypeVar

from mockraft.kafka.child_process import wait_until
from mockraft.wire import error_codes, uuids
from mockraft.wire.messages.allocate_producer_ids_request import AllocateProducerIdsRequest
from mockraft.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from mockraft.wire.messages.create_topics_request import CreateTopicsRequest
from mockraft.wire.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from mockraft.wire.messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from mockraft.wire.messages.describe_quorum_request import DescribeQuorumRequest, PartitionData, TopicData

from tools.blocking_connection import BlockingConnection

from ..configs import APPEND, SET, TOPIC, change_configs
from ..conftest import registration_request
from ..topics import assigned
from .checker import violations
from .history import UNKNOWN, Operation, UnexpectedError
from .models import ABSENT, EXISTS, OK, ConfigList, Model, ProducerIds, TopicName

T = TypeVar("T")

MODELS: dict[str, Model] = {"topic": TopicName(), "config": ConfigList(), "producer-ids": ProducerIds()}
BROKER_ID = 1
FAR_OFFSET = 1 << 40
TIMEOUT_S = 3
_SET_KEY = "retention.ms"
_APPEND_KEY = "leader.replication.throttled.replicas"
_BARRIER_KEY = "flush.ms"
_TOPICS = 4
_ACCEPTED: dict[int, str | None] = {error_codes.NONE: None}
_LEFT_OPEN = {error_codes.NOT_CONTROLLER, error_codes.REQUEST_TIMED_OUT}
_CREATED: dict[int, str | None] = {error_codes.NONE: None, error_codes.TOPIC_ALREADY_EXISTS: EXISTS}
_DELETED: dict[int, str | None] = {error_codes.NONE: None, error_codes.UNKNOWN_TOPIC_OR_PARTITION: ABSENT}
# Kafka looks the name up and then deletes the id, which another client may have deleted in between.
_DELETED[error_codes.UNKNOWN_TOPIC_ID] = ABSENT


class OutcomeUnknownError(Exception):
    """The operation may have taken effect or not."""


class LeaderConnection:
    """A connection to the active controller among `servers`, which may change, found anew after each loss."""

    def __init__(self, servers: Sequence[str], rng: random.Random) -> None:
        self._servers = servers
        self._rng = rng
        self._connection: BlockingConnection | None = None

    def find_leader(self) -> bool:
        """Return True once connected to a server that leads; False after each has been asked."""
        if self._connection is not None:
            return True
        for server in self._rng.sample(self._servers, len(self._servers)):
            host, _, port = server.rpartition(":")
            with suppress(OSError):
                self._connection = BlockingConnection((host, int(port)), "client", timeout_s=TIMEOUT_S)
                if _leads(self._connection):
                    return True
            self.leave()
        return False

    def exchange(self, request: Any, version: int) -> Any:
        """Send a request; OutcomeUnknownError without a response."""
        assert self._connection is not None
        try:
            return self._connection.exchange(request, version)
        except OSError as error:
            self.leave()
            raise OutcomeUnknownError(str(error)) from error

    def leave(self) -> None:
        """Close the connection: its server leads no more, or does not answer."""
        if self._connection is not None:
            self._connection.close()
        self._connection = None


def _leads(connection: BlockingConnection) -> bool:
    topic = TopicData(topic_name="__cluster_metadata", partitions=[PartitionData(partition_index=0)])
    (described,) = connection.exchange(DescribeQuorumRequest(topics=[topic]), 1).topics
    return bool(described.partitions[0].error_code == error_codes.NONE)


class Clients:
    """Clients of one quorum. `history` has all operations, `servers` the addresses of the controllers.

    Topics have names of the `seed`, so that a quorum may have other clients before and after.

    `may_be_stale`: what changes nothing may be answered with any earlier state. Kafka's leader answers reads, and
    refuses what contradicts its committed state, without asking a majority whether it still leads.
    """

    def __init__(self, servers: Sequence[str], cluster_id: str, seed: int, *, may_be_stale: bool = False) -> None:
        self.history: list[Operation] = []
        self._may_be_stale = may_be_stale
        self._topics = [f"seed-{seed}-{number}" for number in range(_TOPICS)]
        self._configured = f"seed-{seed}-configured"
        self.servers = list(servers)
        self._cluster_id = cluster_id
        self._rng = random.Random(seed)
        self._own = LeaderConnection(self.servers, self._rng)
        self._broker_epoch = -1
        self._values = count(1)
        self._ended = threading.Event()
        self._retried(self._prepare, "a broker and a topic")

    @property
    def acknowledged(self) -> int:
        """Number of operations with a known outcome."""
        return sum(each.result != UNKNOWN for each in list(self.history))

    def violations(self) -> str:
        """Return, as text, what is not linearizable."""
        return "\n".join(map(str, violations(self.history, MODELS)))

    @contextmanager
    def running(self, clients: int = 4) -> Iterator[None]:
        """Let so many clients work as long as the block lasts, and read everything at its end."""
        self._ended.clear()
        threads = [
            threading.Thread(target=self._work, args=(random.Random(self._rng.getrandbits(64)),), daemon=True)
            for _ in range(clients)
        ]
        for thread in threads:
            thread.start()
        try:
            self.wait_for_progress(20)
            yield
            self.wait_for_progress(20)
        finally:
            self._ended.set()
            for thread in threads:
                thread.join()
        self._read_everything()
        self._own.leave()

    def wait_for_progress(self, operations: int) -> None:
        """Wait until so many more operations have a known outcome."""
        enough = self.acknowledged + operations
        wait_until(lambda: self.acknowledged >= enough, 60, f"{operations} more operations")

    def _retried(self, operate: Callable[[LeaderConnection], T | None], what: str) -> T:
        """Call `operate` until it gives something true, at whichever server leads then."""

        def once() -> T | None:
            if not self._own.find_leader():
                return None
            try:
                return operate(self._own)
            except OutcomeUnknownError:
                self._own.leave()
                return None

        return wait_until(once, 60, what)

    def _prepare(self, leader: LeaderConnection) -> bool:
        """Register and unfence the broker that has the topics, and create the topic that has the configs."""
        registered = leader.exchange(registration_request(self._cluster_id, BROKER_ID), 4)
        assert _known(registered.error_code) is None, registered
        self._broker_epoch = registered.broker_epoch
        heartbeat = BrokerHeartbeatRequest(
            broker_id=BROKER_ID, broker_epoch=self._broker_epoch, current_metadata_offset=FAR_OFFSET
        )
        beat = leader.exchange(heartbeat, 1)
        assert _known(beat.error_code) is None, beat
        (created,) = leader.exchange(_creation(self._configured), 7).topics
        assert _known(created.error_code, _CREATED) in (None, EXISTS), created
        return not beat.is_fenced

    def _work(self, rng: random.Random) -> None:
        leader = LeaderConnection(self.servers, rng)
        while not self._ended.is_set():
            if not leader.find_leader():
                self._ended.wait(0.02)
                continue
            kind = rng.choice(("topic", "topic", "config", "producer-ids"))
            if kind == "topic":
                self._change_topic(leader, rng.choice(("create", "delete")), rng.choice(self._topics))
            elif kind == "config":
                self._use_config(leader, rng.choice(("set", "append", "read set", "read append")))
            else:
                self._allocate(leader)
        leader.leave()

    def _change_topic(self, leader: LeaderConnection, name: str, topic: str) -> None:
        def create() -> str:
            (created,) = leader.exchange(_creation(topic), 7).topics
            return _known(created.error_code, _CREATED) or uuids.text_of(created.topic_id)

        def delete() -> str:
            request = DeleteTopicsRequest(topics=[DeleteTopicState(name=topic)], timeout_ms=10_000)
            (deleted,) = leader.exchange(request, 6).responses
            return _known(deleted.error_code, _DELETED) or uuids.text_of(deleted.topic_id)

        self._record(leader, f"topic {topic}", name, None, create if name == "create" else delete)

    def _use_config(self, leader: LeaderConnection, kind: str) -> None:
        name, _, suffix = kind.partition(" ")
        key = _SET_KEY if "set" in (name, suffix) else _APPEND_KEY
        if name == "read":
            self._record(leader, f"config {key}", "read", None, lambda: self._described(leader)[key])
            return
        number = next(self._values)
        value = str(number) if name == "set" else f"{number}:{BROKER_ID}"
        change = (SET if name == "set" else APPEND, key, value)
        self._record(leader, f"config {key}", name, value, lambda: self._altered(leader, change))

    def _allocate(self, leader: LeaderConnection) -> None:
        request = AllocateProducerIdsRequest(broker_id=BROKER_ID, broker_epoch=self._broker_epoch)

        def allocate() -> Any:
            allocated = leader.exchange(request, 0)
            return _known(allocated.error_code) or int(allocated.producer_id_start)

        self._record(leader, "producer-ids", "allocate", None, allocate)

    def _record(self, leader: LeaderConnection, key: str, name: str, argument: Any, operate: Any) -> None:
        called_at = time.monotonic()
        try:
            result = operate()
        except OutcomeUnknownError:
            leader.leave()
            result = UNKNOWN
        operation = Operation(key, name, argument, result, called_at, time.monotonic())
        is_observation = MODELS[key.partition(" ")[0]].observes(operation)
        is_stale = self._may_be_stale and leader is not self._own and is_observation
        self.history.append(operation._replace(is_stale=is_stale))

    def _read_everything(self) -> None:
        """Observe every object after all others have ended: one client, on the leader of the whole quorum."""
        last: list[Callable[[LeaderConnection], None]] = [self._allocate]
        last += [partial(self._change_topic, name="create", topic=topic) for topic in self._topics]
        for operate in last:
            self._retried(partial(self._has_outcome, operate), "an operation at the end")
        self.history += self._retried(self._read_configs, "the configs at the end")

    def _has_outcome(self, operate: Callable[[LeaderConnection], None], leader: LeaderConnection) -> bool:
        operate(leader)
        return bool(self.history[-1].result != UNKNOWN)

    def _read_configs(self, leader: LeaderConnection) -> list[Operation]:
        # Kafka describes the configs of its published image, which may be behind what it acknowledged.
        barrier = str(next(self._values))
        self._altered(leader, (SET, _BARRIER_KEY, barrier))
        called_at = time.monotonic()
        configs = wait_until(lambda: _if_newer(self._described(leader), barrier), 60, "the configs")
        return [
            Operation(f"config {key}", "read", None, configs[key], called_at, time.monotonic())
            for key in (_SET_KEY, _APPEND_KEY)
        ]

    def _altered(self, leader: LeaderConnection, change: tuple[int, str, str]) -> str:
        (altered,) = leader.exchange(change_configs((TOPIC, self._configured, change)), 1).responses
        return _known(altered.error_code) or OK

    def _described(self, leader: LeaderConnection) -> dict[str, tuple[str, ...]]:
        """The topic's own configs as lists; without a value of its own a config is empty."""
        resource = DescribeConfigsResource(resource_type=TOPIC, resource_name=self._configured)
        (described,) = leader.exchange(DescribeConfigsRequest(resources=[resource]), 4).results
        assert described.error_code == error_codes.NONE, error_codes.name(described.error_code)
        topic_config = 1
        own = {each.name: each.value for each in described.configs if each.config_source == topic_config}
        return {
            key: tuple(filter(None, (own.get(key) or "").split(","))) for key in (_SET_KEY, _APPEND_KEY, _BARRIER_KEY)
        }


def _creation(name: str) -> CreateTopicsRequest:
    return CreateTopicsRequest(topics=[assigned(name, [BROKER_ID])], timeout_ms=10_000)


def _if_newer(configs: dict[str, tuple[str, ...]], barrier: str) -> dict[str, tuple[str, ...]] | None:
    return configs if configs[_BARRIER_KEY] == (barrier,) else None


def _known(error_code: int, results: dict[int, str | None] | None = None) -> str | None:
    """Return the result of an error code, UnexpectedError for one not in `results`; OutcomeUnknownError."""
    if error_code in _LEFT_OPEN:
        raise OutcomeUnknownError(error_codes.name(error_code))
    return (results or _ACCEPTED).get(error_code, UnexpectedError(error_codes.name(error_code)))
