"""DescribeQuorum (55), versions 0-2: KIP-595, KIP-836 (timestamps), KIP-853 (directory ids, nodes).

The voter is this controller; observers are the replicas that fetched the log in the last five minutes (LeaderState).
"""

from typing import Any

from mockraft.server.apis.api import Api, RequestContext
from mockraft.server.controller.acl_types import AclOperation
from mockraft.server.controller.controller import Controller
from mockraft.server.controller.quorum import PARTITION, TOPIC_NAME
from mockraft.wire import error_codes
from mockraft.wire.messages.describe_quorum_request import DescribeQuorumRequest
from mockraft.wire.messages.describe_quorum_response import (
    DescribeQuorumResponse,
    Listener,
    Node,
    PartitionData,
    ReplicaState,
    TopicData,
)

_DIRECTORY_IDS_VERSION = 2
_NODES_VERSION = 2


def handle(request: Any, ctx: RequestContext, controller: Controller) -> Any:
    """Leader, voters and observers of the metadata log."""
    topics = request.topics
    if not (
        len(topics) == 1
        and topics[0].topic_name == TOPIC_NAME
        and [partition.partition_index for partition in topics[0].partitions] == [PARTITION]
    ):
        return _unknown_topics(request)
    config, log = controller.config, controller.log
    with_directory = ctx.api_version >= _DIRECTORY_IDS_VERSION
    voter = ReplicaState(
        replica_id=config.node_id,
        log_end_offset=log.end_offset,
        last_fetch_timestamp=ctx.now_ms,
        last_caught_up_timestamp=ctx.now_ms,
    )
    observers = []
    for key, state in log.observers.states(ctx.now_ms).items():
        observer = ReplicaState(
            replica_id=key.id,
            log_end_offset=state.log_end_offset,
            last_fetch_timestamp=state.last_fetch_timestamp_ms,
            last_caught_up_timestamp=state.last_caught_up_timestamp_ms,
        )
        if with_directory:
            observer.replica_directory_id = key.directory_id
        observers.append(observer)
    # Voters that are configuration (kraft.version 0) have no directory id.
    if with_directory and log.kraft_version > 0:
        voter.replica_directory_id = log.directory_id
    partition = PartitionData(
        partition_index=PARTITION,
        leader_id=config.node_id,
        leader_epoch=log.leader_epoch,
        high_watermark=log.high_watermark,
        current_voters=[voter],
        observers=observers,
    )
    response = DescribeQuorumResponse(topics=[TopicData(topic_name=TOPIC_NAME, partitions=[partition])])
    if ctx.api_version >= _NODES_VERSION:
        listener = Listener(name=config.controller_listener_name, host=config.voter_host, port=config.voter_port)
        response.nodes = [Node(node_id=config.node_id, listeners=[listener])]
    return response


def error(_request: Any, error_code: int, _message: str | None) -> Any:
    """A top-level error with Kafka's text for it."""
    return DescribeQuorumResponse(error_code=error_code, error_message=error_codes.message(error_code))


def _unknown_topics(request: Any) -> Any:
    code = error_codes.UNKNOWN_TOPIC_OR_PARTITION
    topics = [
        TopicData(
            topic_name=topic.topic_name,
            partitions=[
                PartitionData(
                    partition_index=partition.partition_index,
                    error_code=code,
                    error_message=error_codes.message(code),
                )
                for partition in topic.partitions
            ],
        )
        for topic in request.topics
    ]
    return DescribeQuorumResponse(topics=topics)


API = Api(
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    handle,
    0,
    2,
    error,
    forwardable=True,
    active_only=False,
    operation=AclOperation.DESCRIBE,
)
