"""Examples for docs/quorum.md."""

from mockraft import BrokerState, Quorum, SimulatedBroker


async def test_failover_keeps_acknowledged_records() -> None:
    async with (
        Quorum(3) as quorum,
        SimulatedBroker.joining(quorum.bootstrap, quorum.cluster_id, broker_id=1) as broker,
    ):
        await broker.wait_until(BrokerState.RUNNING)

        await quorum.kill(3000)
        leader = await quorum.wait_for_leader()

        assert leader in (3001, 3002)
        assert 1 in quorum.node(leader).controller.image.cluster.brokers
        await quorum.restart(3000)


def test_elects_and_partitions_nodes() -> None:
    with Quorum.sync(3) as quorum:
        quorum.elect(3002)
        assert quorum.active == 3002

        quorum.partition(3002)
        quorum.elect(3001)
        quorum.heal()
        assert quorum.active == 3001
