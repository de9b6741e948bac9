"""Real brokers on controllers with stubbed misbehaviour."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic
from mockraft import Controller, Stub, SyncController, stub
from mockraft.kafka.processes import KafkaBroker, wait_until
from mockraft.wire import api_keys

pytestmark = pytest.mark.real_kafka


def test_a_real_broker_is_refused_twice_registers_then_and_survives_lost_and_unknown_things(tmp_path: Path) -> None:
    with Controller.sync(session_timeout_ms=3_000) as controller:
        rack = controller._controller.double.script.stubs

        def add(*stubs: Stub) -> list[Stub]:
            return controller.call(lambda: [rack.add(each) for each in stubs])

        refused, strange, lost = add(
            stub("BrokerRegistration", broker_id=1).times(2).inject_error("UNKNOWN_SERVER_ERROR"),
            stub("ApiVersions").unknown_tagged_field(9000, b"nobody knows this"),
            stub("BrokerHeartbeat", broker_id=1).on_call(4).disconnect_on(),
        )
        broker = KafkaBroker(1, tmp_path / "broker-1", controller.cluster_id, controller.bootstrap)
        try:
            broker.format()
            broker.start()
            broker.wait_until_running()
            assert wait_until(lambda: lost.called, 30, "a heartbeat that is cut off")
            asked = controller.call(lambda: controller.journal.exchanges(api_keys.BROKER_REGISTRATION))
            assert [exchange.response.error_code for exchange in asked] == [-1, -1, 0]
            assert [exchange.served_by for exchange in asked] == [f"stub {refused.id}"] * 2 + ["controller"]
            assert strange.called
            beats = controller.call(lambda: controller.journal.exchanges(api_keys.BROKER_HEARTBEAT))
            cut = next(exchange for exchange in beats if exchange.matched == lost.id)
            assert (cut.reason, cut.response) == (f"disconnected (stub {lost.id})", None)
            assert wait_until(lambda: _beats(controller) > len(beats), 30, "the next heartbeat")
            forwarded = add(stub("CreateTopics", broker_id=1).once().inject_error("POLICY_VIOLATION", "not today"))[0]
            admin = AdminClient({"bootstrap.servers": broker.bootstrap})
            with pytest.raises(KafkaException, match="not today"):
                admin.create_topics([NewTopic("orders", 1)])["orders"].result(30)
            admin.create_topics([NewTopic("orders", 1)])["orders"].result(30)
            assert forwarded.call_count == 1
            assert broker.stop() == 143
        finally:
            broker.kill()


def _beats(controller: SyncController) -> int:
    return len(controller.call(lambda: controller.journal.exchanges(api_keys.BROKER_HEARTBEAT)))
