"""Simulated brokers in a test's own process: with asyncio, without, and beside the controller that they are on."""

import mockraft
import pytest
from mockraft import BrokerState, Controller, SimulatedBroker, SyncSimulatedBroker
from mockraft.brokers.lifecycle import End


def test_a_plain_test_has_a_broker_in_a_thread() -> None:
    with (
        Controller.sync() as controller,
        SimulatedBroker.sync(controller.bootstrap, controller.cluster_id, 1, rack="r1") as broker,
    ):
        broker.wait_until(BrokerState.RUNNING)
        assert (broker.broker_id, broker.state, broker.epitaph) == (1, BrokerState.RUNNING, "")
        registered = controller.call(lambda: controller.running.controller.image.cluster.brokers[1])
        assert (registered.fenced, registered.rack) == (False, "r1")
        broker.shut_down()
        assert broker.state is BrokerState.SHUTTING_DOWN
        assert broker.epitaph == "the controller granted controlled shutdown"


def test_a_killed_broker_says_nothing_to_its_controller() -> None:
    with Controller.sync() as controller:
        with SimulatedBroker.sync(controller.bootstrap, controller.cluster_id, 1) as broker:
            broker.wait_until(BrokerState.RUNNING)
            broker.kill()
            assert broker.epitaph == "told to stop"
        assert not controller.call(lambda: controller.running.controller.image.cluster.brokers[1].fenced)


async def test_a_controller_has_brokers_that_run_when_its_block_begins() -> None:
    async with Controller(brokers=3) as controller:
        assert {n: broker.state for n, broker in controller.brokers.items()} == dict.fromkeys(
            (1, 2, 3), BrokerState.RUNNING
        )
        brokers = list(controller.brokers.values())
        fourth = await controller.start_broker(4, rack="r4")
        assert controller.running.controller.image.cluster.brokers[4].rack == "r4"
    assert {broker.end for broker in (*brokers, fourth)} == {End.GRANTED}


def test_a_plain_test_has_them_as_well() -> None:
    with Controller.sync(brokers=2, session_timeout_ms=500) as controller:
        assert list(controller.brokers) == [1, 2]
        controller.brokers[2].kill()
        again = controller.start_broker(2)
        assert isinstance(again, SyncSimulatedBroker)
        assert again.state is BrokerState.RUNNING


async def test_a_broker_that_runs_is_not_started_twice() -> None:
    async with Controller(brokers=1) as controller:
        with pytest.raises(RuntimeError, match="broker 1 runs already"):
            await controller.start_broker(1)


async def test_the_same_seed_gives_the_same_brokers() -> None:
    incarnations = []
    for _ in range(2):
        async with Controller(brokers=2, seed=7) as controller:
            incarnations.append([broker.config.incarnation_id for broker in controller.brokers.values()])
    assert incarnations[0] == incarnations[1]


def test_the_package_has_them_by_name() -> None:
    assert {"SimulatedBroker", "SyncSimulatedBroker"} <= set(dir(mockraft))
