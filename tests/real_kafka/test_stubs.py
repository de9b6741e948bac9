"""Real brokers on controllers with stubbed misbehaviour, and on connections that are slow, silent or broken."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic
from mockraft import Controller, FaultKind, Stub, SyncController, stub
from mockraft.kafka.processes import KafkaBroker, wait_until
from mockraft.server.stubs.faults.fault import Fault
from mockraft.wire import api_keys

from ..clients import consume, create_topic, produce
from .running import running

pytestmark = pytest.mark.real_kafka


def test_a_real_broker_is_refused_twice_registers_then_and_survives_lost_and_unknown_things(tmp_path: Path) -> None:
    with Controller.sync(session_timeout_ms=3_000) as controller:
        rack = controller.inside.script.stubs

        def add(*stubs: Stub) -> list[Stub]:
            return controller.call(lambda: [rack.add(each) for each in stubs])

        refused, strange, lost = add(
            stub("BrokerRegistration", broker_id=1).times(2).inject_error("UNKNOWN_SERVER_ERROR"),
            stub("ApiVersions").unknown_tagged_field(9000, b"nobody knows this"),
            stub("BrokerHeartbeat", broker_id=1).on_call(4).disconnect_on(),
        )
        with running(KafkaBroker(1, tmp_path / "broker-1", controller.cluster_id, controller.bootstrap)) as broker:
            assert wait_until(lambda: lost.called, 60, "a heartbeat that is cut off")
            asked = controller.call(lambda: controller.journal.exchanges(api_keys.BROKER_REGISTRATION))
            assert [exchange.response.error_code for exchange in asked] == [-1, -1, 0]
            assert [exchange.served_by for exchange in asked] == [f"stub {refused.id}"] * 2 + ["controller"]
            assert strange.called
            beats = controller.call(lambda: controller.journal.exchanges(api_keys.BROKER_HEARTBEAT))
            cut = next(exchange for exchange in beats if exchange.matched == lost.id)
            assert (cut.reason, cut.response) == (f"disconnected (stub {lost.id})", None)
            assert wait_until(lambda: _beats(controller) > len(beats), 60, "the next heartbeat")
            forwarded = add(stub("CreateTopics", broker_id=1).once().inject_error("POLICY_VIOLATION", "not today"))[0]
            admin = AdminClient({"bootstrap.servers": broker.bootstrap})
            with pytest.raises(KafkaException, match="not today"):
                admin.create_topics([NewTopic("orders", 1)])["orders"].result(30)
            admin.create_topics([NewTopic("orders", 1)])["orders"].result(30)
            assert forwarded.call_count == 1
            assert broker.stop() == 143


def _beats(controller: SyncController) -> int:
    return len(controller.call(lambda: controller.journal.exchanges(api_keys.BROKER_HEARTBEAT)))


SESSION_TIMEOUT_MS = 6_000


@pytest.fixture(scope="module")
def controller() -> Iterator[SyncController]:
    with Controller.sync(session_timeout_ms=SESSION_TIMEOUT_MS) as running:
        yield running


@pytest.fixture(scope="module")
def broker(controller: SyncController, start_brokers: Callable[..., dict[int, KafkaBroker]]) -> KafkaBroker:
    """A broker that found its controller through 300 ± 100 ms in pieces of 20 bytes, and runs."""
    faults = controller.inside.script.faults
    both: dict[str, Any] = {"direction": "both", "seed": 1}
    slow = [
        controller.call(lambda: faults.add("latency", latency_ms=300, jitter_ms=100, **both)),
        controller.call(lambda: faults.add("slicer", average_size=20, size_variation=10, **both)),
    ]
    running = start_brokers(controller.bootstrap, controller.cluster_id, 1)[1]
    assert all(fault.fired for fault in slow)
    return running


def is_fenced(controller: SyncController) -> bool:
    return controller.call(lambda: controller.state.broker(1).fenced)


def add(controller: SyncController, kind: FaultKind, **params: Any) -> Fault:
    return controller.faults.add(kind, **params).fault


def end(controller: SyncController, fault: Fault) -> None:
    controller.faults.remove(fault.id)


def test_a_broker_serves_its_clients_through_latency_and_slices(
    controller: SyncController, broker: KafkaBroker
) -> None:
    create_topic(broker.bootstrap, "slowly", partitions=2)
    values = [f"value-{index}" for index in range(100)]
    produce(broker.bootstrap, "slowly", values)
    assert sorted(consume(broker.bootstrap, "slowly")) == sorted(values)
    assert not is_fenced(controller)
    controller.faults.reset()


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
    wait_until(lambda: controller.call(lambda: controller.running.listener.connections() == []), 60, "no connection")
    controller.faults.reset()
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
