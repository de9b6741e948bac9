"""The last voter stays, whatever one asks: the refusals in Kafka's order."""

from typing import Any

import pytest
from mockraft.wire import error_codes, uuids
from mockraft.wire.messages.remove_raft_voter_request import RemoveRaftVoterRequest

from ...conftest import Cluster

STRANGE_ID = bytes(range(16))
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
    told = refusal(cluster, cluster_id="x", voter_id=-1)
    assert told == (error_codes.INCONSISTENT_CLUSTER_ID, message)


def test_a_voter_has_an_id_and_a_directory(new_cluster: type[Cluster]) -> None:
    cluster = new_cluster(kraft_version=0)
    assert refusal(cluster, voter_id=-1) == (error_codes.INVALID_REQUEST, NO_VOTER)
    assert refusal(cluster, voter_directory_id=bytes(16)) == (error_codes.INVALID_REQUEST, NO_VOTER)


def test_voters_that_are_configuration_cannot_be_removed(new_cluster: type[Cluster]) -> None:
    message = "Cluster doesn't support removing voter because the kraft.version feature is 0"
    assert refusal(new_cluster(kraft_version=0)) == (error_codes.UNSUPPORTED_VERSION, message)
