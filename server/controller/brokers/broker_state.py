"""The lifecycle of one broker as the controller sees it: a pure function (Kafka's BrokerControlState, KIP-631)."""

from enum import Enum


class BrokerState(Enum):
    """State of a broker; SHUTDOWN_NOW only occurs in responses, the broker is then fenced."""

    FENCED = "fenced"
    UNFENCED = "unfenced"
    CONTROLLED_SHUTDOWN = "controlled shutdown"
    SHUTDOWN_NOW = "shutdown now"

    is_fenced: bool
    """Value of isFenced in the heartbeat response."""
    should_shut_down: bool
    """Value of shouldShutDown in the heartbeat response."""

    def __init__(self, name: str) -> None:
        self.is_fenced = name in ("fenced", "shutdown now")
        self.should_shut_down = name == "shutdown now"


def next_state(
    current: BrokerState,
    *,
    want_fence: bool,
    want_shut_down: bool,
    is_caught_up: bool,
    leads_any: bool,
    others_passed_shutdown: bool,
) -> BrokerState:
    """Return the state after a heartbeat (BrokerHeartbeatManager.calculateNextBrokerState).

    `is_caught_up`: the broker has read its own registration. `others_passed_shutdown`: every active broker has read
    the records of this broker's controlled shutdown.
    """
    if current is BrokerState.FENCED:
        if want_shut_down:
            return BrokerState.SHUTDOWN_NOW
        return BrokerState.UNFENCED if is_caught_up and not want_fence else BrokerState.FENCED
    if current is BrokerState.UNFENCED:
        if want_shut_down:
            return BrokerState.CONTROLLED_SHUTDOWN if leads_any and not want_fence else BrokerState.SHUTDOWN_NOW
        return BrokerState.FENCED if want_fence else BrokerState.UNFENCED
    if current is BrokerState.CONTROLLED_SHUTDOWN:
        return BrokerState.CONTROLLED_SHUTDOWN if leads_any or not others_passed_shutdown else BrokerState.SHUTDOWN_NOW
    return BrokerState.SHUTDOWN_NOW
