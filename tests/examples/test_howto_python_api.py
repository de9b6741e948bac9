"""Examples for docs/python-api.md."""

import unittest
from pathlib import Path

import pytest
from mockraft import BrokerState, Controller, Quorum, SyncController, stub
from mockraft.wire.client import DisconnectedError
from mockraft.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from mockraft.wire.messages.broker_registration_request import BrokerRegistrationRequest


def test_stubs_replace_responses() -> None:
    with Controller.sync() as controller:
        moved = controller.stub("BrokerHeartbeat", broker_id=1).times(2).inject_error("NOT_CONTROLLER")
        slow = controller.add(stub("BrokerHeartbeat", current_metadata_offset__gte=5).delay_on(20))

        answers = [controller.ask(BrokerHeartbeatRequest(broker_id=1)) for _ in range(3)]
        controller.ask(BrokerHeartbeatRequest(broker_id=2, current_metadata_offset=7))

        assert [answer.error_code for answer in answers] == [41, 41, 77]
        assert (moved.call_count, slow.call_count) == (2, 1)
        controller.assert_all_stubs_used()


def test_function_provides_responses() -> None:
    def answer(request: BrokerHeartbeatRequest) -> dict[str, object] | str:
        return {"isCaughtUp": True} if request.want_fence else "STALE_BROKER_EPOCH"

    with Controller.sync() as controller, controller.stubbed(stub("BrokerHeartbeat").answers(answer)):
        assert controller.ask(BrokerHeartbeatRequest(broker_id=1, want_fence=True)).is_caught_up
        assert controller.ask(BrokerHeartbeatRequest(broker_id=1)).error_code == 77


def test_faults_apply_to_connections() -> None:
    with Controller.sync(brokers=1) as controller:
        with controller.faults.half_open(client_id="admin"), pytest.raises(DisconnectedError):
            controller.ask(BrokerHeartbeatRequest(broker_id=1), client_id="admin", timeout_s=0.05)

        controller.faults.add("latency", latency_ms=20, jitter_ms=5, broker_id=1)
        controller.wait_for("BrokerHeartbeat", broker_id=1, since=controller.mark())
        controller.assert_all_faults_fired()


def test_verifies_and_waits_for_requests() -> None:
    with Controller.sync(brokers=1) as controller:
        (registration,) = controller.verify(1, BrokerRegistrationRequest, broker_id=1)
        assert registration.response.error_code == 0

        controller.verify(at_least=2, match="BrokerHeartbeat")
        before = controller.mark()
        controller.start_broker(2)
        controller.wait_for("BrokerHeartbeat", broker_id=2, want_fence=False, since=before)


def test_changes_and_saves_state(tmp_path: Path) -> None:
    with Controller.sync(brokers=1) as controller:
        controller.state.fence(1)
        types = [record.type for record in controller.state.metadata_log()]
        assert types[-1] == "BrokerRegistrationChangeRecord"

        controller.state.save(tmp_path / "one-broker.state")

    with Controller.sync(state=tmp_path / "one-broker.state") as controller:
        assert [broker.broker_id for broker in controller.state.brokers()] == [1]


def test_virtual_clock_ends_a_session() -> None:
    with Controller.sync(clock="virtual", session_timeout_ms=9000) as controller:
        controller.start_broker(1)
        controller.brokers[1].kill()

        controller.advance(9000 + 9000 // 8 + 1)

        assert controller.state.broker(1).fenced


async def test_stubs_with_asyncio() -> None:
    async with Controller() as controller:
        refused = controller.stub("BrokerRegistration").once().inject_error("DUPLICATE_BROKER_REGISTRATION")
        broker = await controller.start_broker(1)
        assert broker.state is BrokerState.RUNNING
        assert refused.called
        await controller.wait_for("BrokerHeartbeat", want_fence=False)


def test_quorum_shares_stubs() -> None:
    with Quorum.sync(3) as quorum:
        deaf = quorum.stub("BrokerRegistration", node=3000).disconnect_on()
        with pytest.raises(DisconnectedError):
            quorum.ask(BrokerRegistrationRequest(broker_id=1), node=3000)
        assert deaf.called


class TestBroker(unittest.TestCase):
    controller: SyncController

    def setUp(self) -> None:
        self.controller = self.enterContext(Controller.sync())

    def test_it_registers(self) -> None:
        self.controller.start_broker(1)
        self.controller.verify(1, "BrokerRegistration", broker_id=1)
