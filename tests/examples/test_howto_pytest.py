"""The fixtures of mockraft's pytest plugin, as a suite uses them."""

from collections.abc import Callable

import pytest
from mockraft import (
    AwaitedController,
    BrokerState,
    SyncController,
    SyncQuorum,
    SyncSimulatedBroker,
    VerificationError,
)


def test_a_broker_that_is_refused_tries_again(mockraft: SyncController) -> None:
    refused = mockraft.stub("BrokerRegistration", broker_id=1).once().inject_error("DUPLICATE_BROKER_REGISTRATION")

    broker = mockraft.start_broker(1)

    assert broker.state is BrokerState.RUNNING
    assert refused.call_count == 1
    mockraft.verify(2, "BrokerRegistration", broker_id=1)


@pytest.mark.mockraft(session_timeout_ms=2000, brokers=2)
def test_a_fenced_broker_comes_back_by_itself(mockraft: SyncController) -> None:
    since = mockraft.mark()
    mockraft.state.fence(1)

    mockraft.wait_for("BrokerHeartbeat", broker_id=1, since=since)

    assert [broker.fenced for broker in mockraft.state.brokers()] == [False, False]


async def test_with_asyncio(mockraft_async: AwaitedController) -> None:
    broker = await mockraft_async.start_broker(1)
    await mockraft_async.wait_for("BrokerHeartbeat", want_fence=False)
    assert broker.state is BrokerState.RUNNING


def test_a_broker_follows_a_failover(
    mockraft_quorum: SyncQuorum, mockraft_broker: Callable[..., SyncSimulatedBroker]
) -> None:
    broker = mockraft_broker(1, of=mockraft_quorum)
    assert mockraft_quorum.active == 3000

    mockraft_quorum.elect(3001)

    mockraft_quorum.wait_for("BrokerHeartbeat", broker_id=1, node=3001)
    assert broker.state is BrokerState.RUNNING


def test_what_a_failure_says(mockraft: SyncController) -> None:
    mockraft.start_broker(1)

    with pytest.raises(VerificationError) as failure:
        mockraft.verify(1, "BrokerRegistration", broker_id=2)

    assert "✗ brokerId: wanted 2, there was 1" in str(failure.value)
