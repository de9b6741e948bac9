"""Headers of capture files as `construct` layouts: those read once for each file, section or interface.

Source: draft-ietf-opsawg-pcap, draft-ietf-opsawg-pcapng. Records and packet blocks are read in columns elsewhere
(`pcap_records`, `pcapng_blocks`); their layouts are here too, as an independent reading for tests to compare with.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Literal, NamedTuple

from mockraft.spark_replay.formats.capture_errors import CaptureError

Order = Literal["<", ">"]

PCAP_HEADER_BYTES, RECORD_HEADER_BYTES = 24, 16
SECTION_MAGIC = b"\x0a\x0d\x0d\x0a"
SECTION_HEADER_BYTES = 28
# No tool writes larger packets; a header with a larger length is damaged.
CAPTURED_BYTES_MAX = 1 << 26
SNAPLEN_MAX = 262_144
SECTION_ORDERS: dict[bytes, Order] = {b"\x4d\x3c\x2b\x1a": "<", b"\x1a\x2b\x3c\x4d": ">"}
_NANOSECONDS_PER_S = 1_000_000_000
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


@lru_cache(2)
def layouts(order: Order) -> Any:
    """Return the layouts of one byte order: a Container of pcap_header, record, interface, option and blocks."""
    import construct

    u16, u32, i64 = (
        (construct.Int16ul, construct.Int32ul, construct.Int64sl)
        if order == "<"
        else (construct.Int16ub, construct.Int32ub, construct.Int64sb)
    )
    struct = construct.Struct
    packet = ("ticks_high" / u32, "ticks_low" / u32, "captured" / u32, "original" / u32)
    data = "data" / construct.Bytes(construct.this.captured)
    return construct.Container(
        pcap_header=struct(
            "magic" / u32,
            "version_major" / u16,
            "version_minor" / u16,
            "thiszone" / u32,
            "sigfigs" / u32,
            "snaplen" / u32,
            "link_type" / u16,
            "link_flags" / u16,
        )
        if order == "<"
        else struct(
            "magic" / u32,
            "version_major" / u16,
            "version_minor" / u16,
            "thiszone" / u32,
            "sigfigs" / u32,
            "snaplen" / u32,
            "link_flags" / u16,
            "link_type" / u16,
        ),
        record=struct("seconds" / u32, "fraction" / u32, "captured" / u32, "original" / u32, data),
        section=struct(
            "type" / u32, "size" / u32, "magic" / u32, "version_major" / u16, "version_minor" / u16, "length" / i64
        ),
        interface=struct("link_type" / u16, "reserved" / u16, "snaplen" / u32),
        option=struct(
            "code" / u16,
            "value" / construct.Aligned(4, construct.Prefixed(u16, construct.GreedyBytes)),
        ),
        time_offset=i64,
        packet=struct("interface" / u32, *packet, data),
        old_packet=struct("interface" / u16, "drops" / u16, *packet, data),
        simple_packet=struct("original" / u32, "data" / construct.GreedyBytes),
    )


def read_pcap_header(data: bytes) -> PcapHeader | None:
    """Return the pcap header at the start of `data`; None if it is not a pcap. Raises CaptureError if it is cut."""
    magic = _PCAP_MAGICS.get(data[:4])
    if magic is None:
        return None
    if len(data) < PCAP_HEADER_BYTES:
        raise CaptureError("the file ends inside its header")
    order, fraction_ns = magic
    header = layouts(order).pcap_header.parse(data[:PCAP_HEADER_BYTES])
    return PcapHeader(order, fraction_ns, header.link_type, header.snaplen)


def read_interface(order: Order, body: bytes) -> Interface:
    """Return the interface of a description block's body (without its lengths). Raises CaptureError if it is cut."""
    import construct

    layout = layouts(order)
    try:
        head = layout.interface.parse(body)
    except construct.ConstructError:
        raise CaptureError("truncated interface description") from None
    interface = Interface(head.link_type, head.snaplen)
    at = 8
    while at + 4 <= len(body):
        try:
            option = layout.option.parse(body[at:])
        except construct.ConstructError:
            break
        if option.code == 0:
            break
        if option.code == _RESOLUTION and option.value:
            interface = interface._replace(resolution=option.value[0])
        elif option.code == _TIME_OFFSET and len(option.value) == 8:
            interface = interface._replace(offset_s=layout.time_offset.parse(option.value))
        at += 4 + len(option.value) + -len(option.value) % 4
    return interface
