"""Record batches and their content as spans for `explain`: batch header, records, framed metadata records.

An implementation of its own, independent of `record_batch`. Source: Kafka's DefaultRecordBatch,
DefaultRecord, LegacyRecord and AbstractApiMessageSerde; compressed batches are not decompressed.
"""

from collections.abc import Iterable, Iterator

from mockraft.wire import schema_reading
from mockraft.wire.errors import WireError
from mockraft.wire.metadata_log_frame import FRAME_VERSION
from mockraft.wire.overlay import in_use
from mockraft.wire.schema_reading import Reader, Span, broken

_CONTROL, _COMPRESSION = 0x20, 0x07
_CONTROL_TYPES = {
    2: "LeaderChangeMessage",
    3: "SnapshotHeaderRecord",
    4: "SnapshotFooterRecord",
    5: "KRaftVersionRecord",
    6: "VotersRecord",
}
_LENGTH_COUNTED_FROM = 12
_HEADER = (
    ("baseOffset", "int64"),
    ("batchLength", "int32"),
    ("partitionLeaderEpoch", "int32"),
    ("magic", "int8"),
    ("crc", "uint32"),
    ("attributes", "int16"),
    ("lastOffsetDelta", "int32"),
    ("baseTimestamp", "int64"),
    ("maxTimestamp", "int64"),
    ("producerId", "int64"),
    ("producerEpoch", "int16"),
    ("baseSequence", "int32"),
    ("recordCount", "int32"),
)


_MESSAGE_HEADER = (
    ("offset", "int64"),
    ("messageLength", "int32"),
    ("crc", "uint32"),
    ("magic", "int8"),
    ("attributes", "int8"),
)
_MAGIC_AT = 16


class _Cursor(Reader):
    """A read position that records a span for everything it passes."""

    spans: list[Span]

    def __init__(self, data: bytes, at: int, end: int, spans: list[Span]) -> None:
        super().__init__(data, 0, at, spans)
        self.end = end

    def read(self, path: str, kind: str) -> int:
        """Read an integer of a fixed number of bytes."""
        start = self.at
        number = self.integer(kind, path)
        self.note(start, path, kind, number)
        return number

    def unsigned(self, path: str) -> int:
        """Read an unsigned varint."""
        start = self.at
        number = self.varint(path)
        self.note(start, path, "varint", number)
        return number

    def zigzag(self, path: str, type_name: str = "varint") -> int:
        """Read a varint of an integer that may be negative."""
        start = self.at
        number = self.varint(path, bytes_max=10)
        number = number >> 1 ^ -(number & 1)
        self.note(start, path, type_name, number)
        return number

    def block(self, path: str) -> tuple[int, int]:
        """Read a length and return the byte range it covers; (-1, -1) for null. Only the length becomes a span."""
        length = self.zigzag(path, "varint length")
        if length < 0:
            return -1, -1
        if length > self.end - self.at:
            raise broken(self.at, path, f"says {length} bytes, {self.end - self.at} are left")
        start = self.skip(length, path)
        return start, self.at


def opened(data: bytes, spans: Iterable[Span]) -> Iterator[Span]:
    """Narrow each `records` span to its length and add the spans of its content, if that is a sequence of batches."""
    for span in spans:
        found: list[Span] = []
        if span.type.endswith("records") and isinstance(span.value, bytes) and span.value:
            found = _inside(data, span, len(span.value))
        yield span._replace(length=span.length - len(span.value)) if found and isinstance(span.value, bytes) else span
        yield from found


def _inside(data: bytes, span: Span, content_bytes: int) -> list[Span]:
    found: list[Span] = []
    end = span.offset + span.length
    read_to = end - content_bytes
    try:
        read_batches(data, read_to, end, f"{span.path}.", found)
    except WireError:
        # Bytes that are no batches, or a batch that a Fetch limit cut: what was read is still of use.
        if len(found) <= len(_MESSAGE_HEADER):
            return []
        read_to = found[-1].offset + found[-1].length
        found.append(Span(read_to, end - read_to, f"{span.path}.rest", "bytes", data[read_to:end], None))
    return found


def read_batches(data: bytes, offset: int, end: int, prefix: str, spans: list[Span]) -> None:
    """Add spans for all batches between two offsets. Raises WireError at the first malformed byte."""
    number = 0
    while offset < end:
        offset = _read_batch(data, offset, end, f"{prefix}batch[{number}].", spans)
        number += 1


def _read_batch(data: bytes, offset: int, end: int, path: str, spans: list[Span]) -> int:
    if data[offset + _MAGIC_AT : offset + _MAGIC_AT + 1] in (b"\0", b"\1"):
        return _read_message(data, offset, end, path, spans)
    cursor = _Cursor(data, offset, end, spans)
    header = {name: cursor.read(path + name, kind) for name, kind in _HEADER[:4]}
    if header["magic"] != 2:
        raise broken(offset, f"{path}magic", f"record format {header['magic']}; only format 2 is known")
    batch_end = offset + _LENGTH_COUNTED_FROM + header["batchLength"]
    if not offset + 61 <= batch_end <= end:
        raise broken(offset + 8, f"{path}batchLength", f"the batch would end at {batch_end}, the data at {end}")
    header |= {name: cursor.read(path + name, kind) for name, kind in _HEADER[4:]}
    if header["attributes"] & _COMPRESSION:
        spans.append(Span(cursor.at, batch_end - cursor.at, f"{path}records", "compressed records", b"", None))
        return batch_end
    cursor.end = batch_end
    is_control = bool(header["attributes"] & _CONTROL)
    for index in range(header["recordCount"]):
        if cursor.at >= batch_end:
            raise broken(cursor.at, f"{path}record[{index}]", "the batch ends before its last record")
        _read_record(data, cursor, f"{path}record[{index}].", is_control)
    if cursor.at != batch_end:
        raise broken(cursor.at, f"{path}recordCount", f"{batch_end - cursor.at} bytes after the records")
    return batch_end


def _read_message(data: bytes, offset: int, end: int, path: str, spans: list[Span]) -> int:
    """Read a message of format 0 or 1 (Kafka's LegacyRecord); a compressed one has messages as its value."""
    cursor = _Cursor(data, offset, end, spans)
    header = {name: cursor.read(path + name, kind) for name, kind in _MESSAGE_HEADER}
    message_end = offset + _LENGTH_COUNTED_FROM + header["messageLength"]
    if not cursor.at <= message_end <= end:
        raise broken(offset + 8, f"{path}messageLength", f"the message would end at {message_end}, the data at {end}")
    cursor.end = message_end
    if header["magic"]:
        cursor.read(f"{path}timestamp", "int64")
    for part in ("key", "value"):
        length = cursor.read(f"{path}{part}", "int32")
        if length >= 0:
            start = cursor.skip(length, f"{path}{part}")
            is_packed = part == "value" and header["attributes"] & _COMPRESSION
            kind, value = ("compressed messages", b"") if is_packed else ("bytes", data[start : cursor.at])
            spans.append(Span(start, length, f"{path}{part}", kind, value, None))
    if cursor.at != message_end:
        raise broken(cursor.at, f"{path}messageLength", f"{message_end - cursor.at} bytes after the value")
    return message_end


def _read_record(data: bytes, cursor: _Cursor, path: str, is_control: bool) -> None:
    cursor.zigzag(f"{path}length")
    cursor.read(f"{path}attributes", "int8")
    cursor.zigzag(f"{path}timestampDelta")
    cursor.zigzag(f"{path}offsetDelta")
    start, end = cursor.block(f"{path}key")
    key = data[start:end] if start >= 0 else None
    if key:
        cursor.spans.append(Span(start, end - start, f"{path}key", "bytes", key, None))
    start, end = cursor.block(f"{path}value")
    if start >= 0:
        _read_value(data, start, end, f"{path}value", key if is_control else None, cursor.spans)
    headers = cursor.zigzag(f"{path}headerCount")
    for index in range(headers):
        for part in ("key", "value"):
            start, end = cursor.block(f"{path}header[{index}].{part}")
            if start >= 0:
                cursor.spans.append(
                    Span(start, end - start, f"{path}header[{index}].{part}", "bytes", data[start:end], None)
                )


def _read_value(data: bytes, start: int, end: int, path: str, control_key: bytes | None, spans: list[Span]) -> None:
    """Add spans for a value: a control record, a framed metadata record, or else plain bytes."""
    found: list[Span] = []
    try:
        if control_key is not None:
            name = _CONTROL_TYPES[int.from_bytes(control_key[2:4])]
            version = int.from_bytes(data[start : start + 2])
            _read_placed(name, version, data[:end], start, f"{path}.", found)
        else:
            read_framed_record(data[:end], start, f"{path}.", found)
    except (WireError, KeyError):
        found = [Span(start, end - start, path, "bytes", data[start:end], None)]
    spans += found


def read_framed_record(data: bytes, offset: int, prefix: str, spans: list[Span]) -> str:
    """Add spans for a framed metadata record that ends where `data` does; return its name and version."""
    cursor = _Cursor(data, offset, len(data), spans)
    frame_version = cursor.unsigned(f"{prefix}frameVersion")
    if frame_version != FRAME_VERSION:
        raise broken(offset, f"{prefix}frameVersion", f"is {frame_version}; Kafka knows 1")
    at = cursor.at
    record_type = cursor.unsigned(f"{prefix}recordType")
    version = cursor.unsigned(f"{prefix}recordVersion")
    name = in_use().record_types.get(record_type)
    if name is None:
        raise broken(at, f"{prefix}recordType", f"there is no metadata record of type {record_type}")
    _read_placed(name, version, data, cursor.at, prefix, spans)
    return f"{name} v{version}, framed"


def _read_placed(name: str, version: int, data: bytes, offset: int, prefix: str, spans: list[Span]) -> None:
    found: list[Span] = []
    try:
        schema_reading.read(name, version, data, found, offset)
    except WireError as error:
        raise broken(error.offset or offset, f"{prefix}{error.field or ''}", error.what) from None
    finally:
        spans += (span._replace(path=prefix + span.path) for span in found)
