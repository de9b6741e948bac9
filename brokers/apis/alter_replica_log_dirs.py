"""AlterReplicaLogDirs (34): a replica is to lie in another directory of this broker (KIP-113).

The answer says that the move has begun, or why not; how far it is, DescribeLogDirs tells. A replica named twice goes to
the directory that was named last.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mockraft.brokers.apis.api import Api, RequestContext
from mockraft.brokers.moves.asking import ask_to_move
from mockraft.brokers.moves.errors import MoveRefusedError
from mockraft.wire import error_codes
from mockraft.wire.messages.alter_replica_log_dirs_request import AlterReplicaLogDirsRequest
from mockraft.wire.messages.alter_replica_log_dirs_response import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)


async def handle(request: Any, ctx: RequestContext) -> AlterReplicaLogDirsResponse:
    """Begin the moves, one after the other."""
    results: dict[str, list[AlterReplicaLogDirPartitionResult]] = {}
    for (topic, partition), path in {(topic, index): path for topic, index, path in _asked(request)}.items():
        results.setdefault(topic, []).append(
            AlterReplicaLogDirPartitionResult(partition_index=partition, error_code=_ask(ctx, topic, partition, path))
        )
    return AlterReplicaLogDirsResponse(
        results=[
            AlterReplicaLogDirTopicResult(topic_name=topic, partitions=partitions)
            for topic, partitions in results.items()
        ]
    )


def error(request: Any, error_code: int, _message: str | None) -> AlterReplicaLogDirsResponse:
    """The error for each partition, there is no other place for it."""
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


def _asked(request: Any) -> Iterator[tuple[str, int, str]]:
    for log_dir in request.dirs:
        for topic in log_dir.topics:
            for partition in topic.partitions:
                yield topic.name, partition, log_dir.path


def _ask(ctx: RequestContext, topic: str, partition: int, path: str) -> int:
    try:
        ask_to_move(ctx.broker.movers, topic, partition, path)
    except MoveRefusedError as refusal:
        return refusal.error_code
    return error_codes.NONE


API = Api(AlterReplicaLogDirsRequest, AlterReplicaLogDirsResponse, handle, error)
