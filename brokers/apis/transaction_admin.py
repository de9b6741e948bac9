"""DescribeTransactions (65), ListTransactions (66), DescribeProducers (61): transactions as administrators see them.

KIP-664, KIP-994 (filter by duration), KIP-1152 (filter by a pattern of the transactional id).
"""

from __future__ import annotations

from typing import Final

from mockraft.brokers.apis.api import AnyApi, Api, ApiError, RequestContext
from mockraft.brokers.apis.leaders import check_topic, topic_by_name
from mockraft.brokers.coordinators.transaction import Transaction, TransactionState
from mockraft.brokers.log_dirs.errors import LogError
from mockraft.kafka_api.authorization.acl_types import AclOperation, ResourceType
from mockraft.kafka_api.error_responses import Items, error_for_each
from mockraft.kafka_api.linear_patterns import PatternError, compiled
from mockraft.wire import error_codes, topic_names
from mockraft.wire.messages.describe_producers_request import DescribeProducersRequest, TopicRequest
from mockraft.wire.messages.describe_producers_response import (
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from mockraft.wire.messages.describe_transactions_request import DescribeTransactionsRequest
from mockraft.wire.messages.describe_transactions_response import DescribeTransactionsResponse, TopicData
from mockraft.wire.messages.describe_transactions_response import TransactionState as DescribedTransaction
from mockraft.wire.messages.list_transactions_request import ListTransactionsRequest
from mockraft.wire.messages.list_transactions_response import ListTransactionsResponse
from mockraft.wire.messages.list_transactions_response import TransactionState as ListedTransaction

NO_OFFSET = -1


def describe(request: DescribeTransactionsRequest, ctx: RequestContext) -> DescribeTransactionsResponse:
    """Describe the latest transactions of transactional ids."""
    return DescribeTransactionsResponse(
        transaction_states=[_described(transactional_id, ctx) for transactional_id in request.transactional_ids]
    )


def list_transactions(request: ListTransactionsRequest, ctx: RequestContext) -> ListTransactionsResponse:
    """List the transactions that this broker coordinates; an empty filter lets all pass."""
    if ctx.broker.transactions.log.is_loading:
        raise ApiError(error_codes.COORDINATOR_LOAD_IN_PROGRESS)
    by_title = {state.title: state for state in TransactionState}
    states = {by_title[title] for title in request.state_filters if title in by_title}
    producer_ids = set(request.producer_id_filters)
    try:
        pattern = compiled(request.transactional_id_pattern or "", whole=bool(request.transactional_id_pattern))
    except PatternError as wrong:
        raise ApiError(error_codes.INVALID_REGULAR_EXPRESSION) from wrong

    def passes(transactional_id: str, known: Transaction) -> bool:
        return (
            (not producer_ids or known.producer_id in producer_ids)
            and (not request.state_filters or known.state in states)
            and (request.duration_filter < 0 or ctx.now_ms - known.start_ms > request.duration_filter)
            and pattern.search(transactional_id)
            and ctx.may(AclOperation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, transactional_id)
        )

    return ListTransactionsResponse(
        unknown_state_filters=[title for title in request.state_filters if title not in by_title],
        transaction_states=[
            ListedTransaction(
                transactional_id=transactional_id, producer_id=known.producer_id, transaction_state=known.state.title
            )
            for transactional_id, known in ctx.broker.transactions
            if passes(transactional_id, known)
        ],
    )


def describe_producers(request: DescribeProducersRequest, ctx: RequestContext) -> DescribeProducersResponse:
    """Describe the producers of partitions that this broker leads."""
    return DescribeProducersResponse(
        topics=[
            TopicResponse(
                name=topic.name, partitions=[_producers(topic, index, ctx) for index in topic.partition_indexes]
            )
            for topic in request.topics
        ]
    )


def _described(transactional_id: str, ctx: RequestContext) -> DescribedTransaction:
    try:
        ctx.check(AclOperation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, transactional_id)
        if not transactional_id:
            raise ApiError(error_codes.INVALID_REQUEST)
        known = ctx.broker.transactions.find(transactional_id)
        if known is None:
            raise ApiError(error_codes.TRANSACTIONAL_ID_NOT_FOUND)
    except ApiError as refused:
        return DescribedTransaction(transactional_id=transactional_id, error_code=refused.error_code)
    topics: dict[str, TopicData] = {}
    for name, index in sorted(known.partitions):
        if ctx.may(AclOperation.DESCRIBE, ResourceType.TOPIC, name):
            topics.setdefault(name, TopicData(topic=name)).partitions.append(index)
    return DescribedTransaction(
        transactional_id=transactional_id,
        transaction_state=known.state.title,
        transaction_timeout_ms=known.timeout_ms,
        transaction_start_time_ms=known.start_ms,
        producer_id=known.producer_id,
        producer_epoch=known.producer_epoch,
        topics=list(topics.values()),
    )


def _producers(topic: TopicRequest, index: int, ctx: RequestContext) -> PartitionResponse:
    try:
        if topic_names.reason_invalid(topic.name) is not None:
            raise LogError(error_codes.INVALID_TOPIC_EXCEPTION, "")
        check_topic(ctx, AclOperation.READ, topic.name)
        hosted = ctx.broker.replicas.find((topic_by_name(ctx, topic.name).topic_id, index))
        hosted.check_epoch(NO_OFFSET, only_leader=True)
        producers = hosted.producers
    except LogError as refused:
        return PartitionResponse(
            partition_index=index, error_code=refused.error_code, error_message=error_codes.message(refused.error_code)
        )
    return PartitionResponse(
        partition_index=index,
        active_producers=[
            ProducerState(
                producer_id=producer_id,
                producer_epoch=producer.epoch,
                last_sequence=producer.last_sequence,
                last_timestamp=producer.timestamp_ms,
                coordinator_epoch=producer.coordinator_epoch,
                current_txn_start_offset=NO_OFFSET
                if producer.transaction_start is None
                else producer.transaction_start,
            )
            for producer_id, producer in producers
        ],
    )


_describe_error = error_for_each(
    DescribeTransactionsResponse, Items("transactional_ids", "transaction_states", ("transactional_id",))
)


_producers_error = error_for_each(
    DescribeProducersResponse,
    Items("topics", "topics", ("name",)),
    Items("partition_indexes", "partitions", ("partition_index",)),
)


APIS: Final[tuple[AnyApi, ...]] = (
    Api(DescribeTransactionsRequest, DescribeTransactionsResponse, describe, _describe_error),
    Api(ListTransactionsRequest, ListTransactionsResponse, list_transactions),
    Api(DescribeProducersRequest, DescribeProducersResponse, describe_producers, _producers_error),
)
