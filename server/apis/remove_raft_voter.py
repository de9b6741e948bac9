"""RemoveRaftVoter (81), version 0: KIP-853.

Order of checks as in KafkaRaftClient.handleRemoveVoterRequest and RemoveVoterHandler. The last voter is never removed:
the response is VOTER_NOT_FOUND. A removed leader resigns once that is committed.
"""

from mockraft.kafka_api.api import Parked
from mockraft.kafka_api.authorization.acl_types import AclOperation
from mockraft.server.apis.api import Api, RequestContext
from mockraft.server.apis.raft_requests import voter_change_error, voter_to_change, when_changed
from mockraft.server.controller.controller import Controller
from mockraft.server.raft import voter_changes
from mockraft.wire.messages.remove_raft_voter_request import RemoveRaftVoterRequest
from mockraft.wire.messages.remove_raft_voter_response import RemoveRaftVoterResponse


def handle(
    request: RemoveRaftVoterRequest, ctx: RequestContext, controller: Controller
) -> RemoveRaftVoterResponse | Parked[RemoveRaftVoterResponse]:
    """Answer once the remaining voters are committed."""
    key = voter_to_change(request, controller, "Remove")
    change = voter_changes.remove(controller.raft, key, ctx.now_ms)
    return when_changed(change, RemoveRaftVoterResponse)


API = Api(
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
    handle,
    voter_change_error(RemoveRaftVoterResponse),
    forwardable=True,
    active_only=False,
    operation=AclOperation.ALTER,
)
