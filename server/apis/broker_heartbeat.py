"""BrokerHeartbeat (63), versions 0-2: a broker reports liveness, its wishes and the state of its directories.

KIP-631, KIP-858 (offline directories, version 1), KIP-1066 (cordoned directories, version 2). Not implemented: a
heartbeat never waits in a queue, so REQUEST_TIMED_OUT is never returned.
"""

from mockraft.server.apis.api import Api, RequestContext
from mockraft.server.apis.repeat_rule import RepeatRule
from mockraft.server.controller.brokers.heartbeat import receive_heartbeat
from mockraft.server.controller.brokers.log_dirs import directories_cordoned
from mockraft.server.controller.controller import Controller
from mockraft.server.controller.security.acl_types import AclOperation
from mockraft.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from mockraft.wire.messages.broker_heartbeat_response import BrokerHeartbeatResponse


def handle(request: BrokerHeartbeatRequest, ctx: RequestContext, controller: Controller) -> BrokerHeartbeatResponse:
    """Return the broker's new state. ApiError STALE_BROKER_EPOCH."""
    reply = receive_heartbeat(controller, request, ctx.now_ms)
    return BrokerHeartbeatResponse(
        is_caught_up=reply.is_caught_up,
        is_fenced=reply.state.is_fenced,
        should_shut_down=reply.state.should_shut_down,
    )


def _subject(request: BrokerHeartbeatRequest, controller: Controller) -> tuple[int, int] | None:
    """Return broker id and epoch; None where the next equal heartbeat may write a record."""
    broker_id = request.broker_id
    registration = controller.image.cluster.brokers[broker_id]
    if (
        request.want_shut_down
        or controller.heartbeats.brokers[broker_id].shutdown_offset >= 0
        or request.offline_log_dirs  # what these two write depends on metadata.version too
        or directories_cordoned(controller, registration, request.cordoned_log_dirs)
    ):
        return None
    return broker_id, request.broker_epoch


def _state(controller: Controller, subject: tuple[int, int], offset: int) -> tuple[object, ...] | None:
    broker_id = subject[0]
    registration = controller.image.cluster.brokers.get(broker_id)
    state = controller.heartbeats.brokers.get(broker_id)
    if registration is None or state is None or controller.fenced_in_steps == broker_id:
        return None
    is_caught_up = offset >= registration.registration_offset
    return registration, state.fenced, state.shutdown_offset, is_caught_up, controller.epoch, controller.pending_offset


def _record(controller: Controller, subject: tuple[int, int], offset: int, now_ms: int) -> None:
    contacts_ms, heartbeats = controller.sessions.contacts_ms, controller.heartbeats
    if subject in contacts_ms:
        contacts_ms[subject] = now_ms
    else:
        controller.sessions.touch(*subject, now_ms)
    state = heartbeats.brokers[subject[0]]
    if state.metadata_offset != offset:
        heartbeats.touch(subject[0], state.fenced, offset)


def _unchanged(controller: Controller) -> tuple[object, dict[tuple[int, int], int]]:
    """Return what changes with every record, leadership, shutdown, offset and fencing, and the times of contact."""
    ends = controller.log.end_offset, controller.applied_offset, controller.pending_offset
    changes = controller.heartbeats.changes, controller.sessions.removed
    return (*ends, controller.fenced_in_steps, controller.epoch, *changes), controller.sessions.contacts_ms


API = Api(
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    handle,
    operation=AclOperation.CLUSTER_ACTION,
    repeats=RepeatRule(handle, _subject, _state, _record, ignores_offset=True, unchanged=_unchanged),
)
