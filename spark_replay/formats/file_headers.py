"""Headers of capture files that are read once for each file, section or interface.

Source: draft-ietf-opsawg-pcap, draft-ietf-opsawg-pcapng.
"""

from __future__ import annotations

from struct import Struct
from typing import Literal, NamedTuple

from mockraft.spark_replay.formats.file_events import CaptureError

Order = Literal["<", ">"]

PCAP_HEADER_BYTES, RECORD_HEADER_BYTES = 24, 16
SECTION_MAGIC = b"\x0a\x0d\x0d\x0a"
SECTION_HEADER_BYTES = 28
# No tool writes larger packets; a header with a larger length is damaged.
CAPTURED_BYTES_MAX = 1 << 26
SNAPLEN_MAX = 262_144
SECTION_ORDERS: dict[bytes, Order] = {b"\x4d\x3c\x2b\x1a": "<", b"\x1a\x2b\x3c\x4d": ">"}
# By magic number: byte order, and the unit of a timestamp's fraction in nanoseconds.
_PCAP_MAGICS: dict[bytes, tuple[Order, int]] = {
    b"\xd4\xc3\xb2\xa1": ("<", 1000),
    b"\xa1\xb2\xc3\xd4": (">", 1000),
    b"\x4d\x3c\xb2\xa1": ("<", 1),
    b"\xa1\xb2\x3c\x4d": (">", 1),
}
_RESOLUTION, _TIME_OFFSET, _MICROSECONDS = 9, 14, 6


class PcapHeader(NamedTuple):
    """Properties shared by the records of a pcap file. `fraction_ns`: unit of their timestamps' fraction."""

    order: Order
    fraction_ns: int
    link_type: int
    snaplen: int

    @property
    def captured_bytes_max(self) -> int:
        """Maximum captured length of a record; above it, the header is damaged (Wireshark's rule)."""
        return min(max(self.snaplen, SNAPLEN_MAX), CAPTURED_BYTES_MAX)


class Interface(NamedTuple):
    """A pcapng interface: `resolution` is the option's byte (top bit set: a power of two, else of ten)."""

    link_type: int
    snaplen: int
    resolution: int = _MICROSECONDS
    offset_s: int = 0


def read_pcap_header(data: bytes) -> PcapHeader | None:
    """Return the pcap header at the start of `data`; None if it is not a pcap. Raises CaptureError if it is cut."""
    magic = _PCAP_MAGICS.get(data[:4])
    if magic is None:
        return None
    if len(data) < PCAP_HEADER_BYTES:
        raise CaptureError("the file ends inside its header")
    order, fraction_ns = magic
    snaplen, link_type = Struct(f"{order}II").unpack_from(data, 16)
    # The upper half of the link type has flags.
    return PcapHeader(order, fraction_ns, link_type & 0xFFFF, snaplen)


def read_interface(order: Order, body: bytes) -> Interface:
    """Return the interface of a description block's body (without its lengths). Raises CaptureError if it is cut."""
    if len(body) < 8:
        raise CaptureError("truncated interface description")
    link_type, _, snaplen = Struct(f"{order}HHI").unpack_from(body)
    interface = Interface(link_type, snaplen)
    option, at = Struct(f"{order}HH"), 8
    while at + 4 <= len(body):
        code, size = option.unpack_from(body, at)
        value = body[at + 4 : at + 4 + size]
        if code == 0 or len(value) < size:
            break
        if code == _RESOLUTION and value:
            interface = interface._replace(resolution=value[0])
        elif code == _TIME_OFFSET and size == 8:
            interface = interface._replace(offset_s=Struct(f"{order}q").unpack(value)[0])
        at += 4 + size + -size % 4
    return interface
