"""Examples for docs/pytest.md: the fixtures of the plugin."""

from collections.abc import Callable

import pytest
from mockraft import AwaitedController, BrokerState, SyncController, SyncQuorum, SyncSimulatedBroker


@pytest.mark.mockraft(session_timeout_ms=3000, brokers=2)
def test_fenced_broker_is_unfenced_by_its_next_heartbeat(mockraft: SyncController) -> None:
    since = mockraft.mark()
    mockraft.state.fence(1)

    mockraft.wait_for("BrokerHeartbeat", broker_id=1, since=since)

    assert [broker.fenced for broker in mockraft.state.brokers()] == [False, False]


async def test_awaits_with_asyncio(mockraft_async: AwaitedController) -> None:
    broker = await mockraft_async.start_broker(1)
    await mockraft_async.wait_for("BrokerHeartbeat", want_fence=False)
    assert broker.state is BrokerState.RUNNING


def test_broker_follows_a_failover(
    mockraft_quorum: SyncQuorum, mockraft_broker: Callable[..., SyncSimulatedBroker]
) -> None:
    broker = mockraft_broker(1, of=mockraft_quorum)
    assert mockraft_quorum.active == 3000

    mockraft_quorum.elect(3001)

    mockraft_quorum.wait_for("BrokerHeartbeat", broker_id=1, node=3001)
    assert broker.state is BrokerState.RUNNING
