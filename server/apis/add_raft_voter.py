"""AddRaftVoter (80), versions 0-1: KIP-853; KIP-1186 (AckWhenCommitted).

Order of checks as in KafkaRaftClient.handleAddVoterRequest and AddVoterHandler: the new voter's versions are
requested, it must have caught up with the log as an observer, and then becomes a voter by a VotersRecord.
"""

from mockraft.kafka_api.api import Parked
from mockraft.kafka_api.authorization.acl_types import AclOperation
from mockraft.server.apis.api import Api, RequestContext
from mockraft.server.apis.raft_requests import (
    endpoints_of,
    listener_of,
    log_refusal,
    voter_change_error,
    voter_to_change,
    when_changed,
)
from mockraft.server.controller.controller import Controller
from mockraft.server.controller.result import ApiError
from mockraft.wire import error_codes
from mockraft.wire.messages.add_raft_voter_request import AddRaftVoterRequest
from mockraft.wire.messages.add_raft_voter_response import AddRaftVoterResponse


def handle(
    request: AddRaftVoterRequest, ctx: RequestContext, controller: Controller
) -> AddRaftVoterResponse | Parked[AddRaftVoterResponse]:
    """Answer once the new voters are committed, or in the log if AckWhenCommitted is false."""
    raft = controller.raft
    key = voter_to_change(request, controller, "Add")
    endpoints = endpoints_of(request.listeners)
    if listener_of(endpoints, raft) is None:
        named = ", ".join(f"ListenerName({name})={host}/<unresolved>:{port}" for name, host, port in endpoints)
        message = (
            f"Add voter request didn't include the endpoint (Endpoints(endpoints={{{named}}})) for the default listener"
            f" ListenerName({raft.config.controller_listener_name})"
        )
        raise ApiError(error_codes.INVALID_REQUEST, message)
    try:
        change = raft.add_voter(key, endpoints, request.ack_when_committed, ctx.now_ms)
    except ApiError as refused:
        log_refusal(controller, key, refused.error_code, f"not added as voter: {refused.message}", ctx.now_ms)
        raise
    return when_changed(change, AddRaftVoterResponse)


API = Api(
    AddRaftVoterRequest,
    AddRaftVoterResponse,
    handle,
    voter_change_error(AddRaftVoterResponse),
    forwardable=True,
    active_only=False,
    operation=AclOperation.ALTER,
)
