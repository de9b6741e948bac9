"""RemoveRaftVoter (81), version 0: KIP-853.

Order of checks as in KafkaRaftClient.handleRemoveVoterRequest and RemoveVoterHandler. The last voter is never removed:
to that VOTER_NOT_FOUND is the answer. A leader that is removed resigns once that is committed.
"""

from typing import Any

from mockraft.server.apis.api import Api, RequestContext
from mockraft.server.apis.raft_requests import check_cluster_id, refusal_text, when_changed
from mockraft.server.controller.acl_types import AclOperation
from mockraft.server.controller.controller import Controller
from mockraft.server.controller.quorum import NO_DIRECTORY_ID, ReplicaKey
from mockraft.server.controller.result import ApiError
from mockraft.server.raft import voter_changes
from mockraft.wire import error_codes
from mockraft.wire.messages.remove_raft_voter_request import RemoveRaftVoterRequest
from mockraft.wire.messages.remove_raft_voter_response import RemoveRaftVoterResponse


def handle(request: Any, ctx: RequestContext, controller: Controller) -> Any:
    """The outcome, once the voters that are left are committed."""
    check_cluster_id(request, controller)
    raft = controller.raft
    refused = voter_changes.check_leads(raft, raft.epoch)
    if refused:
        return RemoveRaftVoterResponse(error_code=refused)
    key = ReplicaKey(request.voter_id, request.voter_directory_id)
    if key.id < 0 or key.directory_id == NO_DIRECTORY_ID:
        raise ApiError(error_codes.INVALID_REQUEST, "Remove voter request didn't include a valid voter")
    change = voter_changes.remove(raft, key, ctx.now_ms)
    return when_changed(change, _response, change.deadline_ms)


def error(_request: Any, error_code: int, message: str | None) -> RemoveRaftVoterResponse:
    """Code and message."""
    return _response(error_code, refusal_text(error_code, message))


def _response(error_code: int, message: str | None) -> RemoveRaftVoterResponse:
    return RemoveRaftVoterResponse(error_code=error_code, error_message=message)


API = Api(
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
    handle,
    0,
    0,
    error,
    forwardable=True,
    active_only=False,
    operation=AclOperation.ALTER,
)
