"""Examples for docs/presets.md."""

from mockraft import BrokerState, Controller, Quorum, SimulatedBroker


async def test_heartbeat_storm_delays_the_start() -> None:
    async with Controller() as controller:
        faults = controller.double.script.faults
        storm = faults.add("heartbeat_storm", broker_id=1)

        async with SimulatedBroker.joining(controller.bootstrap, controller.cluster_id, broker_id=1) as broker:
            await controller.wait_for("BrokerHeartbeat", 20)
            assert broker.state is BrokerState.STARTING
            assert storm.fired >= 20

            faults.remove(storm.id)
            await broker.wait_until(BrokerState.RUNNING)


async def test_resign_causes_a_failover() -> None:
    async with Quorum(3) as quorum:
        first = await quorum.wait_for_leader()
        quorum.double.script.faults.add("resign")

        await quorum.wait_until(lambda: quorum.active not in (None, first))
        assert quorum.state.quorum().leader_id == quorum.active
