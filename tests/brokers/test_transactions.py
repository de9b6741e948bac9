"""Records inside a transaction of the metadata log take effect when it ends, or never (KIP-868)."""

from __future__ import annotations

import pytest
from mockraft.brokers.metadata.transactions import Transactions
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.records.abort_transaction_record import AbortTransactionRecord
from mockraft.wire.records.begin_transaction_record import BeginTransactionRecord
from mockraft.wire.records.end_transaction_record import EndTransactionRecord
from mockraft.wire.records.topic_record import TopicRecord

A, B = (RecordAt(TopicRecord(name=name, topic_id=bytes(16)), 0) for name in "ab")
BEGIN, END, ABORT = (
    RecordAt(record, 0) for record in (BeginTransactionRecord(), EndTransactionRecord(), AbortTransactionRecord())
)


@pytest.mark.parametrize(
    ("records", "counted"),
    [
        ([A, B], [[A], [B]]),
        ([BEGIN, A, B, END], [[], [], [], [A, B]]),
        ([BEGIN, A, ABORT, B], [[], [], [], [B]]),
        ([BEGIN, A, BEGIN, B, END], [[], [], [], [], [B]]),
        ([END, A], [[], [A]]),
    ],
)
def test_a_transaction_counts_whole_or_not_at_all(records: list[RecordAt], counted: list[list[RecordAt]]) -> None:
    transactions = Transactions()
    assert [list(transactions.passed(record)) for record in records] == counted


def test_an_open_transaction_is_forgotten_with_the_rest() -> None:
    transactions = Transactions()
    transactions.passed(BEGIN)
    transactions.clear()
    assert list(transactions.passed(A)) == [A]
