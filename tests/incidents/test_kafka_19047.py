"""KAFKA-19047: a broker that was stopped in order and started at once waits for the end of its own session."""

import pytest
from mockraft import Controller
from mockraft.wire import error_codes
from mockraft.wire.messages.broker_registration_request import BrokerRegistrationRequest


@pytest.mark.parametrize(("release", "refusals"), [("3.9", 0), ("4.0", 5), ("4.4", 5)])
def test_restarted_broker_is_taken_for_a_second_one(release: str, refusals: int) -> None:
    with Controller.sync(release=release, clock="virtual", session_timeout_ms=9_000) as controller:
        controller.start_broker(1)
        controller.brokers[1].shut_down()
        stopped_ms = controller.now_ms

        controller.start_broker(1, wait=None)
        while controller.state.broker(1).fenced:
            controller.advance(100)

        _, *again = controller.requests(BrokerRegistrationRequest, broker_id=1)
        codes = [exchange.response.error_code for exchange in again]
        assert codes == [error_codes.DUPLICATE_BROKER_REGISTRATION] * refusals + [error_codes.NONE]
        assert (controller.now_ms - stopped_ms > 9_000) is (refusals > 0)
