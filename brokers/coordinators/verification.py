"""Verification of transactional writes with the transaction's coordinator (Kafka's AddPartitionsToTxnManager, KIP-890).

The leader of a partition asks whether the partition is in the producer's transaction, or adds it: clients of
transaction.version 2 do not add partitions themselves.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum
from typing import Final, NamedTuple

from mockraft.brokers.coordinators.broker_channels import BrokerChannels
from mockraft.brokers.coordinators.state_log import StateLog
from mockraft.brokers.coordinators.transaction import Producer, TopicPartition
from mockraft.brokers.coordinators.waiting import Waiting
from mockraft.brokers.core import Core
from mockraft.brokers.effects import Versions
from mockraft.brokers.partitions.replicas import Replicas
from mockraft.wire import error_codes
from mockraft.wire.connection import version_for
from mockraft.wire.errors import UnsupportedVersionError
from mockraft.wire.messages.add_partitions_to_txn_request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from mockraft.wire.messages.add_partitions_to_txn_response import (
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
)

ENABLED: Final = "transaction.partition.verification.enable"
RETRY_BACKOFF_MS: Final = ("add.partitions.to.txn.retry.backoff.ms", 20)
RETRY_BACKOFF_MAX_MS: Final = ("add.partitions.to.txn.retry.backoff.max.ms", 100)
BATCHED_FROM: Final = 4
"""The first version of AddPartitionsToTxn for brokers."""
Errors = Mapping[TopicPartition, int]


class ClientSupport(IntEnum):
    """Kafka's TransactionSupportedOperation: the transactions that the client's version of a request knows."""

    OLD_ERRORS = 0
    ABORTABLE_ERROR = 1
    ADDS_BY_LEADER = 2


class _Verification(NamedTuple):
    transactional_id: str
    producer: Producer
    partitions: frozenset[TopicPartition]
    support: ClientSupport
    waiting: Waiting[Errors]
    retry_until_ms: float
    retried: Callable[[], None]


class Verifier:
    """Asks coordinators, about several transactions in one request. `changed` is called with each result."""

    def __init__(
        self, core: Core, replicas: Replicas, log: StateLog, timeout_ms: int, changed: Callable[[], None]
    ) -> None:
        properties = core.config.properties
        self._kernel = core.kernel
        self._channels = BrokerChannels(core, replicas, "add-partitions-to-txn", timeout_ms)
        self._log = log
        self._is_enabled = properties.get(ENABLED, "true").lower() == "true"
        self._backoff_ms, self._backoff_max_ms = (
            int(properties.get(name, default)) for name, default in (RETRY_BACKOFF_MS, RETRY_BACKOFF_MAX_MS)
        )
        self._queues: dict[int, list[_Verification]] = {}
        self._retries = 0
        self._changed = changed

    def verify(
        self,
        transactional_id: str,
        producer: Producer,
        partitions: frozenset[TopicPartition],
        support: ClientSupport,
        retried: Callable[[], None] = lambda: None,
    ) -> Waiting[Errors]:
        """Return the error by partition, NONE for those in the transaction; `retried` is called before each retry."""
        waiting: Waiting[Errors] = Waiting()
        if not self._is_enabled and support is not ClientSupport.ADDS_BY_LEADER:
            waiting.resolve(dict.fromkeys(partitions, error_codes.NONE))
            return waiting
        until_ms = self._kernel.now_ms + self._backoff_max_ms
        self._enqueue(_Verification(transactional_id, producer, partitions, support, waiting, until_ms, retried))
        return waiting

    def close(self) -> None:
        """Close the connections."""
        self._queues.clear()
        self._channels.close()

    def _enqueue(self, each: _Verification) -> None:
        coordinator = self._log.leader_of(each.transactional_id)
        if coordinator is None or not self._channels.is_reachable(coordinator):
            self._resolve([each], error_codes.COORDINATOR_NOT_AVAILABLE)
            return
        self._queues.setdefault(coordinator, []).append(each)
        self._send(coordinator)

    def _send(self, coordinator: int) -> None:
        queue = self._queues.pop(coordinator, [])
        if not queue or self._channels.is_busy(coordinator):
            if queue:
                self._queues[coordinator] = queue
            return
        if not self._channels.is_reachable(coordinator):
            self._resolve(queue, error_codes.COORDINATOR_NOT_AVAILABLE)
            return
        # Results are by transactional id, so that each may be there once.
        asked: dict[str, _Verification] = {}
        later = [each for each in queue if asked.setdefault(each.transactional_id, each) is not each]
        if later:
            self._queues[coordinator] = later
        self._channels.send(
            coordinator,
            functools.partial(_request, asked.values()),
            functools.partial(self._answered, coordinator, asked),
            functools.partial(self._failed, coordinator, asked),
        )

    def _answered(
        self, coordinator: int, asked: Mapping[str, _Verification], response: AddPartitionsToTxnResponse
    ) -> None:
        self._send(coordinator)
        if response.error_code != error_codes.NONE:
            is_refused = response.error_code == error_codes.CLUSTER_AUTHORIZATION_FAILED
            self._resolve(asked.values(), error_codes.INVALID_TXN_STATE if is_refused else response.error_code)
            return
        results = {result.transactional_id: result.topic_results for result in response.results_by_transaction}
        for transactional_id, each in asked.items():
            self._result(each, results.get(transactional_id, ()))

    def _result(self, each: _Verification, topics: Iterable[AddPartitionsToTxnTopicResult]) -> None:
        # A partition that is left out is in the transaction.
        errors = dict.fromkeys(each.partitions, error_codes.NONE)
        for topic in topics:
            for partition in topic.results_by_partition:
                code = _for_client(partition.partition_error_code, each.support)
                errors[topic.name, partition.partition_index] = code
        is_concurrent = error_codes.CONCURRENT_TRANSACTIONS in errors.values()
        if is_concurrent and self._kernel.now_ms < each.retry_until_ms and each.support is ClientSupport.ADDS_BY_LEADER:
            # The last transaction's markers are being written: the client would only come again.
            self._retries += 1
            self._kernel.after(("verify", self._retries), self._backoff_ms, functools.partial(self._retry, each))
            return
        each.waiting.resolve(errors)
        self._changed()

    def _retry(self, each: _Verification) -> None:
        each.retried()
        self._enqueue(each)

    def _failed(self, coordinator: int, asked: Mapping[str, _Verification], error: Exception) -> None:
        is_old = isinstance(error, UnsupportedVersionError)
        self._resolve(asked.values(), error_codes.INVALID_TXN_STATE if is_old else error_codes.NETWORK_EXCEPTION)
        self._send(coordinator)

    def _resolve(self, verifications: Iterable[_Verification], code: int) -> None:
        for each in verifications:
            each.waiting.resolve(dict.fromkeys(each.partitions, code))
        self._changed()


def _for_client(code: int, support: ClientSupport) -> int:
    if code == error_codes.PRODUCER_FENCED:
        # Producers know this one in responses to their writes.
        return error_codes.INVALID_PRODUCER_EPOCH
    if code == error_codes.TRANSACTION_ABORTABLE and support is ClientSupport.OLD_ERRORS:
        return error_codes.INVALID_TXN_STATE
    return code


def _request(asked: Iterable[_Verification], versions: Versions) -> AddPartitionsToTxnRequest:
    if version_for(AddPartitionsToTxnRequest, versions) < BATCHED_FROM:
        raise UnsupportedVersionError("the coordinator cannot verify transactions")
    return AddPartitionsToTxnRequest(transactions=[_transaction(each) for each in asked])


def _transaction(each: _Verification) -> AddPartitionsToTxnTransaction:
    topics: dict[str, list[int]] = {}
    for topic, index in sorted(each.partitions):
        topics.setdefault(topic, []).append(index)
    return AddPartitionsToTxnTransaction(
        transactional_id=each.transactional_id,
        producer_id=each.producer.producer_id,
        producer_epoch=each.producer.epoch,
        verify_only=each.support is not ClientSupport.ADDS_BY_LEADER,
        topics=[AddPartitionsToTxnTopic(name=name, partitions=indexes) for name, indexes in topics.items()],
    )
