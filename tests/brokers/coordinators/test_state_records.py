"""Records of coordinators' logs: what is written is read again, and nothing else does harm."""

from __future__ import annotations

import pytest
from mockraft.brokers.coordinators.members import Offset
from mockraft.brokers.coordinators.state_records import (
    OffsetKey,
    encode,
    offset_record,
    read_offset,
    read_records,
    read_transaction,
    transaction_record,
)
from mockraft.brokers.coordinators.transaction import Producer, Transaction, TransactionState
from mockraft.brokers.log_dirs.batch_headers import read_headers
from mockraft.wire.errors import WireError

from ...rows import each_row

ONGOING = Transaction(
    7,
    60_000,
    previous_producer_id=6,
    next_producer_id=8,
    producer_epoch=4,
    state=TransactionState.ONGOING,
    partitions=frozenset((("orders", 0), ("orders", 3), ("bills", 1))),
    start_ms=500,
    updated_ms=600,
    client_version=2,
)
KEY = OffsetKey("kitchen", "orders", 3)
# As Kafka 4.3.1 writes them: TransactionLogValue 1, and its key.
KAFKAS_KEY = bytes.fromhex("0000 0002 7478")


@each_row("version", [0, 1, 2])
def test_transactions_are_read_as_written(version: int) -> None:
    name, read = read_transaction(*transaction_record("tx", ONGOING, version)) or ("", None)
    expected = ONGOING if version else ONGOING._replace(previous_producer_id=-1, next_producer_id=-1, client_version=0)
    assert (name, read) == ("tx", expected)
    empty = ONGOING._replace(state=TransactionState.EMPTY, partitions=frozenset())
    assert (read_transaction(*transaction_record("tx", empty, 2)) or ("", None))[1] == empty


def test_key_and_tombstone_of_a_transaction() -> None:
    assert transaction_record("tx", None, 2) == (KAFKAS_KEY, None)
    assert read_transaction(KAFKAS_KEY, None) == ("tx", None)


@each_row("metadata", ["", "é"])
def test_offsets_are_read_as_written(metadata: str) -> None:
    committed = Offset(12, 3, metadata)
    assert read_offset(*offset_record(KEY, committed, 9)) == (KEY, committed)
    assert read_offset(*offset_record(KEY, None, 9)) == (KEY, None)


def test_other_records_are_passed_over() -> None:
    group_metadata_key = bytes.fromhex("0002 0001 67")
    assert read_offset(group_metadata_key, b"") is None
    assert read_transaction(bytes.fromhex("0001 0000"), b"") is None


@each_row("version", [0, 2])
def test_cut_records_are_refused(version: int) -> None:
    key, value = transaction_record("tx", ONGOING, version)
    assert value is not None
    for length in range(len(value)):
        with pytest.raises(WireError):
            read_transaction(key, value[:length])
    key, value = offset_record(KEY, Offset(1, 2, "m"), 3)
    assert value is not None
    for length in range(len(value) - 8):  # the time is not read
        with pytest.raises(WireError):
            read_offset(key, value[:length])
    for length in range(len(key)):
        with pytest.raises(WireError):
            read_offset(key[:length], value)


@each_row("value", [b"\0\7" + bytes(40), b"\0\0" + bytes(14) + b"\x09" + bytes(40)])
def test_unknown_versions_and_states_are_refused(value: bytes) -> None:
    with pytest.raises(WireError):
        read_transaction(KAFKAS_KEY, value)


@each_row("producer", [None, Producer(7, 4)])
def test_batches_are_those_of_their_producer(producer: Producer | None) -> None:
    records = [offset_record(KEY, Offset(1, 2, ""), 3), offset_record(KEY, None, 3)]
    batch = encode(records, 1_000, producer)
    (header,) = read_headers(batch)
    assert read_records(header, batch, lambda key, value: (key, value)) == (records, True)
    assert (header.is_transactional, header.producer_id) == (producer is not None, 7 if producer else -1)


def test_unreadable_batch_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    batch = encode([offset_record(KEY, None, 3)], 1_000)
    (header,) = read_headers(batch)
    assert read_records(header, batch[:-1], read_offset) == ([], False)
    assert "the batch at offset 0 is left out" in caplog.text


def test_records_that_are_not_understood_are_left_out(caplog: pytest.LogCaptureFixture) -> None:
    key, value = offset_record(KEY, Offset(1, 2, ""), 3)
    batch = encode([(key, b"\0"), (b"\0\x7f", b""), (key, value)], 1_000)
    (header,) = read_headers(batch)
    read, is_all = read_records(header, batch, read_offset)
    assert ([found for found, _ in read], is_all) == ([KEY], False)
    assert "a record at offset 0 is left out" in caplog.text
