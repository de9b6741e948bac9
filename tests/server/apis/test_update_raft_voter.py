"""AddRaftVoter, UpdateRaftVoter and RemoveRaftVoter: refusals in Kafka's order; test_voter_changes tests effects."""

from typing import Any

import pytest
from mockraft.server.controller.quorum.voter_set import ReplicaKey, VoterEndpoint
from mockraft.wire import error_codes, uuids
from mockraft.wire.messages import add_raft_voter_request as add
from mockraft.wire.messages import update_raft_voter_request as update
from mockraft.wire.messages.remove_raft_voter_request import RemoveRaftVoterRequest

from ...conftest import Cluster

STRANGE_ID = bytes(range(16))
INVALID = error_codes.INVALID_REQUEST


def updated(cluster: Cluster, **fields: Any) -> Any:
    lowest, highest = fields.pop("versions", (0, 1))
    given = {
        "cluster_id": None,
        "current_leader_epoch": 1,
        "voter_id": 3000,
        "voter_directory_id": cluster.log.directory_id,
        "listeners": [update.Listener(name="CONTROLLER", host="there", port=7)],
        "k_raft_version_feature": update.KRaftVersionFeature(
            min_supported_version=lowest, max_supported_version=highest
        ),
        **fields,
    }
    return cluster.ask(update.UpdateRaftVoterRequest(**given))


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"cluster_id": "x", "current_leader_epoch": 0}, error_codes.INCONSISTENT_CLUSTER_ID),
        ({"current_leader_epoch": 0, "voter_id": -1}, error_codes.FENCED_LEADER_EPOCH),
        ({"current_leader_epoch": 2, "voter_id": -1}, error_codes.UNKNOWN_LEADER_EPOCH),
        ({"versions": (-1, 1)}, INVALID),
        ({"versions": (1, 0)}, INVALID),
        ({"versions": (2, 3), "voter_id": 7}, INVALID),
        ({"voter_directory_id": STRANGE_ID}, error_codes.VOTER_NOT_FOUND),
    ],
)
def test_updates_are_refused_in_kafkas_order(cluster: Cluster, fields: Any, code: int) -> None:
    answer = updated(cluster, **fields)
    leader = answer.current_leader
    assert (answer.error_code, leader.leader_id, leader.leader_epoch) == (code, 3000, 1)
    assert (leader.host, leader.port) == (cluster.config.voter_host, cluster.config.voter_port)


def test_another_change_is_reported_before_a_missing_listener(cluster: Cluster) -> None:
    assert updated(cluster, listeners=[]).error_code == INVALID
    here = (VoterEndpoint("CONTROLLER", "127.0.0.1", 1),)
    cluster.raft.add_voter(ReplicaKey(7, STRANGE_ID), here, True, cluster.now_ms)
    assert updated(cluster, listeners=[]).error_code == error_codes.REQUEST_TIMED_OUT


def test_a_voter_that_moved_is_in_the_log(cluster: Cluster) -> None:
    assert updated(cluster).error_code == error_codes.NONE
    (node,) = cluster.raft.voters.nodes.values()
    assert [tuple(endpoint) for endpoint in node.endpoints] == [("CONTROLLER", "there", 7)]


def test_a_node_that_is_not_leader_reports_it(cluster: Cluster) -> None:
    cluster.raft.to_unattached(5, cluster.now_ms)
    answer = updated(cluster, current_leader_epoch=5)
    assert (answer.error_code, answer.current_leader.leader_id) == (error_codes.NOT_LEADER_OR_FOLLOWER, -1)
    assert cluster.ask(add.AddRaftVoterRequest(cluster_id=None)).error_code == error_codes.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize(
    ("fields", "code", "message"),
    [
        ({"cluster_id": "x", "voter_id": -1}, error_codes.INCONSISTENT_CLUSTER_ID, 'The given id "x" doesn\'t match'),
        ({"voter_id": -1}, INVALID, "Add voter request didn't include a valid voter"),
        ({"voter_directory_id": bytes(16)}, INVALID, "Add voter request didn't include a valid voter"),
        ({"listeners": []}, INVALID, "Add voter request didn't include the endpoint (Endpoints(endpoints={}))"),
        ({"voter_id": 3000}, error_codes.DUPLICATE_VOTER, "is already part of the set of voters [ReplicaKey(id=3000,"),
    ],
)
@pytest.mark.parametrize("version", [0, 1])
def test_additions_are_refused_in_kafkas_order(
    cluster: Cluster, version: int, fields: Any, code: int, message: str
) -> None:
    given = {
        "cluster_id": None,
        "voter_id": 7,
        "voter_directory_id": STRANGE_ID,
        "listeners": [add.Listener(name="CONTROLLER", host="there", port=7)],
        **fields,
    }
    answer = cluster.ask(add.AddRaftVoterRequest(**given), version)
    assert answer.error_code == code
    assert message in answer.error_message


def test_voters_that_are_configuration_cannot_be_added(new_cluster: type[Cluster]) -> None:
    listeners = [add.Listener(name="CONTROLLER", host="there", port=7)]
    request = add.AddRaftVoterRequest(
        cluster_id=None, voter_id=7, voter_directory_id=STRANGE_ID, listeners=listeners, timeout_ms=1
    )
    answer = new_cluster(kraft_version=0).ask(request)
    assert answer.error_code == error_codes.UNSUPPORTED_VERSION
    assert answer.error_message == "Cluster doesn't support adding voter because the kraft.version feature is 0"


NO_VOTER = "Remove voter request didn't include a valid voter"


def refusal(cluster: Cluster, **fields: Any) -> tuple[int, str]:
    own = {"cluster_id": None, "voter_id": cluster.config.node_id, "voter_directory_id": cluster.log.directory_id}
    given = {**own, **fields}
    response = cluster.ask(RemoveRaftVoterRequest(**given))
    assert cluster.written() == []
    return response.error_code, response.error_message


@pytest.mark.parametrize("cluster_id", [None, "own"])
def test_the_last_voter_is_not_removed(cluster: Cluster, cluster_id: str | None) -> None:
    own = uuids.text_of(cluster.log.directory_id)
    message = (
        f"Cannot remove voter ReplicaKey(id=3000, directoryId={own}) "
        f"from the set of voters [ReplicaKey(id=3000, directoryId={own})]"
    )
    given = cluster.config.cluster_id if cluster_id else None
    assert refusal(cluster, cluster_id=given) == (error_codes.VOTER_NOT_FOUND, message)


def test_an_unknown_voter_is_not_found(cluster: Cluster) -> None:
    code, message = refusal(cluster, voter_id=7, voter_directory_id=STRANGE_ID)
    assert code == error_codes.VOTER_NOT_FOUND
    assert message.startswith("Cannot remove voter ReplicaKey(id=7, directoryId=AAECAwQFBgcICQoLDA0ODw) from")


def test_another_cluster_is_refused_first(cluster: Cluster) -> None:
    message = f'The given id "x" doesn\'t match the cluster id "{cluster.config.cluster_id}"'
    result = refusal(cluster, cluster_id="x", voter_id=-1)
    assert result == (error_codes.INCONSISTENT_CLUSTER_ID, message)


def test_a_voter_has_an_id_and_a_directory(new_cluster: type[Cluster]) -> None:
    cluster = new_cluster(kraft_version=0)
    assert refusal(cluster, voter_id=-1) == (error_codes.INVALID_REQUEST, NO_VOTER)
    assert refusal(cluster, voter_directory_id=bytes(16)) == (error_codes.INVALID_REQUEST, NO_VOTER)


def test_voters_that_are_configuration_cannot_be_removed(new_cluster: type[Cluster]) -> None:
    message = "Cluster doesn't support removing voter because the kraft.version feature is 0"
    assert refusal(new_cluster(kraft_version=0)) == (error_codes.UNSUPPORTED_VERSION, message)
