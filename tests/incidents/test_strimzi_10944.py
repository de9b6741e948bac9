"""strimzi#10944: the quorum is described by the active controller only."""

from mockraft import Quorum
from mockraft.wire import error_codes
from mockraft.wire.messages.describe_quorum_request import DescribeQuorumRequest, PartitionData, TopicData


def test_controllers_that_follow_refuse_to_describe_their_quorum() -> None:
    request = DescribeQuorumRequest(topics=[TopicData(topic_name="__cluster_metadata", partitions=[PartitionData()])])
    with Quorum.sync(3) as quorum:
        quorum.elect(3001)
        codes = {
            node_id: quorum.ask(request, node=node_id).topics[0].partitions[0].error_code for node_id in quorum.node_ids
        }
        refused = error_codes.NOT_LEADER_OR_FOLLOWER
        assert codes == {3000: refused, 3001: error_codes.NONE, 3002: refused}
