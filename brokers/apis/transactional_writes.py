"""The first step of Produce: its batches are checked, and those that begin a transaction verified (KIP-890).

The coordinator says whether the partition is in the producer's transaction; for newer clients it adds the partition.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeVar

from mockraft.brokers.apis.api import ApiError, Parked, RequestContext, parked
from mockraft.brokers.apis.leaders import check_topic
from mockraft.brokers.assignments import ReplicaKey
from mockraft.brokers.coordinators.transaction import Producer, TopicPartition
from mockraft.brokers.coordinators.verification import ClientSupport
from mockraft.brokers.image import Topic
from mockraft.brokers.log_dirs.errors import LogError
from mockraft.brokers.log_dirs.produced_batches import read_produced
from mockraft.brokers.partitions.hosted import HostedPartition
from mockraft.brokers.partitions.producers import Verification
from mockraft.kafka_api.api import NEVER_MS
from mockraft.kafka_api.authorization.acl_types import AclOperation
from mockraft.wire import error_codes
from mockraft.wire.messages.produce_request import ProduceRequest, TopicProduceData
from mockraft.wire.record_batch import COMPRESSION, BatchHeader

TOPIC_IDS_FROM: Final = 13
ZSTD_FROM: Final = 7
ZSTD: Final = 4
SUPPORT_FROM: Final = ((12, ClientSupport.ADDS_BY_LEADER), (11, ClientSupport.ABORTABLE_ERROR))
RETRIABLE: Final = frozenset(
    {
        error_codes.NETWORK_EXCEPTION,
        error_codes.COORDINATOR_LOAD_IN_PROGRESS,
        error_codes.COORDINATOR_NOT_AVAILABLE,
        error_codes.NOT_COORDINATOR,
    }
)
"""Errors of a verification that a producer may not know; it repeats the request after NOT_ENOUGH_REPLICAS."""
T = TypeVar("T")


class Verified:
    """The result for one request. `support` are the transactions that the client knows."""

    def __init__(self, support: ClientSupport) -> None:
        self.support = support
        self._producer_id = -1
        self._guards: dict[ReplicaKey, Verification] = {}
        self._errors: dict[ReplicaKey, LogError] = {}

    def check(self, key: ReplicaKey) -> None:
        """Raise LogError for a partition that is not in the transaction."""
        if key in self._errors:
            raise self._errors[key]

    def is_verified(self, hosted: HostedPartition) -> bool:
        """Return True if a transaction may begin in the partition."""
        return hosted.producers.is_verified(self._producer_id, self._guards.get(hosted.key))

    def begin(self, hosted: HostedPartition, header: BatchHeader) -> bool:
        """Begin to verify a partition; return False if its batch is refused: it is of an older epoch."""
        self._producer_id = header.producer_id
        try:
            self._guards[hosted.key] = hosted.producers.begin_verification(
                header.producer_id,
                header.producer_epoch,
                header.base_sequence,
                starts_at_zero=self.support is ClientSupport.ADDS_BY_LEADER,
            )
        except LogError as refused:
            self.refuse(hosted.key, refused.error_code)
            return False
        return True

    def refuse(self, key: ReplicaKey, code: int) -> None:
        """Note the error of a partition."""
        self._errors[key] = _refusal(code, self.support)


def verified(
    request: ProduceRequest, ctx: RequestContext, append: Callable[[Verified], T | Parked[T]]
) -> T | Parked[T]:
    """Call `append` once the partitions that need it are verified; return its result.

    ApiError INVALID_PRODUCER_ID_MAPPING for transactional batches of several producers, or of several epochs.
    """
    support = next((it for version, it in SUPPORT_FROM if ctx.api_version >= version), ClientSupport.OLD_ERRORS)
    result = Verified(support)
    headers = _transactional(request, ctx)
    producers = {Producer(header.producer_id, header.producer_epoch) for _, _, header in headers}
    beginning: dict[TopicPartition, ReplicaKey] = {}
    verified_batches: list[tuple[HostedPartition, BatchHeader]] = []
    if len(producers) > 1:
        raise ApiError(error_codes.INVALID_PRODUCER_ID_MAPPING)
    for hosted, topic, header in headers:
        if hosted.producers.is_in_transaction(header.producer_id, header.producer_epoch):
            continue
        if result.begin(hosted, header):
            beginning[topic, hosted.key[1]] = hosted.key
            verified_batches.append((hosted, header))
    if not beginning:
        return append(result)

    def begin_again() -> None:
        # The marker of the last transaction makes an earlier verification void.
        for hosted, header in verified_batches:
            result.begin(hosted, header)

    waiting = ctx.broker.verifier.verify(
        request.transactional_id or "", next(iter(producers)), frozenset(beginning), support, begin_again
    )

    def retry(now_ms: int, _expired: bool) -> T | Parked[T] | None:
        errors: Mapping[TopicPartition, int] | None = waiting.result()
        if errors is None:
            return None
        for partition, code in errors.items():
            if code != error_codes.NONE:
                result.refuse(beginning[partition], code)
        ctx.now_ms = now_ms
        return append(result)

    response = retry(ctx.now_ms, False)
    return parked(NEVER_MS, retry) if response is None else response


def _transactional(request: ProduceRequest, ctx: RequestContext) -> list[tuple[HostedPartition, str, BatchHeader]]:
    """Return the transactional batches with their partition and topic, without those that are refused anyway."""
    found = []
    for topic in request.topic_data:
        for partition in topic.partition_data:
            try:
                known = topic_of(ctx, topic)
                header = check(bytes(partition.records or b""), ctx.api_version)
                hosted = ctx.broker.replicas.find((known.topic_id, partition.index))
                # Only the leader knows its producers.
                hosted.check_epoch(-1, only_leader=True)
                _ = hosted.log
            except LogError:
                continue
            if header.is_transactional and header.producer_id >= 0:
                found.append((hosted, known.name, header))
    return found


def topic_of(ctx: RequestContext, topic: TopicProduceData) -> Topic:
    """Return the topic that a request names, or gives the id of. Raises LogError."""
    if ctx.api_version >= TOPIC_IDS_FROM:
        known, code, message = ctx.image.topics.get(topic.topic_id), error_codes.UNKNOWN_TOPIC_ID, "id"
    else:
        check_topic(ctx, AclOperation.WRITE, topic.name)
        known, code = ctx.image.topics_by_name.get(topic.name), error_codes.UNKNOWN_TOPIC_OR_PARTITION
        message = "name"
    if known is None:
        raise LogError(code, f"no topic has this {message}")
    check_topic(ctx, AclOperation.WRITE, known.name)
    return known


def check(records: bytes, version: int) -> BatchHeader:
    """Return the header; refuse what Kafka refuses before the partition (ProduceRequest.validateRecords). LogError."""
    headers = read_produced(records)
    if len(headers) != 1:
        raise LogError(
            error_codes.INVALID_RECORD,
            f"Produce requests with version {version} are only allowed to contain exactly one record batch per"
            " partition",
        )
    if headers[0].attributes & COMPRESSION == ZSTD and version < ZSTD_FROM:
        raise LogError(
            error_codes.UNSUPPORTED_COMPRESSION_TYPE,
            f"Produce requests with version {version} are not allowed to use ZStandard compression",
        )
    return headers[0]


def _refusal(code: int, support: ClientSupport) -> LogError:
    """Return the error of a batch whose transaction was not verified (ReplicaManager.handleProduceAppend)."""
    is_concurrent = code == error_codes.CONCURRENT_TRANSACTIONS and support is not ClientSupport.ADDS_BY_LEADER
    if code in RETRIABLE or is_concurrent:
        return LogError(
            error_codes.NOT_ENOUGH_REPLICAS,
            "Unable to verify the partition has been added to the transaction. Underlying error:"
            f" {error_codes.name(code)}",
        )
    if code == error_codes.INVALID_TXN_STATE:
        return LogError(code, "Partition was not added to the transaction")
    return LogError(code, error_codes.message(code))
