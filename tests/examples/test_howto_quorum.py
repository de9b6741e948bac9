"""A quorum of three in a test: who leads, who dies, who is cut off, and that nobody loses anything."""

from mockraft import BrokerState, Quorum, SimulatedBroker


async def test_a_failover_keeps_what_was_acknowledged() -> None:
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


def test_a_script_says_who_leads() -> None:
    with Quorum.sync(3) as quorum:
        quorum.elect(3002)
        assert quorum.active == 3002

        quorum.partition(3002)
        quorum.elect(3001)
        quorum.heal()
        assert quorum.active == 3001
