"""The behaviour of each profile, and of several profiles together."""

from typing import Any

import pytest
from mockraft.releases import Behaviour
from mockraft.testing.proposals import NAMES, overlay_of, proposals_of
from mockraft.wire import error_codes
from mockraft.wire.messages.assign_replicas_to_dirs_request import (
    AssignReplicasToDirsRequest,
    DirectoryData,
    PartitionData,
    TopicData,
)

from ...conftest import Cluster
from .conftest import Proposed

A, B, C = (bytes([8] * 15 + [number]) for number in (1, 2, 3))
LOST = bytes(15) + b"\x02"


def test_every_proposal_with_a_behaviour_is_a_profile() -> None:
    assert {each.row.proposal for each in Behaviour} - {""} <= set(NAMES)


def test_a_profile_that_is_not_there_is_refused_with_those_that_are() -> None:
    with pytest.raises(ValueError, match=r"there is no profile 'kip-9'; there are kip-18, kip-113"):
        overlay_of(["kip-9"])
    with pytest.raises(ValueError, match="there is no profile"):
        proposals_of(["kip-9"])


def test_two_proposals_are_served_together(proposed: type[Proposed]) -> None:
    cluster = proposed("kip-858", "kip-1066")
    fields = {field.name: field for field in cluster.overlay.schema("BrokerRegistrationChangeRecord").root.fields}
    assert (fields["LogDirs"].versions.low, fields["LogDirs"].tag) == (3, 2)
    assert (fields["CordonedLogDirs"].versions.low, fields["CordonedLogDirs"].tag) == (3, 3)
    cluster.start(1, log_dirs=[A, B], cordoned_log_dirs=[B])
    cluster.heartbeat(1, cordoned_log_dirs=[B], offline_log_dirs=[A])
    assert (cluster.broker(1).log_dirs, cluster.broker(1).cordoned_log_dirs) == ((B,), (B,))
    assert cluster.replayed().cluster.brokers[1] == cluster.broker(1)


class TestKip18:
    """Its rule for the leader is Kafka's own; a broker tells a partition that it lost as one in the directory LOST."""

    def lose(self, cluster: Cluster, broker_id: int, topic_id: bytes) -> Any:
        topics = [TopicData(topic_id=topic_id, partitions=[PartitionData(partition_index=0)])]
        epoch = cluster.broker(broker_id).broker_epoch
        request = AssignReplicasToDirsRequest(
            broker_id=broker_id, broker_epoch=epoch, directories=[DirectoryData(id=LOST, topics=topics)]
        )
        assert cluster.ask(request).error_code == error_codes.NONE

    @pytest.fixture
    def cluster(self, proposed: type[Proposed]) -> Any:
        cluster = proposed("kip-18")
        for broker_id, directory in ((1, A), (2, B), (3, C)):
            cluster.start(broker_id, log_dirs=[directory])
        return cluster

    def test_the_new_leader_is_the_first_assigned_replica_in_the_new_isr(self, cluster: Cluster) -> None:
        topic_id = cluster.create_topic("t", [1, 2, 3], isr=[3, 2, 1])
        self.lose(cluster, 1, topic_id)
        partition = cluster.partition(topic_id)
        assert (partition.leader, sorted(partition.isr), partition.replicas) == (2, [2, 3], (1, 2, 3))

    def test_a_follower_leaves_the_isr_and_the_leader_stays(self, cluster: Cluster) -> None:
        topic_id = cluster.create_topic("t", [1, 2, 3])
        self.lose(cluster, 2, topic_id)
        partition = cluster.partition(topic_id)
        assert (partition.leader, partition.isr, partition.replicas) == (1, (1, 3), (1, 2, 3))

    def test_an_empty_isr_is_an_offline_partition(self, cluster: Cluster) -> None:
        topic_id = cluster.create_topic("t", [1, 2], isr=[1])
        self.lose(cluster, 1, topic_id)
        partition = cluster.partition(topic_id)
        assert (partition.leader, partition.isr, partition.replicas) == (-1, (), (1, 2))


def test_kip_113_changes_broker_messages_only(proposed: type[Proposed]) -> None:
    cluster = proposed("kip-113")
    assert sorted(cluster.overlay.overlaid) == [
        "ChangeReplicaDirResponse",
        "DescribeDirsRequest",
        "DescribeDirsResponse",
    ]
    assert 35 not in cluster.apis
