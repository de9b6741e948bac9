"""A controller that is killed at random instants under load: nothing that it acknowledged is lost."""

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from itertools import pairwise
from pathlib import Path

import pytest
from mockraft.kafka.child_process import KafkaProcessError
from mockraft.kafka.mockraft_process import MockraftController
from mockraft.wire import error_codes
from mockraft.wire.messages.allocate_producer_ids_request import AllocateProducerIdsRequest
from mockraft.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from mockraft.wire.messages.create_topics_request import CreateTopicsRequest
from mockraft.wire.messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource

from ..budgets import budget
from ..configs import SET, TOPIC, change_configs
from ..conftest import registration_request
from ..live_client import DEADLINE_S, LiveClient
from ..topics import topic

pytestmark = pytest.mark.one_python

CLUSTER_ID = "p66Y0sRpQNGVKjK4oTgauw"
KILLS = budget(5, 300)
OPERATIONS_MAX = 60
"""Acknowledgements between two kills: a random number up to this one."""


class Acknowledged:
    """Results of all operations that were acknowledged."""

    def __init__(self) -> None:
        self.broker_epoch = -1
        self.topics: list[str] = []
        self.retention_ms = 0
        self.producer_ids = [-1_000]
        self._enough = threading.Condition()
        self._count = 0

    def counted(self) -> None:
        """Count one acknowledgement."""
        with self._enough:
            self._count += 1
            self._enough.notify()

    def wait_for(self, more: int) -> None:
        """Wait for that many acknowledgements."""
        with self._enough:
            until = self._count + more
            assert self._enough.wait_for(lambda: self._count >= until, DEADLINE_S), "the load has ended"


def create_topic(client: LiveClient, known: Acknowledged, number: int) -> None:
    name = f"topic-{number}"
    (created,) = client.send(CreateTopicsRequest(topics=[topic(name, 1, 1)], timeout_ms=DEADLINE_S * 1000), 7).topics
    assert created.error_code == 0
    known.topics.append(name)


def set_retention(client: LiveClient, known: Acknowledged, number: int) -> None:
    change = change_configs((TOPIC, "orders", (SET, "retention.ms", str(known.retention_ms + 1))))
    assert client.send(change, 1).responses[0].error_code == 0
    known.retention_ms += 1


def allocate(client: LiveClient, known: Acknowledged, number: int) -> None:
    found = client.send(AllocateProducerIdsRequest(broker_id=1, broker_epoch=known.broker_epoch), 0)
    assert found.error_code == 0
    known.producer_ids.append(found.producer_id_start)


@contextmanager
def load(port: int, known: Acknowledged, numbers: Iterator[int]) -> Iterator[None]:
    """Write from several connections until the controller is gone."""

    def write(operation: Callable[[LiveClient, Acknowledged, int], None]) -> None:
        # The connection breaks with the process, within a request or between two.
        with suppress(OSError, AttributeError), closing(LiveClient(port)) as client:
            while True:
                operation(client, known, next(numbers))
                known.counted()

    threads = [threading.Thread(target=write, args=(each,)) for each in (create_topic, set_retention, allocate)]
    for thread in threads:
        thread.start()
    yield
    for thread in threads:
        thread.join(DEADLINE_S)
        assert not thread.is_alive()


def register(client: LiveClient) -> int:
    """Register and unfence broker 1, with a topic on it; return its epoch."""
    epoch: int = client.send(registration_request(broker_id=1, cluster_id=CLUSTER_ID), 4).broker_epoch
    beat = BrokerHeartbeatRequest(broker_id=1, broker_epoch=epoch, current_metadata_offset=1 << 40)
    assert client.send(beat, 2).is_fenced is False
    (created,) = client.send(CreateTopicsRequest(topics=[topic("orders", 1, 1)], timeout_ms=30_000), 7).topics
    assert created.error_code == 0
    return epoch


def check(client: LiveClient, known: Acknowledged, names: list[str]) -> None:
    """Compare the controller with what was acknowledged; of the topics, those of these names."""
    for begin in range(0, len(names), 1_000):
        again = [topic(name, 1, 1) for name in names[begin : begin + 1_000]]
        answers = client.send(CreateTopicsRequest(topics=again, validate_only=True, timeout_ms=30_000), 7).topics
        assert [each.name for each in answers if each.error_code != error_codes.TOPIC_ALREADY_EXISTS] == []
    resource = DescribeConfigsResource(
        resource_type=TOPIC, resource_name="orders", configuration_keys=["retention.ms"] if known.retention_ms else []
    )
    (described,) = client.send(DescribeConfigsRequest(resources=[resource]), 4).results
    values = [int(each.value) for each in described.configs if each.name == "retention.ms"]
    if known.retention_ms:
        # The last change may have been written, and not acknowledged.
        assert values[0] in (known.retention_ms, known.retention_ms + 1)
    allocate(client, known, 0)
    blocks = known.producer_ids
    assert all(after >= before + 1_000 for before, after in pairwise(blocks))


def test_what_was_acknowledged_is_there_after_every_kill(tmp_path: Path) -> None:
    rng = random.Random(20_261_123)
    options = (
        *("--session-timeout-ms", "3600000"),
        *("--metadata-log-max-record-bytes-between-snapshots", str(budget(4_000, 40_000))),
        *("--metadata-log-segment-bytes", str(budget(2_000, 20_000))),
        *("--metadata-max-retention-bytes", str(budget(8_000, 80_000))),
    )
    controller = MockraftController(tmp_path, CLUSTER_ID, options=options)
    known, numbers, checked = Acknowledged(), iter(range(1 << 40)), 0
    try:
        for number in range(KILLS):
            controller.start()
            if number % 5 == 4:
                # It is killed while it starts, too.
                with suppress(KafkaProcessError):
                    controller.wait(rng.random())
                controller.kill()
                continue
            controller.wait_until_running(DEADLINE_S)
            with closing(LiveClient(controller.port)) as client:
                if known.broker_epoch < 0:
                    known.broker_epoch = register(client)
                check(client, known, known.topics[checked:])
            checked = len(known.topics)
            with load(controller.port, known, numbers):
                known.wait_for(rng.randrange(1, OPERATIONS_MAX))
                controller.kill()
        controller.start()
        controller.wait_until_running(DEADLINE_S)
        with closing(LiveClient(controller.port)) as client:
            check(client, known, known.topics)
        assert controller.stop() == 0
        assert "Traceback" not in controller.whole_log
    finally:
        controller.kill()
    assert len(known.topics) > KILLS
    assert list((tmp_path / "data" / "__cluster_metadata-0").glob("*.checkpoint"))
