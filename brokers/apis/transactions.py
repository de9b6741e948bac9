"""InitProducerId (22), AddPartitionsToTxn (24), AddOffsetsToTxn (25), EndTxn (26): requests of transactional producers.

KIP-98, KIP-360 (producers go on after an error), KIP-588 (PRODUCER_FENCED), KIP-730 (blocks of producer ids), KIP-890
(leaders ask for partitions from version 4 of AddPartitionsToTxn on; an epoch per transaction from version 5 of EndTxn
on). The coordinator is in `brokers.coordinators`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeVar

from mockraft.brokers.apis.api import READ_GROUP, WRITE_TRANSACTIONAL_ID, AnyApi, Api, ApiError, Parked, RequestContext
from mockraft.brokers.coordinators.transaction import NO_PRODUCER_ID, Producer, TopicPartition, Transaction
from mockraft.brokers.coordinators.waiting import Waiting
from mockraft.brokers.partitions.partition import NO_EPOCH
from mockraft.kafka_api.api import NEVER_MS
from mockraft.kafka_api.authorization.acl_types import AclOperation, ResourceType
from mockraft.wire import api_keys, error_codes
from mockraft.wire.messages.add_offsets_to_txn_request import AddOffsetsToTxnRequest
from mockraft.wire.messages.add_offsets_to_txn_response import AddOffsetsToTxnResponse
from mockraft.wire.messages.add_partitions_to_txn_request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from mockraft.wire.messages.add_partitions_to_txn_response import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
)
from mockraft.wire.messages.end_txn_request import EndTxnRequest
from mockraft.wire.messages.end_txn_response import EndTxnResponse
from mockraft.wire.messages.init_producer_id_request import InitProducerIdRequest
from mockraft.wire.messages.init_producer_id_response import InitProducerIdResponse
from mockraft.wire.topic_names import GROUP_METADATA, INTERNAL

INIT_VERSION_MAX = 5
"""Version 6 is not stable."""
FENCED_FROM: Final = {
    api_keys.INIT_PRODUCER_ID: 4,
    api_keys.ADD_PARTITIONS_TO_TXN: 2,
    api_keys.ADD_OFFSETS_TO_TXN: 2,
    api_keys.END_TXN: 2,
}
"""The first version whose clients know PRODUCER_FENCED."""
FOR_BROKERS_FROM = 4
EPOCH_PER_TRANSACTION_FROM = 5
ResponseT = TypeVar("ResponseT")
T = TypeVar("T")


def initialize(
    request: InitProducerIdRequest, ctx: RequestContext
) -> InitProducerIdResponse | Parked[InitProducerIdResponse]:
    """Return a producer id and epoch: a new id for an idempotent producer, the next epoch for a transactional one."""
    if request.transactional_id is not None:
        ctx.check(AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id)
    elif not ctx.may_any(AclOperation.WRITE, ResourceType.TOPIC):
        ctx.check(AclOperation.IDEMPOTENT_WRITE, ResourceType.CLUSTER)
    given = (request.producer_id != NO_PRODUCER_ID, request.producer_epoch != NO_EPOCH)
    if given in ((True, False), (False, True)):
        raise ApiError(error_codes.INVALID_REQUEST)
    if request.transactional_id is None:
        return _new_id(request, ctx)
    expected = Producer(request.producer_id, request.producer_epoch) if all(given) else None

    def respond(producer: Producer) -> InitProducerIdResponse:
        return InitProducerIdResponse(producer_id=producer.producer_id, producer_epoch=producer.epoch)

    transactional_id, timeout_ms = request.transactional_id, request.transaction_timeout_ms
    begin = functools.partial(ctx.broker.transactions.initialize, transactional_id, timeout_ms, expected)
    return _answered(ctx, begin, respond)


def _new_id(
    request: InitProducerIdRequest, ctx: RequestContext
) -> InitProducerIdResponse | Parked[InitProducerIdResponse]:
    answers: list[int | None] = []
    ctx.broker.producer_ids.next_id(answers.append)

    def retry(_now_ms: int, _expired: bool) -> InitProducerIdResponse | None:
        if not answers:
            return None
        if answers[0] is None:
            return _initialize_error(request, error_codes.COORDINATOR_LOAD_IN_PROGRESS, None)
        return InitProducerIdResponse(producer_id=answers[0], producer_epoch=0)

    return retry(ctx.now_ms, False) or Parked(NEVER_MS, retry)


def add_offsets(
    request: AddOffsetsToTxnRequest, ctx: RequestContext
) -> AddOffsetsToTxnResponse | Parked[AddOffsetsToTxnResponse]:
    """Add the partition of a group's offsets to the transaction."""
    partition = (GROUP_METADATA, ctx.broker.groups.log.partition_of(request.group_id))
    producer = Producer(request.producer_id, request.producer_epoch)
    add = functools.partial(ctx.broker.transactions.add, request.transactional_id, producer, frozenset((partition,)), 0)
    return _answered(ctx, add, lambda _: AddOffsetsToTxnResponse())


def end(request: EndTxnRequest, ctx: RequestContext) -> EndTxnResponse | Parked[EndTxnResponse]:
    """Commit or abort a transaction; from version 5 on the producer gets its next epoch."""
    has_epochs = ctx.api_version >= EPOCH_PER_TRANSACTION_FROM
    producer = Producer(request.producer_id, request.producer_epoch)

    def respond(ended: Transaction) -> EndTxnResponse:
        if not has_epochs:
            return EndTxnResponse()
        if ended.next_producer_id != NO_PRODUCER_ID:
            return EndTxnResponse(producer_id=ended.next_producer_id, producer_epoch=0)
        return EndTxnResponse(producer_id=ended.producer_id, producer_epoch=ended.producer_epoch)

    version = 2 if has_epochs else 0
    begin = functools.partial(
        ctx.broker.transactions.end, request.transactional_id, producer, version, is_commit=request.committed
    )
    return _answered(ctx, begin, respond)


def add_partitions(
    request: AddPartitionsToTxnRequest, ctx: RequestContext
) -> AddPartitionsToTxnResponse | Parked[AddPartitionsToTxnResponse]:
    """Add partitions to transactions, or verify that they have them; several transactions for brokers."""
    if ctx.api_version < FOR_BROKERS_FROM:
        ctx.check(AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, request.v3_and_below_transactional_id)
        transactions = [
            AddPartitionsToTxnTransaction(
                transactional_id=request.v3_and_below_transactional_id,
                producer_id=request.v3_and_below_producer_id,
                producer_epoch=request.v3_and_below_producer_epoch,
                topics=request.v3_and_below_topics,
            )
        ]
    else:
        ctx.check(AclOperation.CLUSTER_ACTION, ResourceType.CLUSTER)
        transactions = request.transactions
    # Results are by transactional id; of several entries the last counts.
    results = {each.transactional_id: _added(each, ctx) for each in transactions}

    def retry(_now_ms: int, _expired: bool) -> AddPartitionsToTxnResponse | None:
        found = {transactional_id: result() for transactional_id, result in results.items()}
        if None in found.values():
            return None
        topics = {name: _topic_results(errors or {}) for name, errors in found.items()}
        if ctx.api_version < FOR_BROKERS_FROM:
            return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=next(iter(topics.values())))
        return AddPartitionsToTxnResponse(
            results_by_transaction=[
                AddPartitionsToTxnResult(transactional_id=name, topic_results=of_topics)
                for name, of_topics in topics.items()
            ]
        )

    return retry(ctx.now_ms, False) or Parked(NEVER_MS, retry)


Result = Callable[[], "Mapping[TopicPartition, int] | None"]


def _added(transaction: AddPartitionsToTxnTransaction, ctx: RequestContext) -> Result:
    """Add or verify the partitions of one transaction; return a function that returns the errors once there are any."""
    partitions = _partitions(transaction.topics)
    errors = {each: _refusal(each, ctx) or error_codes.OPERATION_NOT_ATTEMPTED for each in partitions}
    if any(code != error_codes.OPERATION_NOT_ATTEMPTED for code in errors.values()):
        return lambda: errors
    transactional_id, coordinator = transaction.transactional_id, ctx.broker.transactions
    producer = Producer(transaction.producer_id, transaction.producer_epoch)
    try:
        if transaction.verify_only:
            verified = coordinator.verify(transactional_id, producer, partitions)
            return lambda: verified
        version = 2 if ctx.api_version >= FOR_BROKERS_FROM else 0
        waiting = coordinator.add(transactional_id, producer, partitions, version)
    except ApiError as refused:
        code = _known_code(ctx, refused)
        return lambda: dict.fromkeys(partitions, code)

    def result() -> Mapping[TopicPartition, int] | None:
        try:
            return dict.fromkeys(partitions, error_codes.NONE) if waiting.result() is not None else None
        except ApiError as refused:
            return dict.fromkeys(partitions, _known_code(ctx, refused))

    return result


def _refusal(partition: TopicPartition, ctx: RequestContext) -> int:
    """Return the error for a partition that does not exist, or whose topic a client may not write; 0 for none."""
    is_client, (name, index) = ctx.api_version < FOR_BROKERS_FROM, partition
    if is_client and (name in INTERNAL or not ctx.may(AclOperation.WRITE, ResourceType.TOPIC, name)):
        return error_codes.TOPIC_AUTHORIZATION_FAILED
    topic = ctx.image.topics_by_name.get(name)
    is_known = topic is not None and index in topic.partitions
    return error_codes.NONE if is_known else error_codes.UNKNOWN_TOPIC_OR_PARTITION


def _partitions(topics: Iterable[AddPartitionsToTxnTopic]) -> frozenset[TopicPartition]:
    return frozenset((topic.name, index) for topic in topics for index in topic.partitions)


def _topic_results(errors: Mapping[TopicPartition, int]) -> list[AddPartitionsToTxnTopicResult]:
    topics: dict[str, AddPartitionsToTxnTopicResult] = {}
    for (name, index), code in errors.items():
        topic = topics.setdefault(name, AddPartitionsToTxnTopicResult(name=name))
        result = AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=code)
        topic.results_by_partition.append(result)
    return list(topics.values())


def _answered(
    ctx: RequestContext, begin: Callable[[], Waiting[T]], respond: Callable[[T], ResponseT]
) -> ResponseT | Parked[ResponseT]:
    """Return the response of the coordinator, at once or later, with errors that the client's version knows."""

    try:
        waiting = begin()
    except ApiError as refused:
        raise ApiError(_known_code(ctx, refused)) from None

    def retry(_now_ms: int, _expired: bool) -> ResponseT | None:
        try:
            result = waiting.result()
        except ApiError as refused:
            raise ApiError(_known_code(ctx, refused)) from None
        return None if result is None else respond(result)

    response = retry(ctx.now_ms, False)
    return Parked(NEVER_MS, retry) if response is None else response


def _known_code(ctx: RequestContext, refused: ApiError) -> int:
    is_new = refused.error_code == error_codes.PRODUCER_FENCED and ctx.api_version < FENCED_FROM[ctx.api_key]
    return error_codes.INVALID_PRODUCER_EPOCH if is_new else refused.error_code


def _initialize_error(_request: InitProducerIdRequest, error_code: int, _message: str | None) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=error_code, producer_id=NO_PRODUCER_ID, producer_epoch=NO_EPOCH)


def _add_error(request: AddPartitionsToTxnRequest, error_code: int, _message: str | None) -> AddPartitionsToTxnResponse:
    errors = dict.fromkeys(_partitions(request.v3_and_below_topics), error_code)
    return AddPartitionsToTxnResponse(error_code=error_code, results_by_topic_v3_and_below=_topic_results(errors))


APIS: Final[tuple[AnyApi, ...]] = (
    Api(InitProducerIdRequest, InitProducerIdResponse, initialize, _initialize_error, max_version=INIT_VERSION_MAX),
    Api(AddPartitionsToTxnRequest, AddPartitionsToTxnResponse, add_partitions, _add_error),
    Api(AddOffsetsToTxnRequest, AddOffsetsToTxnResponse, add_offsets, needs=(WRITE_TRANSACTIONAL_ID, READ_GROUP)),
    Api(EndTxnRequest, EndTxnResponse, end, needs=(WRITE_TRANSACTIONAL_ID,)),
)
"""In the order of a producer's requests."""
