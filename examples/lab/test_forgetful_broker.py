"""A simulated broker with a bug: it forgets the next heartbeat if an answer does not come."""

import pytest
from mockraft import SyncController
from mockraft.brokers.heartbeats import Heartbeats


@pytest.fixture(autouse=True)
def bug(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Heartbeats, "_not_answered", lambda heartbeats, error: None)


@pytest.mark.mockraft(session_timeout_ms=1_000)
def test_broker_keeps_its_session(mockraft: SyncController) -> None:
    mockraft.start_broker(1, session_timeout_ms=1_000, timeout_s=3)
    mockraft.wait_for("BrokerHeartbeat", n=12, broker_id=1, timeout_s=5)
    assert not mockraft.state.broker(1).fenced
