"""Adding, removing and updating voters, one change at a time, each effective once it is in the log (KIP-853).

Source: AddVoterHandler, RemoveVoterHandler, UpdateVoterHandler, LeaderState.maybeAppendUpgradedKRaftVersion.
"""

from __future__ import annotations

import logging
from functools import partial

from mockraft.releases import KRAFT_VERSION, Behaviour, release
from mockraft.server.controller.log import limits
from mockraft.server.controller.quorum.voter_set import (
    ReplicaKey,
    VoterEndpoint,
    VoterNode,
    VoterSet,
    control_records,
    voters_record,
)
from mockraft.server.controller.result import ApiError
from mockraft.server.raft.leading import Leading
from mockraft.server.raft.quorum_state import QuorumState, VoterChange
from mockraft.wire import error_codes
from mockraft.wire.messages.api_versions_response import ApiVersionsResponse

UPDATED = "updated"

_LOGGER = logging.getLogger("mockraft.raft")


def check_leads(quorum: QuorumState, epoch: int) -> int:
    """Return the error code for a request that only the leader of `epoch` answers (validateLeaderOnlyRequest)."""
    if epoch < quorum.epoch:
        return error_codes.FENCED_LEADER_EPOCH
    if epoch > quorum.epoch:
        return error_codes.UNKNOWN_LEADER_EPOCH
    return error_codes.NONE if quorum.is_leader else error_codes.NOT_LEADER_OR_FOLLOWER


def begin_addition(
    quorum: QuorumState, key: ReplicaKey, endpoints: tuple[VoterEndpoint, ...], ack_when_committed: bool, now_ms: int
) -> VoterChange:
    """Begin to add a voter; its versions are requested next. ApiError if that is not possible now."""
    voters = _voters_to_change(quorum, "adding", now_ms)
    if quorum.epoch >= limits.EPOCH_PEER_MAX:
        # The only voter may still lead; two could not elect one of them again.
        message = f"Cannot add voter {_shown(quorum, key)}: the leader epoch {quorum.epoch} is too near to the last one"
        raise ApiError(error_codes.INVALID_REQUEST, message)
    if key.id in voters.nodes:
        known = voters.keys_text(partial(_shown, quorum))
        message = f"The voter id for {_shown(quorum, key)} is already part of the set of voters {known}."
        raise ApiError(error_codes.DUPLICATE_VOTER, message)
    if not quorum.requests.is_ready(key.id, now_ms):
        message = f"New voter {_shown(quorum, key)} is not ready to receive requests"
        raise ApiError(error_codes.REQUEST_TIMED_OUT, message)
    change = VoterChange("added", key, _deadline_ms(quorum, now_ms), endpoints, ack_when_committed)
    quorum.voter_change = change
    quorum.wake()
    return change


def versions_received(quorum: QuorumState, voter_id: int, response: ApiVersionsResponse | None, now_ms: int) -> bool:
    """Add the new voter if its ApiVersions response (None: none came) fits and it is caught up."""
    change = quorum.voter_change
    if quorum.leading is None or change is None or change.key.id != voter_id:
        return True
    if change.doing == UPDATED:
        return _answer_of_updated(quorum, change, response, now_ms)
    code = error_codes.BROKER_NOT_AVAILABLE if response is None else response.error_code
    if response is None or code != error_codes.NONE:
        is_named = release(quorum.config.release).has(Behaviour.ABORTED_ADDITIONS_NAME_THE_VOTER)
        named = f"{_shown(quorum, change.key)} " if is_named else ""
        message = (
            f"Aborted add voter operation for {named}since API_VERSIONS returned an error {error_codes.name(code)}"
        )
        change.finish(quorum, error_codes.REQUEST_TIMED_OUT, message)
        return False
    level = quorum.log.kraft_version
    found = next((feature for feature in response.supported_features if feature.name == KRAFT_VERSION), None)
    if found is None or not found.min_version <= level <= found.max_version:
        known = f"(min: {found.min_version}, max: {found.max_version}" if found else "(min: 0, max: 0)"
        message = (
            f"Aborted add voter operation for {_shown(quorum, change.key)} since the {KRAFT_VERSION} range {known}"
            f" doesn't support the finalized version {level}"
        )
        change.finish(quorum, error_codes.INVALID_REQUEST, message)
        return True
    if not quorum.leading.is_caught_up(change.key, now_ms):
        message = f"Aborted add voter operation for {_shown(quorum, change.key)} since it is lagging behind"
        change.finish(quorum, error_codes.REQUEST_TIMED_OUT, message)
        return True
    node = VoterNode(change.key, change.endpoints, found.min_version, found.max_version)
    voters = quorum.log.voters.added(node)
    assert voters is not None
    _append(quorum, voters, change, now_ms)
    if not change.ack_when_committed and change.result is None:
        change.result = (error_codes.NONE, None)
        quorum.changed()
    return True


def _answer_of_updated(
    quorum: QuorumState, change: VoterChange, response: ApiVersionsResponse | None, now_ms: int
) -> bool:
    """Store the update of a voter that can be reached and reports the same versions as its request."""
    if response is None or response.error_code != error_codes.NONE:
        change.finish(quorum, error_codes.REQUEST_TIMED_OUT, None)
        return False
    found = next((feature for feature in response.supported_features if feature.name == KRAFT_VERSION), None)
    if found is None or (found.min_version, found.max_version) != change.kraft_versions:
        change.finish(quorum, error_codes.INVALID_REQUEST, None)
        return True
    code = _store(quorum, VoterNode(change.key, change.endpoints, *change.kraft_versions), change, now_ms)
    if code != error_codes.NONE or change.last_offset < 0:
        change.finish(quorum, code, None)
    else:
        change.result = (code, None)
        quorum.changed()
        change.committed(quorum)  # the only voter commits while it appends
    return True


def remove(quorum: QuorumState, key: ReplicaKey, now_ms: int) -> VoterChange:
    """Remove a voter. ApiError if that is not possible now, or if it is not a voter or the last one."""
    voters = _voters_to_change(quorum, "removing", now_ms)
    left = voters.removed(key)
    if left is None:
        known = voters.keys_text(partial(_shown, quorum))
        message = f"Cannot remove voter {_shown(quorum, key)} from the set of voters {known}"
        raise ApiError(error_codes.VOTER_NOT_FOUND, message)
    change = VoterChange("removed", key, _deadline_ms(quorum, now_ms))
    quorum.voter_change = change
    _append(quorum, left, change, now_ms)
    return change


def begin_update(quorum: QuorumState, node: VoterNode, now_ms: int) -> VoterChange:
    """Begin to update a voter; its versions are requested next. ApiError if that is not possible now."""
    refused = _refused_update(quorum, node, now_ms)
    if refused == error_codes.NONE and not quorum.requests.is_ready(node.key.id, now_ms):
        refused = error_codes.REQUEST_TIMED_OUT
    if refused != error_codes.NONE:
        raise ApiError(refused)
    versions = (node.kraft_version_min, node.kraft_version_max)
    change = VoterChange(UPDATED, node.key, _deadline_ms(quorum, now_ms), node.endpoints, kraft_versions=versions)
    quorum.voter_change = change
    quorum.wake()
    return change


def update(quorum: QuorumState, node: VoterNode, now_ms: int) -> int:
    """Update a voter's endpoints and versions; return the error code."""
    log = quorum.log
    is_committed = log.kraft_version == 0 or log.voters_offset < log.high_watermark
    return _refused_update(quorum, node, now_ms, is_committed=is_committed) or _store(quorum, node, None, now_ms)


def _refused_update(quorum: QuorumState, node: VoterNode, now_ms: int, *, is_committed: bool = True) -> int:
    """Return the error code if no voter can be updated now, or this one has no address for the leader."""
    if quorum.leading is None:
        return error_codes.NOT_LEADER_OR_FOLLOWER
    expire(quorum, now_ms)
    if quorum.voter_change is not None or not quorum.leading.established or not is_committed:
        return error_codes.REQUEST_TIMED_OUT
    has_address = node.endpoint(quorum.config.controller_listener_name) is not None
    return error_codes.NONE if has_address else error_codes.INVALID_REQUEST


def _store(quorum: QuorumState, node: VoterNode, change: VoterChange | None, now_ms: int) -> int:
    leading, log = quorum.leading, quorum.log
    assert leading is not None
    in_memory = log.kraft_version == 0
    if not node.kraft_version_min <= log.kraft_version <= node.kraft_version_max:
        return error_codes.INVALID_REQUEST
    voters = leading.volatile_voters if in_memory else log.voters
    updated = voters.updated(node, ignore_directory_id=in_memory)
    if updated is None:
        return error_codes.VOTER_NOT_FOUND
    if in_memory:
        leading.volatile_voters = updated
    else:
        _append(quorum, updated, change, now_ms)
    leading.contacted(node.key, now_ms)
    return error_codes.NONE


def upgrade_kraft_version(quorum: QuorumState, level: int, now_ms: int) -> None:
    """Finalize kraft.version above 0: the level and the voters become records. ApiError if a voter is not ready."""
    leading = quorum.leading
    if leading is None:
        raise ApiError(error_codes.NOT_CONTROLLER)
    voters = leading.volatile_voters
    if not all(node.kraft_version_min <= level <= node.kraft_version_max for node in voters.nodes.values()):
        message = f"Invalid upgrade of {KRAFT_VERSION} to {level} because not all of the voters support it"
        raise ApiError(error_codes.INVALID_UPDATE_VERSION, message)
    if not leading.has_directory_ids():
        # Kafka ends here with an IllegalStateException.
        raise ApiError(error_codes.UNKNOWN_SERVER_ERROR)
    quorum.append_control(control_records(level, voters), voters, now_ms)


def expire(quorum: QuorumState, now_ms: int) -> None:
    """Abort a change that takes too long; its records stay in the log."""
    change = quorum.voter_change
    if change is not None and now_ms >= change.deadline_ms:
        change.finish(quorum, error_codes.REQUEST_TIMED_OUT, None)


def _voters_to_change(quorum: QuorumState, doing: str, now_ms: int) -> VoterSet:
    leading, log = quorum.leading, quorum.log
    assert isinstance(leading, Leading)
    expire(quorum, now_ms)
    waiting = "Request timed out waiting for "
    if quorum.voter_change is not None:
        raise ApiError(error_codes.REQUEST_TIMED_OUT, f"{waiting}leader to handle previous voter change request")
    if not leading.established:
        message = f"{waiting}leader to establish HWM and fence previous voter changes"
        raise ApiError(error_codes.REQUEST_TIMED_OUT, message)
    if log.kraft_version == 0:
        message = f"Cluster doesn't support {doing} voter because the {KRAFT_VERSION} feature is 0"
        raise ApiError(error_codes.UNSUPPORTED_VERSION, message)
    if log.voters_offset >= log.high_watermark:
        message = (
            f"{waiting}voters to commit the latest voter change at Optional[{log.voters_offset}] with HWM"
            f" {log.high_watermark}"
        )
        raise ApiError(error_codes.REQUEST_TIMED_OUT, message)
    return log.voters


def _shown(quorum: QuorumState, key: ReplicaKey) -> str:
    """Return a voter as the release's texts show it."""
    is_plain = release(quorum.config.release).has(Behaviour.DIRECTORY_IDS_ARE_PLAIN)
    return str(key) if is_plain else key.as_optional()


def _append(quorum: QuorumState, voters: VoterSet, change: VoterChange | None, now_ms: int) -> None:
    offset = quorum.log.end_offset
    if change is not None:
        change.last_offset = offset
    _LOGGER.info("node %d: latest set of voters is %s at offset %d", quorum.config.node_id, voters.keys_text(), offset)
    quorum.append_control([voters_record(voters)], voters, now_ms)


def _deadline_ms(quorum: QuorumState, now_ms: int) -> int:
    return now_ms + quorum.config.controller_quorum_request_timeout_ms
