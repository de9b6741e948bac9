"""UpdateRaftVoter (82), version 0: KIP-853.

Order of checks as in KafkaRaftClient.handleUpdateVoterRequest and UpdateVoterHandler. At kraft.version 0 a voter's
report is kept in memory, for the upgrade of kraft.version.
"""

from mockraft.kafka_api.api import Parked
from mockraft.kafka_api.authorization.acl_types import AclOperation
from mockraft.releases import Behaviour
from mockraft.server.apis.api import Api, RequestContext
from mockraft.server.apis.raft_requests import endpoints_of, leader_and_epoch, when_changed
from mockraft.server.controller.controller import Controller
from mockraft.server.controller.quorum.voter_set import NO_DIRECTORY_ID, ReplicaKey, VoterNode
from mockraft.server.controller.result import ApiError
from mockraft.server.raft import voter_changes
from mockraft.wire import error_codes
from mockraft.wire.messages.update_raft_voter_request import UpdateRaftVoterRequest
from mockraft.wire.messages.update_raft_voter_response import CurrentLeader, UpdateRaftVoterResponse


def handle(
    request: UpdateRaftVoterRequest, ctx: RequestContext, controller: Controller
) -> UpdateRaftVoterResponse | Parked[UpdateRaftVoterResponse]:
    """Update the voter's endpoints, since 4.5 once it answered ApiVersions there, and return the known leader."""
    raft = controller.raft

    def answered(error_code: int, error_message: str | None = None) -> UpdateRaftVoterResponse:
        leader = leader_and_epoch(CurrentLeader, raft)
        if raft.leader_address is not None:
            leader.host, leader.port = raft.leader_address.host, raft.leader_address.port
        return UpdateRaftVoterResponse(error_code=error_code, current_leader=leader)

    if request.cluster_id not in (None, controller.config.cluster_id):
        return answered(error_codes.INCONSISTENT_CLUSTER_ID)
    if refused := voter_changes.check_leads(raft, request.current_leader_epoch):
        return answered(refused)
    try:
        node = _updated(request)
        if controller.has(Behaviour.UPDATED_VOTERS_ARE_ASKED):
            return when_changed(raft.update_voter(node, ctx.now_ms), answered)
        return answered(voter_changes.update(raft, node, ctx.now_ms))
    except ApiError as wrong:
        return answered(wrong.error_code)


def _updated(request: UpdateRaftVoterRequest) -> VoterNode:
    """Return the voter in a request. ApiError INVALID_REQUEST if it is invalid."""
    key = ReplicaKey(request.voter_id, request.voter_directory_id)
    endpoints = endpoints_of(request.listeners)
    lowest = request.k_raft_version_feature.min_supported_version
    highest = request.k_raft_version_feature.max_supported_version
    if key.id < 0 or key.directory_id == NO_DIRECTORY_ID or not 0 <= lowest <= highest:
        raise ApiError(error_codes.INVALID_REQUEST)
    return VoterNode(key, endpoints, lowest, highest)


API = Api(
    UpdateRaftVoterRequest, UpdateRaftVoterResponse, handle, active_only=False, operation=AclOperation.CLUSTER_ACTION
)
