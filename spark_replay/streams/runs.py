"""TCP segments of one chunk of a file to runs: contiguous bytes of each direction, put in order inside the chunk.

Sequence numbers are unwrapped along the capture order of one direction, so that wraps, reordering and retransmissions
cost one sort. For bytes captured twice the first copy in capture order counts. SYN, FIN and RST are rows of their own
without data: a SYN's `seq` is that of the first byte after it, a FIN's that of the byte after the last.

The client is the sender of a SYN, if one was seen for this connection in this chunk; else `ports` name the server; else
the lower port is taken for the server. `known_by` records which (bits: `BY_PORTS`, `BY_SYN`), so that the reassembler,
which sees all chunks, decides once for each connection. Source: RFC 9293.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
from mockraft.spark_replay.arrow_columns import Array, as_arrow, gather, in_order, no_rows, repeated, take, texts
from mockraft.spark_replay.schemas import RUNS
from mockraft.spark_replay.streams.overlaps import joined, trim_overlaps

if TYPE_CHECKING:
    from mockraft.spark_replay.formats import Flow, Segments

FIN, SYN, RST, ACK = 0x01, 0x02, 0x04, 0x10
BY_PORTS, BY_SYN = 1, 2
# Distance of directions in one sort key: more than the unwrapped numbers of a chunk can span.
_SPAN = 1 << 40
_HALF, _MASK = 1 << 31, 0xFFFFFFFF


class _Parts(NamedTuple):
    """The connections of a chunk, each cut where a SYN reopens it; arrays of one entry for each part."""

    hint: Array
    flow: Array
    client_is_source: Array
    known_by: Array


class _Rows(NamedTuple):
    """Future rows: `first` is the start of each in the piece arrays, pieces being in row order."""

    side: Array
    seq: Array
    offset: Array
    pieces: Array
    mark: Array
    repeated: Array
    differing: Array


class _Pieces(NamedTuple):
    """The parts of rows: a stretch of a segment's payload, by its segment."""

    segment: Array
    data_at: Array
    captured: Array
    length: Array


class _Used(NamedTuple):
    """The segments that make runs: their numbers, flows, whether from the lower endpoint, flags, and first bytes."""

    segment: Array
    flow: Array
    is_low: Array
    marks: Array
    seq: Array


def make_runs(segments: Segments, ports: Collection[int] = ()) -> pa.RecordBatch:
    """Return the runs of one chunk, with the columns of `schemas.RUNS`, in the order of their first packets.

    Args:
        segments: those of one chunk, in file order.
        ports: the servers'; connections to others are left out (none: all are kept).
    """
    flags = np.asarray(segments.flags)
    used = np.flatnonzero((segments.length > 0) | (flags & (SYN | FIN | RST) != 0))
    connection, is_low, is_wanted = _connections(
        segments.flows, np.flatnonzero(np.bincount(segments.flow[used])), ports
    )
    used = used[is_wanted[segments.flow[used]]]
    if not used.size:
        return no_rows(RUNS)
    flow = np.asarray(segments.flow)[used]
    marks = flags[used].astype(np.int64)
    seq = (np.asarray(segments.seq, np.int64)[used] + (marks & SYN != 0)) & _MASK
    of = _Used(used, flow, is_low[flow], marks, seq)
    part, parts = _cut_at_syns(segments, ports, connection, of)
    side = part * 2 + ~of.is_low
    rows, pieces = _data_rows(segments, used, side, seq)
    rows, pieces = _with_marks(segments, of, side, rows, pieces)
    return _batch(segments, rows, pieces, parts, is_low)


@lru_cache(1 << 16)
def _connection_id(flow: Flow) -> int:
    """Return the number of a flow's connection: the same for both directions, in every file, split and run.

    The VLAN is left out, as in Wireshark: a routed connection has another tag in each direction.
    """
    (low_host, low_port), (high_host, high_port) = sorted([(flow.src, flow.sport), (flow.dst, flow.dport)])
    key = f"{low_host} {low_port} {high_host} {high_port}"
    return int.from_bytes(blake2b(key.encode(), digest_size=8).digest(), "big", signed=True)


def _connections(flows: list[Flow], used: Array, ports: Collection[int]) -> tuple[Array, Array, Array]:
    """Return for each used flow: its connection's id, if it comes from the lower endpoint, if it is wanted."""
    ids = np.zeros(len(flows), np.int64)
    is_low = np.zeros(len(flows), bool)
    is_wanted = np.zeros(len(flows), bool)
    for index in used.tolist():
        flow = flows[index]
        is_low[index] = (flow.src, flow.sport) <= (flow.dst, flow.dport)
        ids[index] = _connection_id(flow)
        is_wanted[index] = not ports or flow.sport in ports or flow.dport in ports
    return ids, is_low, is_wanted


def _cut_at_syns(segments: Segments, ports: Collection[int], connection: Array, used: _Used) -> tuple[Array, _Parts]:
    """Return the part of each segment, and the parts: a SYN that does not repeat the last one starts another."""
    _, flow, is_low, marks, seq = used
    present = np.flatnonzero(np.bincount(flow))
    ids, numbers = np.unique(connection[present], return_inverse=True)
    number_of = np.zeros(len(connection), np.int64)
    number_of[present] = numbers
    index = number_of[flow]
    opens = np.zeros(len(flow), bool)
    last: dict[int, tuple[bool, bool, int]] = {}
    for at in np.flatnonzero(marks & SYN).tolist():
        answers = bool(marks[at] & ACK)
        syn = (answers, bool(is_low[at]), int(seq[at]))
        previous = last.get(int(index[at]))
        opens[at] = previous != syn and (not answers or (previous is not None and previous[0]))
        last[int(index[at])] = syn
    hint, part = np.zeros(len(flow), np.int64), index
    if opens.any():
        order = np.argsort(index, kind="stable")
        count = np.cumsum(opens[order])
        starts = np.searchsorted(index[order], np.arange(len(ids)))
        hint[order] = count - (count[starts] - opens[order[starts]])[index[order]]
        _, part = np.unique(index * (int(hint.max()) + 1) + hint, return_inverse=True)
    first = np.empty(int(part.max()) + 1, np.int64)
    first[part[::-1]] = np.arange(len(part))[::-1]
    source_ports = np.array([each.sport for each in segments.flows], np.int64)[flow[first]]
    other_ports = np.array([each.dport for each in segments.flows], np.int64)[flow[first]]
    named = np.isin(source_ports, list(ports)), np.isin(other_ports, list(ports))
    # The higher port is the client's; with equal ports the lower address is the client's.
    is_client = np.where(source_ports == other_ports, is_low[first], source_ports > other_ports)
    by_ports = named[0] != named[1]
    is_client = np.where(by_ports, named[1], is_client)
    known_by = by_ports * BY_PORTS
    syns = np.flatnonzero(marks & SYN)
    syn_parts, where = np.unique(part[syns], return_index=True)
    by_client = marks[syns[where]] & ACK == 0
    is_client[syn_parts] = by_client == (is_low[syns[where]] == is_low[first][syn_parts])
    known_by[syn_parts] |= BY_SYN
    return part, _Parts(hint[first], flow[first], is_client, known_by)


def _data_rows(segments: Segments, used: Array, side: Array, seq: Array) -> tuple[_Rows, _Pieces]:
    """Return rows of contiguous bytes, sorted by side and position in the stream."""
    has_data = np.flatnonzero(np.asarray(segments.length)[used] > 0)
    none = np.zeros(0, np.int64)
    if not has_data.size:
        return _Rows(none, none, none, none, none, none, none), _Pieces(none, none, none, none)
    # Numbers of 16 bits are sorted by radix, five times as fast.
    sides = side[has_data].astype(np.uint16) if int(side.max()) <= 0xFFFF else side[has_data]
    order = has_data[np.argsort(sides, kind="stable")]
    sides, numbers = side[order], seq[order]
    step = ((np.diff(numbers, prepend=numbers[0]) + _HALF) & _MASK) - _HALF
    total = np.cumsum(step)
    changes = np.flatnonzero(np.diff(sides, prepend=-1))
    group = np.cumsum(np.diff(sides, prepend=-1) != 0) - 1
    relative = np.clip(total - total[changes][group], -(_SPAN >> 2), _SPAN >> 2)
    place = group * _SPAN + relative
    if np.any(np.diff(place) < 0):
        again = np.argsort(place, kind="stable")
        order, sides, group, relative, place = order[again], sides[again], group[again], relative[again], place[again]
    segment = used[order]
    length = np.asarray(segments.length, np.int64)[segment]
    captured = np.asarray(segments.captured, np.int64)[segment]
    data_at = np.asarray(segments.start, np.int64)[segment]
    trimmed = trim_overlaps(place, place + length, segment, captured, data_at, segments.buffer)
    source, skip = trimmed.source, trimmed.begin - place[trimmed.source]
    size = trimmed.end - trimmed.begin
    # Bytes that were not captured have no place in the buffer.
    at = data_at[source] + np.minimum(skip, captured[source])
    pieces = _Pieces(segment[source], at, np.clip(captured[source] - skip, 0, size), size)
    # A row starts after a gap, and at the first packet of its side: bytes sent before that are another row.
    starts = np.flatnonzero(
        (trimmed.begin != np.concatenate(([-_SPAN], trimmed.end[:-1]))) | (trimmed.begin == group[source] * _SPAN)
    )
    offset = np.asarray(segments.file_offset, np.int64)[pieces.segment]
    row_of_segment = np.searchsorted(trimmed.begin[starts], place, "right") - 1
    count = len(starts)
    rows = _Rows(
        sides[source[starts]],
        (seq[order[source[starts]]] + skip[starts]) & _MASK,
        np.minimum.reduceat(offset, starts),
        np.diff(starts, append=len(source)),
        np.zeros(count, np.int64),
        np.bincount(row_of_segment, trimmed.repeated, count).astype(np.int64),
        np.bincount(row_of_segment, trimmed.differing, count).astype(np.int64),
    )
    return rows, pieces


def _with_marks(segments: Segments, used: _Used, side: Array, rows: _Rows, pieces: _Pieces) -> tuple[_Rows, _Pieces]:
    """Return the rows of data and those of SYN, FIN and RST, in the order of their first packets."""
    marks, seq = used.marks, used.seq
    at = {mark: np.flatnonzero(marks & mark) for mark in (SYN, FIN, RST)}
    index = np.concatenate(list(at.values()))
    kind = np.repeat(list(at), [len(each) for each in at.values()])
    segment = used.segment[index]
    length = np.asarray(segments.length, np.int64)[segment]
    offset = np.asarray(segments.file_offset, np.int64)[segment]
    none = np.zeros(len(index), np.int64)
    after = np.where(kind == FIN, length, 0)
    merged = [
        np.concatenate(pair)
        for pair in zip(
            rows, (side[index], (seq[index] + after) & _MASK, offset, none + 1, kind, none, none), strict=True
        )
    ]
    more = (segment, none, none, none)
    all_pieces = _Pieces(*(np.concatenate(pair) for pair in zip(pieces, more, strict=True)))
    # Order within one packet: SYN, then data, then FIN.
    rank = np.where(merged[4] == SYN, 0, np.where(merged[4] == 0, 1, 2))
    order = np.lexsort((rank, merged[2]))
    counts = merged[3]
    first = (np.cumsum(counts) - counts)[order]
    counts = counts[order]
    take = np.repeat(first - (np.cumsum(counts) - counts), counts) + np.arange(int(counts.sum()))
    return _Rows(*(each[order] for each in merged)), _Pieces(*(each[take] for each in all_pieces))


def _batch(segments: Segments, rows: _Rows, pieces: _Pieces, parts: _Parts, is_low: Array) -> pa.RecordBatch:
    part = rows.side // 2
    flows = segments.flows
    flow = parts.flow[part]
    from_source = is_low[flow] == (rows.side % 2 == 0)
    client_is_source = parts.client_is_source[part]
    used, where = np.unique(flow, return_inverse=True)
    ends = [(flows[index].src, flows[index].sport) for index in used.tolist()]
    ends += [(flows[index].dst, flows[index].dport) for index in used.tolist()]
    hosts = texts([host for host, _ in ends])
    port_numbers = np.array([port for _, port in ends], np.int32)
    client, server = where + len(used) * ~client_is_source, where + len(used) * client_is_source
    ids = np.array([_connection_id(flows[index]) for index in used.tolist()], np.int64)
    bounds = np.concatenate(([0], np.cumsum(rows.pieces)))
    data = gather(segments.buffer, pieces.data_at, pieces.captured)
    data_bounds = np.concatenate(([0], np.cumsum(pieces.captured)))
    row_bounds = data_bounds[bounds].astype(np.int32)
    count = len(part)

    def lists(values: Array, kind: pa.DataType) -> pa.Array:
        return pa.ListArray.from_arrays(as_arrow(bounds, pa.int32()), as_arrow(values, kind))

    columns: dict[str, Array | pa.Array] = {
        "conn_id": ids[where],
        "client": take(hosts, client),
        "client_port": port_numbers[client],
        "server": take(hosts, server),
        "server_port": port_numbers[server],
        "dir": from_source != client_is_source,
        "incarnation_hint": parts.hint[part],
        "known_by": parts.known_by[part],
        "seq": rows.seq,
        "first_ts_ns": np.full(count, segments.ts_ns[0], np.int64),
        "file": repeated(segments.file, count),
        "file_offset": rows.offset,
        "data": pa.BinaryArray.from_buffers(pa.binary(), count, [None, pa.py_buffer(row_bounds), joined(data)]),
        "seg_len": lists(pieces.captured, pa.int32()),
        "seg_ts_ns": lists(np.asarray(segments.ts_ns, np.int64)[pieces.segment], pa.int64()),
        "seg_off": lists(np.asarray(segments.file_offset, np.int64)[pieces.segment], pa.int64()),
        "syn": rows.mark == SYN,
        "fin": rows.mark == FIN,
        "rst": rows.mark == RST,
        "holes": _holes(pieces, bounds, data_bounds),
        "dup_bytes": rows.repeated,
        "conflict_bytes": rows.differing,
    }
    return pa.RecordBatch.from_arrays(in_order(columns, RUNS), schema=RUNS)


def _holes(pieces: _Pieces, bounds: Array, data_bounds: Array) -> pa.Array:
    """Return what the snaplen cut off: after which byte of the row's data, and how much."""
    missing = pieces.length - pieces.captured
    cut = np.flatnonzero(missing)
    row = np.searchsorted(bounds, cut, "right") - 1
    at = data_bounds[cut + 1] - data_bounds[bounds[row]]
    values = pa.StructArray.from_arrays(
        [as_arrow(at, pa.int32()), as_arrow(np.clip(missing[cut], 0, _HALF - 1), pa.int32())], ["at", "len"]
    )
    offsets = np.searchsorted(cut, bounds)
    return pa.ListArray.from_arrays(as_arrow(offsets, pa.int32()), values)
