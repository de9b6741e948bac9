"""DescribeQuorum (55), versions 0-2: KIP-595, KIP-836 (timestamps), KIP-853 (directory ids, nodes).

Observers are the replicas without a vote that fetched the log in the last five minutes (LeaderState).
"""

from collections.abc import Iterable

from mockraft.kafka_api.api import error_with_default_message
from mockraft.kafka_api.authorization.acl_types import AclOperation
from mockraft.server.apis.api import Api, RequestContext
from mockraft.server.controller.controller import Controller
from mockraft.server.controller.quorum.voter_set import PARTITION, ReplicaKey
from mockraft.server.raft.leading import ReplicaState
from mockraft.wire import error_codes
from mockraft.wire.messages.describe_quorum_request import DescribeQuorumRequest
from mockraft.wire.messages.describe_quorum_response import (
    DescribeQuorumResponse,
    Listener,
    Node,
    PartitionData,
    TopicData,
)
from mockraft.wire.messages.describe_quorum_response import ReplicaState as ResponseState
from mockraft.wire.topic_names import CLUSTER_METADATA

_DIRECTORY_IDS_VERSION = 2
_NODES_VERSION = 2


def handle(request: DescribeQuorumRequest, ctx: RequestContext, controller: Controller) -> DescribeQuorumResponse:
    """Return leader, voters and observers of the metadata log."""
    topics = request.topics
    if not (
        len(topics) == 1
        and topics[0].topic_name == CLUSTER_METADATA
        and [partition.partition_index for partition in topics[0].partitions] == [PARTITION]
    ):
        return _unknown_topics(request)
    if controller.failure is not None:
        # Kafka's controller has ended by then.
        return DescribeQuorumResponse(error_code=error_codes.KAFKA_STORAGE_ERROR, error_message=controller.failure)
    raft = controller.raft
    leading = raft.leading
    if leading is None:
        refused = _refused(PARTITION, error_codes.NOT_LEADER_OR_FOLLOWER)
        return DescribeQuorumResponse(topics=[TopicData(topic_name=CLUSTER_METADATA, partitions=[refused])])

    def states(replicas: Iterable[tuple[ReplicaKey, ReplicaState]]) -> list[ResponseState]:
        return [_state(controller, key, state, ctx) for key, state in replicas]

    partition = PartitionData(
        partition_index=PARTITION,
        leader_id=raft.config.node_id,
        leader_epoch=raft.epoch,
        high_watermark=raft.high_watermark,
        current_voters=states((node.key, state) for node, state in leading.voters.values()),
        observers=states(raft.observers(ctx.now_ms).items()),
    )
    response = DescribeQuorumResponse(topics=[TopicData(topic_name=CLUSTER_METADATA, partitions=[partition])])
    if ctx.api_version >= _NODES_VERSION:
        response.nodes = [
            Node(node_id=voter_id, listeners=[Listener(name=e.name, host=e.host, port=e.port) for e in node.endpoints])
            for voter_id, (node, _) in leading.voters.items()
        ]
    return response


def _state(controller: Controller, key: ReplicaKey, state: ReplicaState, ctx: RequestContext) -> ResponseState:
    found = ResponseState(
        replica_id=key.id,
        log_end_offset=state.log_end_offset,
        last_fetch_timestamp=state.last_fetch_timestamp_ms,
        last_caught_up_timestamp=state.last_caught_up_timestamp_ms,
    )
    if key.id == controller.config.node_id:
        found.log_end_offset = controller.log.end_offset
        found.last_fetch_timestamp = found.last_caught_up_timestamp = ctx.now_ms
    # Voters that are configuration (kraft.version 0) have no directory id.
    if ctx.api_version >= _DIRECTORY_IDS_VERSION:
        found.replica_directory_id = key.directory_id
    return found


def _unknown_topics(request: DescribeQuorumRequest) -> DescribeQuorumResponse:
    code = error_codes.UNKNOWN_TOPIC_OR_PARTITION
    topics = [
        TopicData(
            topic_name=topic.topic_name,
            partitions=[_refused(partition.partition_index, code) for partition in topic.partitions],
        )
        for topic in request.topics
    ]
    return DescribeQuorumResponse(topics=topics)


def _refused(partition_index: int, code: int) -> PartitionData:
    return PartitionData(partition_index=partition_index, error_code=code, error_message=error_codes.message(code))


API = Api(
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    handle,
    error_with_default_message(DescribeQuorumResponse),
    forwardable=True,
    active_only=False,
    operation=AclOperation.DESCRIBE,
)
