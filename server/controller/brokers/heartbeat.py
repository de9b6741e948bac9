"""Processing of one heartbeat (ReplicationControlManager.processBrokerHeartbeat; KIP-631, KIP-858, KIP-1066).

Three steps: the contact is recorded before anything else, the records are generated from the current state, and after
they are written the offset of a controlled shutdown is recorded. `receive_heartbeat` keeps this order.
"""

from typing import TYPE_CHECKING, Final, NamedTuple

from mockraft.releases import Behaviour
from mockraft.server.controller.brokers import fencing
from mockraft.server.controller.brokers.heartbeat_states import BrokerState, next_state
from mockraft.server.controller.brokers.log_dirs import (
    check_registered,
    directories_cordoned,
    directories_offline,
    waits_for_assignments,
)
from mockraft.server.controller.result import ControllerResult
from mockraft.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from mockraft.wire.metadata_log_frame import RecordAt

if TYPE_CHECKING:
    from mockraft.server.controller.context import ControllerContext


_CAUSES: Final = {
    BrokerState.FENCED: "the broker's own request",
    BrokerState.UNFENCED: "the broker is caught up",
    BrokerState.CONTROLLED_SHUTDOWN: "the broker's own request",
    BrokerState.SHUTDOWN_NOW: "the broker shuts down",
}
"""Why a heartbeat leads to a state."""


class HeartbeatReply(NamedTuple):
    """The broker's new state, and whether it has read its own registration."""

    state: BrokerState
    is_caught_up: bool


def receive_heartbeat(controller: "ControllerContext", request: BrokerHeartbeatRequest, now_ms: int) -> HeartbeatReply:
    """Process one heartbeat. ApiError STALE_BROKER_EPOCH for a broker or an epoch that is not registered."""
    while controller.fenced_in_steps == request.broker_id:  # as in Kafka, which fences in one turn, before this one
        controller.continue_steps(now_ms)
    controller.sessions.touch(request.broker_id, request.broker_epoch, now_ms)
    reply = controller.commit(heartbeat(controller, request), now_ms)
    if reply.state is BrokerState.CONTROLLED_SHUTDOWN:
        controller.heartbeats.enter_controlled_shutdown(request.broker_id, controller.log.end_offset - 1)
    return reply


def heartbeat(controller: "ControllerContext", request: BrokerHeartbeatRequest) -> ControllerResult[HeartbeatReply]:
    """Generate the records and the response: state changes first, then failed directories, then cordoned ones."""
    broker_id = request.broker_id
    registration = controller.check_broker_epoch(broker_id, request.broker_epoch)
    heartbeats = controller.heartbeats
    current = heartbeats.brokers[broker_id].current
    is_caught_up = request.current_metadata_offset >= registration.registration_offset
    want_fence = request.want_fence
    if request.offline_log_dirs and controller.has(Behaviour.UNKNOWN_OFFLINE_DIR_FAILS_THE_HEARTBEAT):
        check_registered(registration, request.offline_log_dirs)
    if current is BrokerState.FENCED and controller.has(Behaviour.BROKERS_WAIT_FOR_THEIR_ASSIGNMENTS):
        want_fence = want_fence or waits_for_assignments(controller, registration)
    shuts_down = current is BrokerState.CONTROLLED_SHUTDOWN
    state = next_state(
        current,
        want_fence=want_fence,
        want_shut_down=request.want_shut_down,
        is_caught_up=is_caught_up,
        leads_any=(shuts_down or request.want_shut_down) and controller.image.topics.index.leads_any(broker_id),
        others_passed_shutdown=shuts_down and heartbeats.others_passed_shutdown(broker_id),
    )
    records = [] if state is current else _state_records(controller, broker_id, state)
    heartbeats.touch(broker_id, state.is_fenced, request.current_metadata_offset)
    if request.offline_log_dirs and controller.has(Behaviour.DIRECTORY_ASSIGNMENT):
        records += directories_offline(controller, broker_id, request.offline_log_dirs)
    cordoned = directories_cordoned(controller, registration, request.cordoned_log_dirs)
    if cordoned and controller.has(Behaviour.CORDONED_LOG_DIRS):
        records += cordoned
    reply = HeartbeatReply(state, is_caught_up)
    if not records:
        return ControllerResult(records, reply)
    change = "log directories changed" if state is current else f"{current.value} to {state.value}"
    return ControllerResult(records, reply, f"broker {broker_id}: {change}", atomic=False, cause=_CAUSES[state])


def fence_one_stale_broker(controller: "ControllerContext", now_ms: int) -> ControllerResult[bool]:
    """Fence the broker whose session expired first; return True if there may be another (maybeFenceOneStaleBroker).

    One at a time, so that the next one sees the result of the last. A session of an old epoch is only removed.
    """
    session = None if controller.fenced_in_steps is not None else controller.sessions.pop_expired(now_ms)
    if session is None:
        return ControllerResult([], False)
    broker_id = session.broker_id
    registration = controller.image.cluster.brokers.get(broker_id)
    if registration is None or registration.broker_epoch != session.broker_epoch:
        return ControllerResult([], True)
    records, rest = fencing.fence(controller, broker_id).in_steps()
    reason, contact_ms = "session ended", session.last_contact_ms
    silence = ""
    if contact_ms is not None:
        reason, silence = "session timed out", controller.why_silent(broker_id, contact_ms)
    return ControllerResult(
        records,
        rest is None,
        f"broker {broker_id}: {reason}",
        atomic=False,
        cause=f"{reason}; {silence}" if silence else reason,
        rest=rest,
    )


def _state_records(controller: "ControllerContext", broker_id: int, state: BrokerState) -> list[RecordAt]:
    if state.is_fenced:
        return fencing.fence(controller, broker_id).records()
    if state is BrokerState.UNFENCED:
        return fencing.unfence(controller, broker_id)
    return fencing.enter_controlled_shutdown(controller, broker_id)
