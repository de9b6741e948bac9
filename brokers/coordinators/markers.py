"""The markers that end transactions in their partitions (Kafka's TransactionMarkerChannelManager).

Each leader gets one request at a time, with the markers of all transactions that have a partition there. A marker is
sent until it is written, or cannot be: its partition was deleted, or another coordinator has taken over.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from typing import Final, NamedTuple

from mockraft.brokers.coordinators.broker_channels import BrokerChannels
from mockraft.brokers.coordinators.transaction import TopicPartition, Transaction, TransactionState
from mockraft.brokers.core import Core
from mockraft.brokers.effects import Versions
from mockraft.brokers.partitions.replicas import Replicas
from mockraft.wire import error_codes
from mockraft.wire.messages.write_txn_markers_request import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from mockraft.wire.messages.write_txn_markers_response import WriteTxnMarkersResponse

RETRY_MS: Final = 100
WRITTEN: Final = frozenset(
    {error_codes.NONE, error_codes.UNSUPPORTED_FOR_MESSAGE_FORMAT, error_codes.UNSUPPORTED_VERSION}
)
FENCED: Final = frozenset({error_codes.INVALID_PRODUCER_EPOCH, error_codes.TRANSACTION_COORDINATOR_FENCED})
"""The producer or the coordinator has a later epoch: the transaction is ended by others."""

_log = logging.getLogger(__name__)


class _Ending(NamedTuple):
    """An ended transaction; `left` are the partitions without a marker."""

    transaction: Transaction
    coordinator_epoch: int
    left: set[TopicPartition]


class _Sent(NamedTuple):
    """A transaction's marker in a request."""

    transactional_id: str
    ending: _Ending
    partitions: frozenset[TopicPartition]


class Markers:
    """Sends markers. `written(id, partition)` is called for each, `all_written(id)` after the last.

    Neither is called before `send` returns.
    """

    def __init__(
        self,
        core: Core,
        replicas: Replicas,
        timeout_ms: int,
        written: Callable[[str, TopicPartition], None],
        all_written: Callable[[str], None],
    ) -> None:
        assert core.image is not None
        self._image = core.image
        self._kernel = core.kernel
        self._channels = BrokerChannels(core, replicas, "txn-marker-sender", timeout_ms)
        self._written = written
        self._all_written = all_written
        self._endings: dict[str, _Ending] = {}
        self._in_flight: dict[int, list[_Sent]] = {}

    def send(self, transactional_id: str, transaction: Transaction, coordinator_epoch: int) -> None:
        """Write the markers of an ended transaction."""
        self._endings[transactional_id] = _Ending(transaction, coordinator_epoch, set(transaction.partitions))
        self._send_soon()

    def cancel(self, transactional_id: str) -> None:
        """Send no more markers of this transaction."""
        self._endings.pop(transactional_id, None)

    def metadata_advanced(self) -> None:
        """Try again: a partition may have a leader now."""
        if self._endings:
            self._send_soon()

    def close(self) -> None:
        """Close the connections."""
        self._endings.clear()
        self._channels.close()

    def _send_soon(self, wait_ms: int = 0) -> None:
        self._kernel.after(f"txn-markers {'again' if wait_ms else 'now'}", wait_ms, self._send)

    def _send(self) -> None:
        by_leader: dict[int, list[_Sent]] = {}
        for transactional_id, ending in list(self._endings.items()):
            for partition in [each for each in ending.left if not self._exists(each)]:
                ending.left.discard(partition)
                self._written(transactional_id, partition)
            if not ending.left:
                self._finish(transactional_id)
                continue
            sending = self._sending(ending)
            led: dict[int, set[TopicPartition]] = {}
            for name, index in ending.left - sending:
                leader = self._image.topics_by_name[name].partitions[index].leader
                led.setdefault(leader, set()).add((name, index))
            for leader, partitions in led.items():
                by_leader.setdefault(leader, []).append(_Sent(transactional_id, ending, frozenset(partitions)))
        for leader, sent in by_leader.items():
            if not self._channels.is_reachable(leader):
                # The leader is elected, or comes back, with the next metadata.
                self._send_soon(RETRY_MS)
            elif not self._channels.is_busy(leader):
                self._in_flight[leader] = sent
                self._channels.send(
                    leader,
                    functools.partial(_request, sent),
                    functools.partial(self._answered, leader),
                    functools.partial(self._failed, leader),
                )

    def _sending(self, ending: _Ending) -> set[TopicPartition]:
        """Return the partitions whose marker is on its way."""
        sent = (each for all_sent in self._in_flight.values() for each in all_sent)
        return {partition for each in sent if each.ending is ending for partition in each.partitions}

    def _answered(self, leader: int, response: WriteTxnMarkersResponse) -> None:
        sent = self._in_flight.pop(leader)
        codes = {
            (marker.producer_id, topic.name, partition.partition_index): partition.error_code
            for marker in response.markers
            for topic in marker.topics
            for partition in topic.partitions
        }
        wait_ms = 0
        for each in sent:
            if self._endings.get(each.transactional_id) is not each.ending:
                continue
            for partition in each.partitions:
                producer_id = each.ending.transaction.producer_id
                code = codes.get((producer_id, *partition), error_codes.UNKNOWN_TOPIC_OR_PARTITION)
                if code in WRITTEN:
                    each.ending.left.discard(partition)
                    self._written(each.transactional_id, partition)
                elif code in FENCED:
                    name = error_codes.name(code)
                    _log.warning("markers of %s are not sent any more: %s", each.transactional_id, name)
                    self.cancel(each.transactional_id)
                    break
                else:
                    wait_ms = RETRY_MS
            else:
                if not each.ending.left:
                    self._finish(each.transactional_id)
        if self._endings:
            self._send_soon(wait_ms)

    def _failed(self, leader: int, _error: Exception) -> None:
        del self._in_flight[leader]
        self._send_soon(RETRY_MS)

    def _finish(self, transactional_id: str) -> None:
        del self._endings[transactional_id]
        self._all_written(transactional_id)

    def _exists(self, partition: TopicPartition) -> bool:
        topic = self._image.topics_by_name.get(partition[0])
        return topic is not None and partition[1] in topic.partitions


def _request(sent: list[_Sent], _versions: Versions) -> WriteTxnMarkersRequest:
    return WriteTxnMarkersRequest(markers=[_marker(each) for each in sent])


def _marker(sent: _Sent) -> WritableTxnMarker:
    ended = sent.ending.transaction
    topics: dict[str, list[int]] = {}
    for topic, index in sorted(sent.partitions):
        topics.setdefault(topic, []).append(index)
    return WritableTxnMarker(
        producer_id=ended.producer_id,
        producer_epoch=ended.producer_epoch,
        transaction_result=ended.state is TransactionState.PREPARE_COMMIT,
        topics=[WritableTxnMarkerTopic(name=name, partition_indexes=indexes) for name, indexes in topics.items()],
        coordinator_epoch=sent.ending.coordinator_epoch,
        transaction_version=ended.client_version,
    )
