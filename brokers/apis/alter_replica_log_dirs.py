"""AlterReplicaLogDirs (34): move replicas to another log directory of this broker (KIP-113).

The response reports that a move has begun or why it was refused; DescribeLogDirs reports its progress. A replica that
is named twice moves to the directory that was named last.
"""

from __future__ import annotations

from collections.abc import Iterator

from mockraft.brokers.apis.api import Api, Need, RequestContext
from mockraft.brokers.moves.move import MoveRefusedError
from mockraft.kafka_api.authorization.acl_types import AclOperation
from mockraft.wire import error_codes
from mockraft.wire.messages.alter_replica_log_dirs_request import AlterReplicaLogDirsRequest
from mockraft.wire.messages.alter_replica_log_dirs_response import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)


def handle(request: AlterReplicaLogDirsRequest, ctx: RequestContext) -> AlterReplicaLogDirsResponse:
    """Start the moves, one after the other."""
    results: dict[str, list[AlterReplicaLogDirPartitionResult]] = {}
    for (topic, partition), path in {(topic, index): path for topic, index, path in _requested(request)}.items():
        results.setdefault(topic, []).append(
            AlterReplicaLogDirPartitionResult(partition_index=partition, error_code=_start(ctx, topic, partition, path))
        )
    return AlterReplicaLogDirsResponse(
        results=[
            AlterReplicaLogDirTopicResult(topic_name=topic, partitions=partitions)
            for topic, partitions in results.items()
        ]
    )


def error(request: AlterReplicaLogDirsRequest, error_code: int, _message: str | None) -> AlterReplicaLogDirsResponse:
    """Return the error for each partition: the response has no top-level error code."""
    return AlterReplicaLogDirsResponse(
        results=[
            AlterReplicaLogDirTopicResult(
                topic_name=topic.name,
                partitions=[
                    AlterReplicaLogDirPartitionResult(partition_index=partition, error_code=error_code)
                    for partition in topic.partitions
                ],
            )
            for log_dir in request.dirs
            for topic in log_dir.topics
        ]
    )


def _requested(request: AlterReplicaLogDirsRequest) -> Iterator[tuple[str, int, str]]:
    for log_dir in request.dirs:
        for topic in log_dir.topics:
            for partition in topic.partitions:
                yield topic.name, partition, log_dir.path


def _start(ctx: RequestContext, topic: str, partition: int, path: str) -> int:
    try:
        ctx.broker.start_move(topic, partition, path)
    except MoveRefusedError as refusal:
        return refusal.error_code
    return error_codes.NONE


API = Api(AlterReplicaLogDirsRequest, AlterReplicaLogDirsResponse, handle, error, needs=(Need(AclOperation.ALTER),))
