"""Records of coordinators' logs as bytes: TransactionLogKey and -Value, OffsetCommitKey and -Value, and their batches.

Source: the message specifications of Kafka's transaction-coordinator and group-coordinator. Each key and value begins
with its version. Values are written in the versions that every supported release reads: TransactionLogValue 0, 1 with
transaction.version 1 or later, OffsetCommitValue 3.
"""

from __future__ import annotations

import logging
import struct
from collections.abc import Callable, Iterator, Sequence
from struct import Struct
from typing import Final, NamedTuple, TypeVar

from mockraft.brokers.coordinators.members import Offset
from mockraft.brokers.coordinators.transaction import Producer, Transaction, TransactionState
from mockraft.brokers.log_dirs.transaction_markers import with_producer
from mockraft.wire import primitives, record_batch
from mockraft.wire.errors import WireError
from mockraft.wire.record_batch import TRANSACTIONAL, BatchHeader

Record = tuple[bytes, bytes | None]
"""Key and value; no value is a tombstone."""

TRANSACTION_KEY: Final = 0
OFFSET_KEYS: Final = (0, 1)
FLEXIBLE_FROM_TRANSACTION_VERSION: Final = 1
_PREVIOUS_PRODUCER_ID, _NEXT_PRODUCER_ID, _CLIENT_VERSION = range(3)
_SHORT, _INT, _LONG = Struct(">h"), Struct(">i"), Struct(">q")
_TRANSACTION: Final = Struct(">qhib")  # producer id and epoch, timeout, state
_TIMES: Final = Struct(">qq")
_OFFSET: Final = Struct(">qi")

T = TypeVar("T")

_log = logging.getLogger(__name__)


class OffsetKey(NamedTuple):
    """The key of a committed offset."""

    group_id: str
    topic: str
    partition: int


# Batches.


def encode(records: Sequence[Record], now_ms: int, producer: Producer | None = None) -> bytes:
    """Encode a batch, at offset 0; one of a transaction with a `producer`."""
    batch = record_batch.encode_pairs(records, timestamp_ms=now_ms)
    if producer is None:
        return batch
    return with_producer(batch, producer.producer_id, producer.epoch, TRANSACTIONAL, base_sequence=0)


def read_records(
    header: BatchHeader, batch: bytes, read: Callable[[bytes, bytes | None], T | None]
) -> tuple[list[T], bool]:
    """Return what `read` makes of the records with keys, and True if that is all of them.

    The rest is not understood: records for which it returns None, and, logged, those for which it raises WireError, or
    a whole batch (compressed, or compacted).
    """
    try:
        records = record_batch.read_batch(batch, record_batch.read_header(batch, 0)).records
    except WireError as error:
        _log.warning("a coordinator's log: the batch at offset %d is left out: %s", header.base_offset, error)
        return [], False
    found, is_understood = [], True
    for key, value in records:
        if key is None:
            continue
        try:
            one = read(key, value)
        except WireError as error:
            _log.warning("a coordinator's log: a record at offset %d is left out: %s", header.base_offset, error)
            one = None
        if one is None:
            is_understood = False
        else:
            found.append(one)
    return found, is_understood


# Transactions.


def transaction_record(transactional_id: str, transaction: Transaction | None, version: int) -> Record:
    """Return the record of a transaction; without one that which removes the transactional id."""
    key = _SHORT.pack(TRANSACTION_KEY) + string(transactional_id)
    if transaction is None:
        return key, None
    is_flexible = version >= FLEXIBLE_FROM_TRANSACTION_VERSION
    head = _TRANSACTION.pack(
        transaction.producer_id, transaction.producer_epoch, transaction.timeout_ms, transaction.state
    )
    partitions = _partitions(transaction, is_flexible=is_flexible)
    times = _TIMES.pack(transaction.updated_ms, transaction.start_ms)
    tags = _tags(transaction) if is_flexible else b""
    return key, b"".join((_SHORT.pack(is_flexible), head, partitions, times, tags))


def read_transaction(key: bytes, value: bytes | None) -> tuple[str, Transaction | None] | None:
    """Return (transactional id, transaction); None for another kind of record. Raises WireError."""
    reader = RecordReader(key)
    if reader.number(_SHORT) != TRANSACTION_KEY:
        return None
    transactional_id = reader.string()
    return transactional_id, None if value is None else _transaction(RecordReader(value))


def _partitions(transaction: Transaction, *, is_flexible: bool) -> bytes:
    if transaction.state is TransactionState.EMPTY:
        return b"\0" if is_flexible else _INT.pack(-1)
    by_topic: dict[str, list[int]] = {}
    for topic, index in sorted(transaction.partitions):
        by_topic.setdefault(topic, []).append(index)
    count = primitives.write_uvarint(len(by_topic) + 1) if is_flexible else _INT.pack(len(by_topic))
    parts = [count]
    for topic, indexes in by_topic.items():
        if is_flexible:
            name = topic.encode()
            parts += (primitives.write_uvarint(len(name) + 1), name, primitives.write_uvarint(len(indexes) + 1))
        else:
            parts += (string(topic), _INT.pack(len(indexes)))
        parts += map(_INT.pack, indexes)
        if is_flexible:
            parts.append(b"\0")
    return b"".join(parts)


def _tags(transaction: Transaction) -> bytes:
    fields = []
    for tag, value in (
        (_PREVIOUS_PRODUCER_ID, transaction.previous_producer_id),
        (_NEXT_PRODUCER_ID, transaction.next_producer_id),
    ):
        if value >= 0:
            fields.append(bytes((tag, _LONG.size)) + _LONG.pack(value))
    if transaction.client_version:
        fields.append(bytes((_CLIENT_VERSION, _SHORT.size)) + _SHORT.pack(transaction.client_version))
    return bytes((len(fields),)) + b"".join(fields)


def _transaction(reader: RecordReader) -> Transaction:
    version = reader.number(_SHORT)
    if version not in (0, 1):
        raise WireError(f"TransactionLogValue of version {version}")
    is_flexible = version == 1
    producer_id, epoch, timeout_ms, state = reader.numbers(_TRANSACTION)
    partitions = []
    for _ in range(reader.count(is_flexible=is_flexible)):
        topic = reader.string(is_flexible=is_flexible)
        count = reader.count(is_flexible=is_flexible)
        partitions += [(topic, reader.number(_INT)) for _ in range(count)]
        if is_flexible:
            reader.tags()
    updated_ms, start_ms = reader.numbers(_TIMES)
    tags = dict(reader.tags()) if is_flexible else {}

    def tagged(tag: int, form: Struct, default: int) -> int:
        value = tags.get(tag)
        return default if value is None or len(value) != form.size else form.unpack(value)[0]

    return Transaction(
        producer_id=producer_id,
        timeout_ms=timeout_ms,
        previous_producer_id=tagged(_PREVIOUS_PRODUCER_ID, _LONG, -1),
        next_producer_id=tagged(_NEXT_PRODUCER_ID, _LONG, -1),
        producer_epoch=epoch,
        state=_state(state),
        partitions=frozenset(partitions),
        start_ms=start_ms,
        updated_ms=updated_ms,
        client_version=tagged(_CLIENT_VERSION, _SHORT, 0),
    )


def _state(number: int) -> TransactionState:
    try:
        return TransactionState(number)
    except ValueError as error:
        raise WireError(f"a transaction in state {number}") from error


# Offsets.


def offset_record(key: OffsetKey, committed: Offset | None, now_ms: int) -> Record:
    """Return the record of a committed offset; without one that which deletes it."""
    written = b"".join((_SHORT.pack(1), string(key.group_id), string(key.topic), _INT.pack(key.partition)))
    if committed is None:
        return written, None
    parts = (
        _SHORT.pack(3),
        _OFFSET.pack(committed.offset, committed.leader_epoch),
        string(committed.metadata),
        _LONG.pack(now_ms),
    )
    return written, b"".join(parts)


def read_offset(key: bytes, value: bytes | None) -> tuple[OffsetKey, Offset | None] | None:
    """Return the key and the offset; None for another kind of record. Raises WireError."""
    reader = RecordReader(key)
    if reader.number(_SHORT) not in OFFSET_KEYS:
        return None
    found = OffsetKey(reader.string(), reader.string(), reader.number(_INT))
    return found, None if value is None else _offset(RecordReader(value))


def _offset(reader: RecordReader) -> Offset:
    version = reader.number(_SHORT)
    if not 0 <= version <= 4:
        raise WireError(f"OffsetCommitValue of version {version}")
    offset = reader.number(_LONG)
    epoch = reader.number(_INT) if version >= 3 else -1
    return Offset(offset, epoch, reader.string(is_flexible=version >= 4))


# Primitives.


def string(text: str) -> bytes:
    """Write a text with its length before it."""
    data = text.encode()
    return _SHORT.pack(len(data)) + data


class RecordReader:
    """Reads one record's bytes in order. Raises WireError."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def left(self) -> int:
        """The number of bytes that are not read yet."""
        return len(self._data) - self._at

    def numbers(self, form: Struct) -> tuple[int, ...]:
        """Read numbers of fixed size."""
        try:
            found = form.unpack_from(self._data, self._at)
        except struct.error as error:
            raise WireError(f"a coordinator's record ends at {len(self._data)}: {error}") from error
        self._at += form.size
        return found

    def number(self, form: Struct) -> int:
        """Read one number of fixed size."""
        return self.numbers(form)[0]

    def count(self, *, is_flexible: bool) -> int:
        """Read the length of an array."""
        return self._uvarint() - 1 if is_flexible else self.number(_INT)

    def string(self, *, is_flexible: bool = False) -> str:
        """Read a text; a null one is empty."""
        length = self._uvarint() - 1 if is_flexible else self.number(_SHORT)
        return self.data(length).decode(errors="replace")

    def nullable_string(self) -> str | None:
        """Read a compact text."""
        length = self._uvarint() - 1
        return None if length < 0 else self.data(length).decode(errors="replace")

    def compact_bytes(self) -> bytes:
        """Read compact bytes."""
        return self.data(self._uvarint() - 1)

    def tags(self) -> Iterator[tuple[int, bytes]]:
        """Read tagged fields."""
        return iter([(self._uvarint(), self.data(self._uvarint())) for _ in range(self._uvarint())])

    def data(self, length: int) -> bytes:
        """Read so many bytes."""
        end = self._at + max(length, 0)
        if end > len(self._data):
            raise WireError(f"a coordinator's record ends inside {length} bytes at {self._at}")
        found, self._at = self._data[self._at : end], end
        return found

    def _uvarint(self) -> int:
        try:
            value, self._at = primitives.uvarint(self._data, self._at)
        except IndexError as error:
            raise WireError("a coordinator's record ends inside a number") from error
        return value
