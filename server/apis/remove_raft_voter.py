"""RemoveRaftVoter (81), version 0: KIP-853.

This quorum has one voter, and Kafka never removes the last one: to it VOTER_NOT_FOUND is the answer, even when the
voter that is named is there (RemoveVoterHandler, VoterSet.removeVoter).
"""

from typing import Any

from mockraft.server.apis.api import Api, RequestContext
from mockraft.server.controller.acl_types import AclOperation
from mockraft.server.controller.controller import Controller
from mockraft.server.controller.result import ApiError
from mockraft.wire import error_codes, uuids
from mockraft.wire.messages.remove_raft_voter_request import RemoveRaftVoterRequest
from mockraft.wire.messages.remove_raft_voter_response import RemoveRaftVoterResponse

_NO_DIRECTORY_ID = bytes(16)


def handle(request: Any, ctx: RequestContext, controller: Controller) -> RemoveRaftVoterResponse:
    """Always an ApiError: INCONSISTENT_CLUSTER_ID, INVALID_REQUEST, UNSUPPORTED_VERSION or VOTER_NOT_FOUND."""
    config, log = controller.config, controller.log
    if request.cluster_id not in (None, config.cluster_id):
        told = f'The given id "{request.cluster_id}" doesn\'t match the cluster id "{config.cluster_id}"'
        raise ApiError(error_codes.INCONSISTENT_CLUSTER_ID, told)
    if request.voter_id < 0 or request.voter_directory_id == _NO_DIRECTORY_ID:
        raise ApiError(error_codes.INVALID_REQUEST, "Remove voter request didn't include a valid voter")
    if log.kraft_version == 0:
        told = "Cluster doesn't support removing voter because the kraft.version feature is 0"
        raise ApiError(error_codes.UNSUPPORTED_VERSION, told)
    voter = _replica_key(request.voter_id, request.voter_directory_id)
    voters = f"[{_replica_key(config.node_id, log.directory_id)}]"
    raise ApiError(error_codes.VOTER_NOT_FOUND, f"Cannot remove voter {voter} from the set of voters {voters}")


def error(_request: Any, error_code: int, message: str | None) -> RemoveRaftVoterResponse:
    """Code and message."""
    return RemoveRaftVoterResponse(error_code=error_code, error_message=message)


def _replica_key(node_id: int, directory_id: bytes) -> str:
    """ReplicaKey.toString."""
    return f"ReplicaKey(id={node_id}, directoryId={uuids.text_of(directory_id)})"


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
