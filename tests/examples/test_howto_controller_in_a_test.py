"""Examples for docs/controller-in-a-test.md."""

from mockraft import BrokerState, Controller, SimulatedBroker
from mockraft.wire import api_keys


async def test_broker_registers_and_is_unfenced() -> None:
    async with (
        Controller(session_timeout_ms=6000) as controller,
        SimulatedBroker.joining(controller.bootstrap, controller.cluster_id, broker_id=1) as broker,
    ):
        await broker.wait_until(BrokerState.RUNNING)

        (registration,) = controller.journal.exchanges(api_keys.BROKER_REGISTRATION)
        assert registration.request.broker_id == 1
        assert registration.response.error_code == 0
        assert not controller.running.controller.image.cluster.brokers[1].fenced


def test_synchronous_controller_runs_in_a_thread() -> None:
    with Controller.sync(metadata_version=21) as controller:
        image = controller.call(lambda: controller.running.controller.image)
        assert image.features["metadata.version"] == 21
        assert controller.bootstrap == f"127.0.0.1:{controller.port}"
