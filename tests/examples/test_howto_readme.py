"""Example for README.md and docs/pytest.md."""

from mockraft import BrokerState, SyncController


def test_broker_retries_after_refused_registration(mockraft: SyncController) -> None:
    refused = mockraft.stub("BrokerRegistration", broker_id=1).once().inject_error("DUPLICATE_BROKER_REGISTRATION")

    broker = mockraft.start_broker(1)

    assert broker.state is BrokerState.RUNNING
    assert refused.call_count == 1
    mockraft.verify(2, "BrokerRegistration", broker_id=1)
