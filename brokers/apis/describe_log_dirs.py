"""DescribeLogDirs (35): replicas and disk usage of this broker's log directories (KIP-113, 827, 1066).

Every directory is included, offline ones with KAFKA_STORAGE_ERROR. The request's topics may restrict the replicas.
"""

from __future__ import annotations

from mockraft.brokers.apis.api import Api, Need, RequestContext
from mockraft.brokers.log_dirs.log_loading import HeldLog
from mockraft.brokers.log_dirs.logs import Logs
from mockraft.kafka_api.authorization.acl_types import AclOperation
from mockraft.releases import Behaviour
from mockraft.wire import error_codes
from mockraft.wire.messages.describe_log_dirs_request import DescribeLogDirsRequest
from mockraft.wire.messages.describe_log_dirs_response import (
    DescribeLogDirsPartition,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)


def handle(request: DescribeLogDirsRequest, ctx: RequestContext) -> DescribeLogDirsResponse:
    """Return each directory with its size and its replicas."""
    broker = ctx.broker
    broker.directories.make_logs()
    wanted = None if request.topics is None else {(t.topic, index) for t in request.topics for index in t.partitions}
    held = [
        (each, is_future)
        for is_future in (False, True)
        for each in broker.logs.held(future=is_future)
        if wanted is None or each.topic_partition in wanted
    ]
    described = [_describe(ctx, log_dir.directory_id, held) for log_dir in broker.config.log_dirs]
    return DescribeLogDirsResponse(results=[*described, *map(_offline, broker.config.offline_log_dirs)])


def offset_lag(logs: Logs, held: HeldLog, is_future: bool) -> int:
    """Return a log's lag: the current one's behind the high watermark, the future one's behind the current end.

    -1 for a future log without a current one.
    """
    current = logs.log(held.key)
    if current is None:
        return -1
    if is_future:
        return current.end_offset - held.log.end_offset
    return max(current.high_watermark - held.log.end_offset, 0)


def _describe(ctx: RequestContext, directory_id: bytes, held: list[tuple[HeldLog, bool]]) -> DescribeLogDirsResult:
    broker = ctx.broker
    log_dir = broker.logs.log_dir(directory_id)
    if log_dir.offline is not None or not broker.directories.is_live(directory_id):
        return _offline(log_dir.path)
    topics: dict[str, list[DescribeLogDirsPartition]] = {}
    for each, is_future in held:
        if each.log_dir is log_dir:
            topics.setdefault(each.topic, []).append(
                DescribeLogDirsPartition(
                    partition_index=each.key[1],
                    partition_size=each.log.size_bytes,
                    offset_lag=offset_lag(broker.logs, each, is_future),
                    is_future_key=is_future,
                )
            )
    try:
        space = log_dir.disk.space()
    except OSError:
        # As in Kafka: only its own exceptions have a code of their own.
        return DescribeLogDirsResult(error_code=error_codes.UNKNOWN_SERVER_ERROR, log_dir=log_dir.path)
    return DescribeLogDirsResult(
        log_dir=log_dir.path,
        topics=[DescribeLogDirsTopic(name=topic, partitions=partitions) for topic, partitions in topics.items()],
        total_bytes=space.total_bytes,
        usable_bytes=space.usable_bytes,
        is_cordoned=ctx.image.has(Behaviour.CORDONED_LOG_DIRS) and broker.directories.is_cordoned(directory_id),
    )


def _offline(path: str) -> DescribeLogDirsResult:
    return DescribeLogDirsResult(error_code=error_codes.KAFKA_STORAGE_ERROR, log_dir=path)


API = Api(DescribeLogDirsRequest, DescribeLogDirsResponse, handle, needs=(Need(AclOperation.DESCRIBE),))
