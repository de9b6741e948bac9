"""The fixtures of mockraft's pytest plugin, as a suite uses them."""

import pytest
from mockraft import AwaitedController, BrokerState, SyncController
from mockraft.wire import api_keys


@pytest.mark.mockraft(session_timeout_ms=2000, brokers=1)
def test_a_broker_registers(mockraft: SyncController) -> None:
    assert mockraft.brokers[1].state is BrokerState.RUNNING

    (registration,) = mockraft.journal.exchanges(api_keys.BROKER_REGISTRATION)
    assert registration.request.broker_id == 1


async def test_with_asyncio(mockraft_async: AwaitedController) -> None:
    broker = await mockraft_async.start_broker(1)
    assert broker.state is BrokerState.RUNNING
