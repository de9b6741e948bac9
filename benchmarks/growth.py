"""Measure the cost of one request in clusters of 10² to 10⁵ topics, then of 10² to 10⁵ brokers.

The figures are CPU time of the node in this process, without sockets, so they contain neither load nor kernel.

    python benchmarks/growth.py [--quick] [--json]
"""

from __future__ import annotations

import itertools
import random
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar

from contenders import create_topic, heartbeat, registrations, shrink_or_grow
from mockraft.kafka_api.effects import AwaitSent, Send
from mockraft.server.apis.registry import APIS
from mockraft.server.config import ControllerConfig
from mockraft.server.controller.controller import Controller
from mockraft.server.node import Node
from mockraft.server.raft.raft import Raft
from mockraft.wire.connection import read_response, write_request
from mockraft.wire.message import Message
from mockraft.wire.messages.allocate_producer_ids_request import AllocateProducerIdsRequest
from mockraft.wire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from mockraft.wire.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from mockraft.wire.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from mockraft.wire.messages.unregister_broker_request import UnregisterBrokerRequest
from result import Cell, Curves, Gate, Picture, Result, Table, argument_parser, show

if TYPE_CHECKING:
    from mockraft.wire.message import RequestMessage

R = TypeVar("R")

SIZES = (100, 1_000, 10_000, 100_000)
BATCHES, BATCH = 5, 40
"""Number of timed batches, and of requests in each; the median batch is reported."""
TOPICS_A_REQUEST = 1000
START_MS = 1_700_000_000_000
TOPIC = 2


def delete_topic(name: str) -> DeleteTopicsRequest:
    return DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=60_000)


class World:
    """A node with registered, unfenced brokers and topics of one partition on three of them."""

    def __init__(self) -> None:
        rng = random.Random(1)
        config = ControllerConfig(session_timeout_ms=1 << 40, metadata_log_max_record_bytes_between_snapshots=1 << 50)
        self.now_ms = START_MS
        raft = Raft.open(config, self.now_ms, rng)
        self.node = Node(Controller(config, raft, rng, self.now_ms), APIS)
        self.cluster_id = config.cluster_id
        self.epochs: dict[int, int] = {}
        self.topics = 0
        self._numbers = itertools.count()
        self._correlation_ids = itertools.count()
        self.node.connected(1, "127.0.0.1:50000", self.now_ms)

    def frame(self, message: Message, version: int) -> bytes:
        return write_request(message, version, next(self._correlation_ids), "benchmark")

    def send(self, frame: bytes) -> bytes:
        """Pass one request to the node; return the response frame without its length."""
        effects = self.node.step(1, frame, self.now_ms)
        if isinstance(effects[0], AwaitSent):  # a long request is answered in its turn
            effects = self.node.sent(1, self.now_ms)
        effect = effects[0]
        assert isinstance(effect, Send)
        return effect.data[4:]

    def ask(self, message: RequestMessage[R], version: int) -> R:
        """Return the node's response."""
        assert isinstance(message, Message)
        response: R = read_response(self.send(self.frame(message, version)), message.api_key, version)
        return response

    def add_brokers(self, count: int) -> None:
        first = len(self.epochs) + 1
        for request in registrations(self.cluster_id, range(first, first + count)) if count else ():
            self.epochs[request.broker_id] = self.ask(request, 4).broker_epoch
            self.ask(heartbeat(request.broker_id, self.epochs[request.broker_id]), 2)

    def add_topics(self, count: int) -> None:
        for start in range(0, count, TOPICS_A_REQUEST):
            names = [f"topic.{self.topics + number}" for number in range(start, min(start + TOPICS_A_REQUEST, count))]
            topics = [CreatableTopic(name=name, num_partitions=1, replication_factor=3) for name in names]
            answered = self.ask(CreateTopicsRequest(topics=topics), 7)
            assert not any(each.error_code for each in answered.topics)
        self.topics += count

    def requests(self) -> dict[str, Callable[[], bytes]]:
        """Return a maker of frames for each operation; what is created is deleted again, so that the size stays."""
        moving = self.ask(create_topic("moving", 1, 3), 7).topics[0].topic_id
        replicas = self.node.controller.image.topics.by_id[moving].partitions[0].replicas
        names: list[str] = []
        broker_ids: list[int] = []
        flips = itertools.count()

        def created() -> bytes:
            names.append(f"new.{next(self._numbers)}")
            return self.frame(create_topic(names[-1], 1, 3), 7)

        def deleted() -> bytes:
            return self.frame(delete_topic(names.pop()), 6)

        def shrunk_or_grown() -> bytes:
            number = next(flips)
            isr = replicas[: 2 if number % 2 == 0 else 3]
            return self.frame(shrink_or_grow(self.epochs, moving, isr, number), 3)

        def registered() -> bytes:
            broker_ids.append(next(self._numbers) + (1 << 20))
            return self.frame(registrations(self.cluster_id, broker_ids[-1:])[0], 4)

        def configured() -> bytes:
            config = AlterableConfig(name="retention.ms", value=str(next(self._numbers) + 1))
            resource = AlterConfigsResource(resource_type=TOPIC, resource_name="moving", configs=[config])
            return self.frame(IncrementalAlterConfigsRequest(resources=[resource]), 1)

        return {
            "BrokerHeartbeat": lambda: self.frame(heartbeat(1, self.epochs[1]), 2),
            "CreateTopics, one partition": created,
            "DeleteTopics": deleted,
            "AlterPartition": shrunk_or_grown,
            "IncrementalAlterConfigs": configured,
            "AllocateProducerIds": lambda: self.frame(
                AllocateProducerIdsRequest(broker_id=1, broker_epoch=self.epochs[1]), 0
            ),
            "BrokerRegistration": registered,
            "UnregisterBroker": lambda: self.frame(UnregisterBrokerRequest(broker_id=broker_ids.pop()), 0),
        }

    def cost_us(self, frames: Iterable[bytes]) -> float:
        """Return the median CPU microseconds of a request."""
        frames = list(frames)
        taken = []
        for start in range(0, len(frames), BATCH):
            began = time.process_time_ns()
            for frame in frames[start : start + BATCH]:
                self.send(frame)
            taken.append((time.process_time_ns() - began) / BATCH / 1000)
        return statistics.median(taken)

    def tick_cost_us(self) -> float:
        """Return the median CPU microseconds of a tick."""
        taken = []
        for _ in range(BATCHES * BATCH):
            self.now_ms += 1000
            began = time.process_time_ns()
            self.node.tick(self.now_ms)
            taken.append((time.process_time_ns() - began) / 1000)
        return statistics.median(taken)


def measure(world: World) -> dict[str, float]:
    """Return the microseconds of each operation at the present size."""
    costs = {name: world.cost_us([make() for _ in range(BATCHES * BATCH)]) for name, make in world.requests().items()}
    world.ask(delete_topic("moving"), 6)
    image = world.node.controller.image
    assert (len(image.topics.by_id), len(image.cluster.brokers)) == (world.topics, len(world.epochs))
    return {**costs, "periodic work": world.tick_cost_us()}


def grown(sizes: Iterable[int], grow: Callable[[World, int], None], world: World) -> Curves:
    """Grow the world from size to size and measure at each."""
    figures: Curves = {}
    before = 0
    for size in sizes:
        grow(world, size - before)
        before = size
        for name, cost in measure(world).items():
            figures.setdefault(name, {})[size] = cost
    return figures


def table(of: str, figures: Curves) -> Table:
    """Return the costs at each size."""
    sizes = list(next(iter(figures.values())))
    rows: list[list[Cell]] = [
        [name, *(f"{costs[size]:.0f}" for size in sizes), f"{costs[sizes[-1]] / costs[sizes[0]]:.2f}"]
        for name, costs in figures.items()
    ]
    columns = ["µs of CPU", *(f"{size:,} {of}" for size in sizes), "last ÷ first"]
    return Table(f"Cost of a request as the number of {of} grows", columns, rows)


def measure_growth(sizes: Sequence[int]) -> Result:
    """Grow a cluster by topics and another one by brokers."""
    by_topics = World()
    by_topics.add_brokers(3)
    figures = {"topics": grown(sizes, World.add_topics, by_topics), "brokers": grown(sizes, World.add_brokers, World())}
    growth = {
        of: statistics.geometric_mean(costs[sizes[-1]] / costs[sizes[0]] for costs in each.values())
        for of, each in figures.items()
    }
    return Result(
        "Growth",
        "CPU time of the node for one request, in one process and without sockets. With many topics, each has one "
        "partition on the same three brokers; with many brokers, all are unfenced and topics are placed on any three.",
        [table(of, each) for of, each in figures.items()],
        gates=[
            Gate(f"cost with the most {of} ÷ cost with the fewest, mean", f"{ratio:.2f}", at_most=2.0)
            for of, ratio in growth.items()
        ],
        picture=Picture("Cost of a request as the cluster grows", figures),
    )


if __name__ == "__main__":
    options = argument_parser(__doc__, "only up to 10,000").parse_args()
    show(measure_growth(SIZES[:3] if options.quick else SIZES), options)
