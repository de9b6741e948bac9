"""Examples for docs/proposals.md."""

from pathlib import Path
from typing import Any

from mockraft import BrokerState, Controller, SimulatedBroker
from mockraft.double.proposals import overlay_of
from mockraft.wire import error_codes
from mockraft.wire.client import connect
from mockraft.wire.json_form import to_json

KIP_9999 = Path(__file__).with_name("kip-9999")


def test_creates_classes_from_specifications() -> None:
    overlay = overlay_of(schemas=[KIP_9999])
    assert overlay is not None

    module = overlay.module("UnregisterBrokerRequest")
    request = module.UnregisterBrokerRequest(broker_id=1, reason="moved")
    assert request.write(1).hex() == "00000001" + "066d6f766564" + "00"
    assert request.write(0).hex() == "00000001" + "00"
    assert to_json(request, 1) == {"brokerId": 1, "reason": "moved"}


async def test_controller_supports_own_messages() -> None:
    async with Controller(schemas=KIP_9999) as controller:
        connection = await connect(controller.host, controller.port, messages=controller.messages)
        assert connection.api_versions[64] == (0, 1)
        assert connection.api_versions[9000] == (0, 0)

        unregister: Any = controller.messages.by_name("UnregisterBrokerRequest")
        response = await connection.send(unregister(broker_id=1, reason="moved"))
        assert response.error_code == error_codes.BROKER_ID_NOT_REGISTERED
        assert response.freed_log_dirs == []

        describe: Any = controller.messages.by_name("DescribeDiskHealthRequest")
        assert (await connection.send(describe(broker_id=1))).healthy_percent == 100

        (exchange,) = controller.journal.exchanges(9000)
        assert (exchange.api, exchange.served_by) == ("DescribeDiskHealth", "schema defaults")
        assert controller.journal.counters()["exchanges"] == {
            "ApiVersions": 1,
            "UnregisterBroker": 1,
            "DescribeDiskHealth": 1,
        }
        await connection.close()


async def test_controller_supports_a_profile() -> None:
    async with Controller(profile="kip-1066") as controller:
        connection = await connect(controller.host, controller.port, messages=controller.messages)
        heartbeat: Any = controller.messages.by_name("BrokerHeartbeatRequest")
        assert heartbeat.max_version == 1
        stale = await connection.send(heartbeat(broker_id=1, cordoned_log_dirs=[b"a" * 16]))
        assert stale.error_code == error_codes.STALE_BROKER_EPOCH
        await connection.close()


async def test_simulated_broker_supports_a_profile() -> None:
    async with (
        Controller(profile="kip-858") as controller,
        SimulatedBroker.joining(
            controller.bootstrap, controller.cluster_id, 1, log_dir_paths=("/a", "/b"), messages=controller.messages
        ) as broker,
    ):
        await broker.wait_until(BrokerState.RUNNING)
        assert broker.fault is None
