"""Control batches that end a transaction in a partition (Kafka's `EndTransactionMarker`, KIP-98)."""

from __future__ import annotations

import struct
from typing import NamedTuple

from mockraft.brokers.log_dirs.batch_headers import ATTRIBUTES, ATTRIBUTES_AT, write_crc
from mockraft.wire import record_batch
from mockraft.wire.errors import WireError
from mockraft.wire.record_batch import CONTROL, HEADER_BYTES, TRANSACTIONAL, BatchHeader

ABORT, COMMIT = 0, 1
"""The types of the control records (ControlRecordType)."""

_VALUE = struct.Struct(">hi")  # version, coordinator epoch
_PRODUCER = struct.Struct(">qh")
_BASE_SEQUENCE = struct.Struct(">i")
_PRODUCER_AT, _BASE_SEQUENCE_AT = 43, 53


class Marker(NamedTuple):
    """The end of a producer's transaction; the transaction version is not written to the log."""

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    is_commit: bool
    transaction_version: int = 0


def encode(marker: Marker, timestamp_ms: int) -> bytes:
    """Encode the control batch, at offset 0."""
    key = record_batch.control_key(COMMIT if marker.is_commit else ABORT)
    value = _VALUE.pack(0, marker.coordinator_epoch)
    return with_producer(
        record_batch.encode_control([(key, value)], base_offset=0, leader_epoch=0, timestamp_ms=timestamp_ms),
        marker.producer_id,
        marker.producer_epoch,
        CONTROL | TRANSACTIONAL,
    )


def with_producer(
    batch: bytes, producer_id: int, producer_epoch: int, attributes: int, base_sequence: int | None = None
) -> bytes:
    """Return a batch with this producer and these attributes in its header, and another base sequence if given."""
    data = bytearray(batch)
    ATTRIBUTES.pack_into(data, ATTRIBUTES_AT, attributes)
    _PRODUCER.pack_into(data, _PRODUCER_AT, producer_id, producer_epoch)
    if base_sequence is not None:
        _BASE_SEQUENCE.pack_into(data, _BASE_SEQUENCE_AT, base_sequence)
    write_crc(data, 0, len(data))
    return bytes(data)


def read_marker(header: BatchHeader, batch: bytes) -> Marker | None:
    """Return the marker of a control batch; None for another control batch, or one that was emptied by compaction.

    `batch` are the bytes of the batch.
    """
    position = HEADER_BYTES
    if not header.is_control or position >= len(batch):
        return None
    try:
        length, position = record_batch.read_varint(batch, position, len(batch))
        end = position + length
        position += 1  # attributes
        for _ in range(2):  # time and offset
            _, position = record_batch.read_varint(batch, position, end)
        key_length, position = record_batch.read_varint(batch, position, end)
        kind = record_batch.control_type(batch[position : position + key_length])
        value_length, position = record_batch.read_varint(batch, position + key_length, end)
        value = batch[position : position + value_length]
    except WireError:
        return None
    if kind not in (ABORT, COMMIT) or len(value) < _VALUE.size:
        return None
    return Marker(header.producer_id, header.producer_epoch, _VALUE.unpack_from(value)[1], kind == COMMIT)
