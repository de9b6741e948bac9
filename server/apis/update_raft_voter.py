"""UpdateRaftVoter (82), version 0: KIP-853.

Order of checks as in KafkaRaftClient.handleUpdateVoterRequest and UpdateVoterHandler. At kraft.version 0 a voter's
report is kept in memory, for the upgrade of kraft.version.
"""

from mockraft.kafka_api.authorization.acl_types import AclOperation
from mockraft.server.apis.api import Api, RequestContext
from mockraft.server.apis.raft_requests import endpoints_of, leader_and_epoch, listener_of
from mockraft.server.controller.controller import Controller
from mockraft.server.controller.quorum.voter_set import NO_DIRECTORY_ID, ReplicaKey, VoterNode
from mockraft.server.raft import voter_changes
from mockraft.server.raft.raft import Raft
from mockraft.wire import error_codes
from mockraft.wire.messages.update_raft_voter_request import UpdateRaftVoterRequest
from mockraft.wire.messages.update_raft_voter_response import CurrentLeader, UpdateRaftVoterResponse


def handle(request: UpdateRaftVoterRequest, ctx: RequestContext, controller: Controller) -> UpdateRaftVoterResponse:
    """Update the voter's endpoints, and return the known leader."""
    raft = controller.raft
    if request.cluster_id not in (None, controller.config.cluster_id):
        code = error_codes.INCONSISTENT_CLUSTER_ID
    else:
        code = voter_changes.check_leads(raft, request.current_leader_epoch) or _update(raft, request, ctx.now_ms)
    leader = leader_and_epoch(CurrentLeader, raft)
    if raft.leader_address is not None:
        leader.host, leader.port = raft.leader_address.host, raft.leader_address.port
    return UpdateRaftVoterResponse(error_code=code, current_leader=leader)


def _update(raft: Raft, request: UpdateRaftVoterRequest, now_ms: int) -> int:
    key = ReplicaKey(request.voter_id, request.voter_directory_id)
    endpoints = endpoints_of(request.listeners)
    lowest = request.k_raft_version_feature.min_supported_version
    highest = request.k_raft_version_feature.max_supported_version
    is_voter = key.id >= 0 and key.directory_id != NO_DIRECTORY_ID
    if not is_voter or listener_of(endpoints, raft) is None or not 0 <= lowest <= highest:
        return error_codes.INVALID_REQUEST
    return voter_changes.update(raft, VoterNode(key, endpoints, lowest, highest), now_ms)


API = Api(
    UpdateRaftVoterRequest, UpdateRaftVoterResponse, handle, active_only=False, operation=AclOperation.CLUSTER_ACTION
)
