"""Capture files to TCP segments in columns."""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import lru_cache
from os import PathLike
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from mockraft.spark_replay.arrow_columns import as_arrow, dictionary, gather, of_values, repeated, take
from mockraft.spark_replay.formats.capture_files import CaptureFile
from mockraft.spark_replay.formats.chunks import CHUNK_BYTES, Bytes, Longs, PacketColumns
from mockraft.spark_replay.formats.file_events import CaptureError, FileEvent, FileEvents, OnError, SplitDesyncError
from mockraft.spark_replay.formats.fragments import Fragments
from mockraft.spark_replay.formats.layers import TcpColumns, parse_tcp
from mockraft.spark_replay.formats.packet_sources import Split, open_packets
from mockraft.spark_replay.schemas import PACKETS

_IPV4_HALF = 0xFFFFFFFFFFFFFFFF


class Flow(NamedTuple):
    """One direction between two endpoints; hosts as text."""

    src: str
    sport: int
    dst: str
    dport: int
    vlan: int


@dataclass(frozen=True, slots=True, eq=False)
class Segments:
    """The TCP segments of one chunk of a file, in file order: arrays of one length.

    The payload of segment i is buffer[start[i] : start[i] + captured[i]]; `length` is its length on the wire.
    `packet_no` counts a file's packets from 1, and is 0 if they were not counted; `file_offset` is the start of the
    packet's record (in uncompressed bytes, for a compressed file). `vlan` is 0 without a tag, the tag's id, or outer *
    4096 + inner. `flow` is an index into `flows`.
    """

    buffer: Bytes
    file: str
    packet_no: Longs
    file_offset: Longs
    ts_ns: Longs
    linktype: npt.NDArray[np.int32]
    vlan: npt.NDArray[np.int32]
    seq: Longs
    ack: Longs
    flags: npt.NDArray[np.uint8]
    start: Longs
    captured: Longs
    length: Longs
    flow: npt.NDArray[np.int32]
    flows: list[Flow]

    def __len__(self) -> int:
        return len(self.start)


def read_segments(
    source: str | PathLike[str] | Split,
    *,
    ports: Collection[int] = (),
    chunk_bytes: int = CHUNK_BYTES,
    events: list[FileEvent] | None = None,
    times_ns: tuple[int | None, int | None] = (None, None),
    on_error: OnError = "fail",
) -> Iterator[Segments]:
    """Yield the TCP segments of a capture file, or of one split of it, a chunk of `chunk_bytes` at a time.

    `ports` keeps segments from or to one of them, `times_ns` those from (inclusive) and to (exclusive) a time.
    `events` receives FILE_EVENTS rows: counts of what was left out, once the file was read to its end, and every
    damaged place. Raises CaptureError, with file and offset, for a file that is not a capture and for the first damage;
    with `on_error` quarantine or skip these are rows too, and reading continues behind damage. Raises SplitDesyncError
    for a split of a wrong plan, whatever `on_error` is.
    """
    split = source if isinstance(source, Split) else Split(str(source))
    wanted = tuple(sorted(ports))
    log = FileEvents(split.path, events, on_error)
    fragments = Fragments(log)
    try:
        with CaptureFile(split.path, split.decompressed_bytes_max) as file:
            for found in open_packets(file, split, log, chunk_bytes):
                packets = _in_time(found, *times_ns)
                if split.link_type is not None:
                    packets = packets._replace(link_type=np.full(len(packets.start), split.link_type, np.int32))
                tcp = parse_tcp(packets, wanted, fragments, log)
                if len(tcp.start):
                    yield _segments(file.path, tcp)
    except SplitDesyncError:
        raise
    except CaptureError as error:
        if on_error == "fail":
            raise
        log.add("corrupt" if error.offset else "quarantined", error.offset, 0, error.problem)
    fragments.finish()
    log.finish()


def _in_time(packets: PacketColumns, from_ns: int | None, to_ns: int | None) -> PacketColumns:
    if from_ns is not None:
        packets = packets.where(packets.ts_ns >= from_ns)
    if to_ns is not None:
        packets = packets.where(packets.ts_ns < to_ns)
    return packets


def _segments(file: str, tcp: TcpColumns) -> Segments:
    packets = tcp.packets
    return Segments(
        packets.buffer,
        file,
        packets.number,
        packets.file_offset,
        packets.ts_ns,
        packets.link_type,
        tcp.vlan,
        *(tcp.seq, tcp.ack, tcp.flags, tcp.start, tcp.captured, tcp.length),
        *_flows(tcp),
    )


def _flows(tcp: TcpColumns) -> tuple[npt.NDArray[np.int32], list[Flow]]:
    """Return a flow number for each segment, in order of appearance, using a hash that is checked for collisions."""
    ports = tcp.sport.astype(np.uint64) << np.uint64(48) | tcp.dport.astype(np.uint64) << np.uint64(32)
    key = [*tcp.addresses.T, ports | tcp.vlan.astype(np.uint64)]
    mixed = key[0].copy()
    for column in key[1:]:
        mixed = (mixed ^ mixed >> np.uint64(29)) * np.uint64(0xBF58476D1CE4E5B9) + column
    flow = np.frombuffer(dictionary(as_arrow(mixed, pa.uint64())).indices.buffers()[1], np.int32, len(mixed))
    first = np.empty(int(flow.max()) + 1, np.int64)
    first[flow[::-1]] = np.arange(len(flow))[::-1]
    if not all(np.array_equal(column[first][flow], column) for column in key):
        _, first, inverse = np.unique(np.column_stack(key), axis=0, return_index=True, return_inverse=True)
        flow = inverse.reshape(-1).astype(np.int32)
    ends = (tcp.sport, tcp.dport, tcp.vlan)
    return flow, [*map(_flow, *(each[first].tolist() for each in (*key[:4], *ends)))]


@lru_cache(1 << 16)
def _flow(*key: int) -> Flow:
    """Return the flow of two addresses in halves, two ports and a VLAN."""
    *halves, sport, dport, vlan = key
    return Flow(_host(*halves[:2]), sport, _host(*halves[2:]), dport, vlan)


@lru_cache(1 << 16)
def _host(high: int, low: int) -> str:
    if high == _IPV4_HALF:
        return str(ipaddress.IPv4Address(low))
    return str(ipaddress.IPv6Address(high << 64 | low))


def packets(segments: Segments) -> pa.RecordBatch:
    """Return the segments as rows of `schemas.PACKETS`; `packet_no` is null if unknown."""
    flows = segments.flows
    columns = {
        name: take(of_values([getattr(flow, name) for flow in flows], PACKETS.field(name).type), segments.flow)
        for name in ("src", "dst", "sport", "dport")
    }
    columns["file"] = repeated(segments.file, len(segments))
    columns["payload"] = gather(segments.buffer, segments.start, segments.captured)
    number = as_arrow(segments.packet_no, pa.int64())
    columns["packet_no"] = number if segments.packet_no.all() else pa.nulls(len(segments), pa.int64())
    for name in ("file_offset", "ts_ns", "linktype", "vlan", "seq", "ack", "flags"):
        columns[name] = as_arrow(getattr(segments, name), PACKETS.field(name).type)
    columns["payload_len"] = as_arrow(segments.length, pa.int32())
    columns["captured_len"] = as_arrow(segments.captured, pa.int32())
    return pa.RecordBatch.from_arrays([columns[name] for name in PACKETS.names], schema=PACKETS)
