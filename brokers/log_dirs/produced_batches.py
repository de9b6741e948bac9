"""Validation of produced batches by a leader.

In the order of Kafka's ByteBufferLogInputStream, UnifiedLog.analyzeAndValidateRecords and LogValidator.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass

from mockraft.brokers.log_dirs.batch_headers import RECORD_BYTES_MIN, CorruptBatchError, read_header
from mockraft.brokers.log_dirs.errors import LogError
from mockraft.brokers.log_dirs.record_times import GZIP, unpack
from mockraft.wire import error_codes, record_batch
from mockraft.wire.errors import WireError
from mockraft.wire.record_batch import COMPRESSION, HEADER_BYTES, LENGTH_COUNTED_FROM, BatchHeader


@dataclass(frozen=True, slots=True, kw_only=True)
class LogConfig:
    """The topic configs that a log uses, with Kafka's defaults, except that retention is off, as with cleanup.policy
    compact, until it is configured.
    """

    segment_bytes: int = 1 << 30
    max_message_bytes: int = 1_048_588
    is_log_append_time: bool = False
    timestamp_before_max_ms: int = (1 << 63) - 1
    timestamp_after_max_ms: int = 3_600_000
    retention_bytes: int = -1
    retention_ms: int = -1


DEFAULT_CONFIG = LogConfig()


_FRAME = struct.Struct(">8xi4xb")  # length and magic
_LENGTH_MIN = 14
_LENGTH_MAX = (1 << 31) - 1 - LENGTH_COUNTED_FROM
_COMPRESSIONS = 5
_UNPACKED_MAX = {2: 22, 3: 255, 4: 1 << 15}
"""Bytes that a byte of snappy, lz4 and zstd unpacks to at most."""
_NO_TIMESTAMP = -1
_VARINT_BYTES_MAX = 10


def read_produced(records: bytes) -> list[BatchHeader]:
    """Return the headers of the complete batches of `records`; like Kafka it ignores an incomplete last one.

    LogError: CORRUPT_MESSAGE for an invalid length or magic, INVALID_RECORD for an old magic.
    """
    headers = []
    position = 0
    while len(records) - position >= _FRAME.size:
        length, magic = _FRAME.unpack_from(records, position)
        if length < _LENGTH_MIN or not 0 <= magic <= 2:
            raise CorruptBatchError(f"batch at {position}: length {length}, magic {magic}", position)
        if length > _LENGTH_MAX:
            # Kafka adds the header's size and gets a negative number.
            raise LogError(error_codes.UNKNOWN_SERVER_ERROR, f"batch at {position}: length {length}")
        if len(records) - position < LENGTH_COUNTED_FROM + length:
            break
        if magic != record_batch.MAGIC:
            raise _invalid(f"only record batches with magic version 2 are allowed, not {magic}")
        headers.append(read_header(records, position, check_crc=False))
        position = headers[-1].end
    return headers


def check_produced(records: bytes, header: BatchHeader, config: LogConfig, now_ms: int) -> None:
    """Raise LogError for a batch that a leader refuses. Of compressed records only gzip's first 4 MiB are decoded."""
    if header.base_offset != 0:
        raise _invalid(f"The baseOffset of the record batch should be 0, but it is {header.base_offset}")
    size_bytes = header.end - header.position
    if size_bytes > config.max_message_bytes:
        raise LogError(
            error_codes.MESSAGE_TOO_LARGE,
            f"The record batch size in the append is {size_bytes} bytes which exceeds the maximum configured value of"
            f" {config.max_message_bytes}.",
        )
    read_header(records, header.position)
    count = header.last_offset - header.base_offset + 1
    if count <= 0:
        raise _invalid(f"Batch has an invalid offset range: [{header.base_offset}, {header.last_offset}]")
    if header.record_count <= 0:
        raise _invalid(f"Invalid reported count for record batch: {header.record_count}")
    if header.record_count != count:
        raise _invalid(
            f"Inconsistent batch offset range [{header.base_offset}, {header.last_offset}] and count of records"
            f" {header.record_count}"
        )
    if header.is_control:
        raise _invalid("Clients are not allowed to write control records")
    if header.producer_id >= 0 and header.base_sequence < 0:
        raise _invalid(
            f"Invalid sequence number {header.base_sequence} in record batch with producerId {header.producer_id}"
        )
    codec = header.attributes & COMPRESSION
    if codec >= _COMPRESSIONS:
        # Kafka fails with IllegalArgumentException here.
        raise LogError(error_codes.UNKNOWN_SERVER_ERROR, f"Unknown compression type id: {codec}")
    if codec == 0:
        _check_count(records, header.position + HEADER_BYTES, header.end, header.record_count)
    elif codec == GZIP:
        try:
            unpacked, is_whole = unpack(records[header.position + HEADER_BYTES : header.end])
        except zlib.error as error:
            raise LogError(error_codes.UNKNOWN_SERVER_ERROR, f"gzip: {error}") from error
        _check_count(unpacked, 0, len(unpacked), header.record_count, is_whole=is_whole)
    elif header.record_count * (1 + RECORD_BYTES_MIN) > (size_bytes - HEADER_BYTES) * _UNPACKED_MAX[codec]:
        raise _invalid("Incorrect declared batch size, premature EOF reached")
    if not config.is_log_append_time:
        _check_times(header, config, now_ms)


def _check_count(records: bytes, position: int, end: int, count: int, *, is_whole: bool = True) -> None:
    """Check that the records from `position` to `end`, or the first ones of them, have this count and valid lengths."""
    limit = end
    if not is_whole:
        end -= _VARINT_BYTES_MAX
    for _ in range(count):
        if position >= end:
            if not is_whole:
                return
            break
        length = records[position]
        if 2 * RECORD_BYTES_MIN <= length < 0x80:
            position += 1 + (length >> 1)
            continue
        try:
            length, position = record_batch.read_varint(records, position, limit)
        except WireError as error:
            raise _invalid(f"Found invalid record structure: {error}") from error
        if length < RECORD_BYTES_MIN:
            raise _invalid(f"Found invalid record size {length}")
        position += length
    else:
        if position == end or (position > end and not is_whole):
            return
    message = "premature EOF reached" if position >= end else "records still remaining in file"
    raise _invalid(f"Incorrect declared batch size, {message}")


def _check_times(header: BatchHeader, config: LogConfig, now_ms: int) -> None:
    for time_ms in (header.base_timestamp_ms, header.max_timestamp_ms):
        ahead_ms = time_ms - now_ms
        if (
            time_ms != _NO_TIMESTAMP
            and not -config.timestamp_before_max_ms <= ahead_ms <= config.timestamp_after_max_ms
        ):
            raise LogError(
                error_codes.INVALID_TIMESTAMP,
                f"Timestamp {time_ms} of message is out of range. The timestamp should be within"
                f" [{now_ms - config.timestamp_before_max_ms}, {now_ms + config.timestamp_after_max_ms}]",
            )


def _invalid(message: str) -> LogError:
    return LogError(error_codes.INVALID_RECORD, message)
