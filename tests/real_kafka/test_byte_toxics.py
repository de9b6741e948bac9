"""A real broker whose connections to its controller are slow, sliced, silent and broken."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from mockraft import Controller, SyncController
from mockraft.kafka.processes import KafkaBroker, wait_until
from mockraft.server.stubs.faults.fault import Fault

from ..clients import consume, create_topic, produce

pytestmark = pytest.mark.real_kafka

SESSION_TIMEOUT_MS = 6_000


@pytest.fixture(scope="module")
def controller() -> Iterator[SyncController]:
    with Controller.sync(session_timeout_ms=SESSION_TIMEOUT_MS) as running:
        yield running


@pytest.fixture(scope="module")
def broker(controller: SyncController, start_brokers: Callable[..., dict[int, KafkaBroker]]) -> KafkaBroker:
    """A broker that found its controller through 300 ± 100 ms in pieces of 20 bytes, and runs."""
    faults = controller.double.script.faults
    both: dict[str, Any] = {"direction": "both", "seed": 1}
    slow = [
        controller.call(lambda: faults.add("latency", latency_ms=300, jitter_ms=100, **both)),
        controller.call(lambda: faults.add("slicer", average_size=20, size_variation=10, **both)),
    ]
    running = start_brokers(controller.bootstrap, controller.cluster_id, 1)[1]
    assert all(fault.fired for fault in slow)
    return running


def is_fenced(controller: SyncController) -> bool:
    return controller.call(lambda: controller.double.state.broker(1).fenced)


def add(controller: SyncController, kind: str, **params: Any) -> Fault:
    return controller.call(lambda: controller.double.script.faults.add(kind, **params))


def end(controller: SyncController, fault: Fault) -> None:
    controller.call(lambda: controller.double.script.faults.remove(fault.id))


def test_a_broker_serves_its_clients_through_latency_and_slices(
    controller: SyncController, broker: KafkaBroker
) -> None:
    create_topic(broker.bootstrap, "slowly", partitions=2)
    values = [f"value-{index}" for index in range(100)]
    produce(broker.bootstrap, "slowly", values)
    assert sorted(consume(broker.bootstrap, "slowly")) == sorted(values)
    assert not is_fenced(controller)
    controller.call(lambda: controller.double.script.faults.reset())


def test_broker_without_heartbeat_responses_is_fenced_and_returns(
    controller: SyncController, broker: KafkaBroker
) -> None:
    silent = add(controller, "half_open", client_id="1")
    wait_until(lambda: is_fenced(controller), 60, "the end of the broker's session")
    assert silent.fired
    end(controller, silent)
    wait_until(lambda: not is_fenced(controller), 60, "the broker to be unfenced")
    assert broker.running


def test_broker_with_reset_connections_reconnects(controller: SyncController, broker: KafkaBroker) -> None:
    add(controller, "reset_peer")
    wait_until(lambda: controller.call(lambda: controller.running.listener.connections() == []), 10, "no connection")
    controller.call(lambda: controller.double.script.faults.reset())
    wait_until(
        lambda: len(controller.call(lambda: controller.running.listener.connections())) >= 2, 30, "new connections"
    )
    assert not is_fenced(controller)
    assert broker.running


def test_broker_with_truncated_responses_reconnects(controller: SyncController, broker: KafkaBroker) -> None:
    cut = add(controller, "limit_data", bytes=700)
    wait_until(lambda: cut.fired >= 4, 60, "connections that are cut")
    end(controller, cut)
    heard = len(controller.journal.exchanges(1))
    wait_until(lambda: len(controller.journal.exchanges(1)) > heard + 5, 60, "the broker's fetches")
    assert broker.running
