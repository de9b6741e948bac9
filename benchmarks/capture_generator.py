"""Captures of a controller's traffic of any size, fast and with bounded memory: `--packets N --connections C --out F`.

Real bodies (`traffic_mix`), one exchange after the other on each connection, many connections mixed; frames up to
4.9 kB in segments of 1448 bytes, one empty acknowledgement an exchange, sequence numbers that wrap on a fifth of the
connections. The same arguments give the same bytes. A pcap file, Ethernet and IPv4, microseconds.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from struct import pack
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from traffic_mix import Kind, Place, kinds, opening

PORT = 9093
REAL = {19093: "controller-4.3.1.pcap", 19192: "brokers-4.3.1.pcap", 19292: "brokers-4.3.1.pcap"}
"""Captures of Kafka's own traffic on the loopback, by the servers' ports."""
SEGMENT_BYTES = 1448
BLOCK_EXCHANGES = 20_000
SLOT_NS = 20_000
"""From the start of one exchange to that of the next, whichever connection it is on."""
START_NS = 1_700_000_000_000_000_000
_FILE_HEADER, _RECORD_HEADER = 24, 16
_FIN, _SYN, _PSH, _ACK = 1, 2, 8, 16
_TIMESTAMPS = b"\x01\x01\x08\x0a" + bytes(8)
_CLIENT_IP, _SERVER_IP, _PORTS, _SEQ, _ACK_AT = 16 + 26, 16 + 30, 16 + 34, 16 + 38, 16 + 42
_PAYLOAD = 16 + 14 + 20 + 32
Column = NDArray[Any]


class Generated(NamedTuple):
    """The contents of a file."""

    packets: int
    frames: int
    file_bytes: int
    connections: int


class Packet(NamedTuple):
    """One packet of a kind of exchange: its bytes with the record's header, and what becomes of them.

    `mine` and `other` are how far both sides' sequence numbers have come since the exchange began.
    """

    from_client: bool
    mine: int
    other: int
    has_ack: bool
    template: bytes
    places: list[Place]


class Plan(NamedTuple):
    """A kind of exchange as packets, and how far it takes both sides."""

    packets: list[Packet]
    client_bytes: int
    server_bytes: int


class Connections:
    """Addresses of all connections and how far each has come; arrays by connection."""

    def __init__(self, count: int, bytes_each: int, rng: np.random.Generator) -> None:
        index = np.arange(count, dtype=np.int64)
        self.order = rng.permutation(index)
        self.client_ip = (10 << 24) + 256 + index
        self.client_port = 32_768 + index % 28_000
        sent = rng.integers(0, 1 << 31, (2, count), dtype=np.int64)
        wraps = index % 5 == 4
        sent[:, wraps] = (1 << 32) - 1 - rng.integers(0, max(bytes_each, 2), (2, int(wraps.sum())))
        self.sent = sent
        self.exchanges = np.zeros(count, np.int64)


def generate(path: str | PathLike[str], packets: int, connections: int, seed: int = 1) -> Generated:
    """Write a capture of at least `packets` packets (whole exchanges) on `connections` connections."""
    rng = np.random.default_rng(seed)
    mix = kinds()
    plans = [*(plan(kind) for kind in mix), plan(opening()), _handshake()]
    shares = np.array([kind.share for kind in mix])
    per_exchange = float(shares @ [len(each.packets) for each in plans[: len(mix)]])
    bytes_each = int(packets / per_exchange / connections * float(shares @ [len(each.request) for each in mix]))
    state = Connections(connections, bytes_each, rng)
    written = exchanges = size = 0
    now_ns = START_NS
    with open(path, "wb") as file:
        size += file.write(pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262_144, 1))
        for chosen, first in _blocks(plans, shares, packets, connections, rng):
            data, count, now_ns = _block(plans, chosen, first, state, now_ns, rng)
            size += file.write(data)
            written += count
            exchanges += int((chosen < len(plans) - 1).sum())
    return Generated(written, 2 * exchanges, size, connections)


def repeat(path: str | PathLike[str], packets: int) -> Generated:
    """Write the captures of `REAL` as often as at least `packets` packets need, each time with other addresses."""
    folder = Path(__file__).parents[1] / "tests" / "captures"
    files = [(folder / name).read_bytes() for name in dict.fromkeys(REAL.values())]
    data = np.frombuffer(b"".join(file[_FILE_HEADER:] for file in files), np.uint8).copy()
    starts, at = [], 0
    while at < len(data):
        starts.append(at)
        at += _RECORD_HEADER + int(data[at + 8 : at + 12].view("<u4")[0])
    records = np.array(starts)
    seconds = _fields(data, records, "<u4")
    span = int(seconds.max() - seconds.min()) + 1
    # 127.0.0.1 becomes an address of 127/8 of this copy's own.
    addresses = np.concatenate([records + _RECORD_HEADER + 14 + offset for offset in (12, 16)])
    copies = -(-packets // len(records))
    with open(path, "wb") as file:
        file.write(files[0][:_FILE_HEADER])
        for number in range(copies):
            _set(data, records, seconds + number * span, "<u4")
            _set(data, addresses, np.full(len(addresses), (127 << 24) + 1 + number), ">u4")
            file.write(data.data)
    return Generated(copies * len(records), 0, _FILE_HEADER + copies * len(data), copies)


def _fields(data: Column, at: Column, form: str) -> Column:
    return data[at[:, None] + np.arange(4)].view(form).ravel().astype(np.int64)


def _set(data: Column, at: Column, values: Column, form: str) -> None:
    data[at[:, None] + np.arange(4)] = values.astype(form).view(np.uint8).reshape(-1, 4)


def _blocks(
    plans: list[Plan], shares: Column, packets: int, connections: int, rng: np.random.Generator
) -> Iterator[tuple[Column, int]]:
    """The plan of each exchange of a block, and the number of the block's first; handshakes come first."""
    lengths = np.array([len(each.packets) for each in plans])
    opening_plan, handshake_plan = len(plans) - 2, len(plans) - 1
    rows = max(1, BLOCK_EXCHANGES // connections)
    done = 0
    for only in (handshake_plan, opening_plan):
        for first in range(0, connections, BLOCK_EXCHANGES):
            chosen = np.full(min(BLOCK_EXCHANGES, connections - first), only)
            done += int(lengths[chosen].sum())
            yield chosen, first
    first = 0
    while done < packets:
        count = rows * connections if connections <= BLOCK_EXCHANGES else min(BLOCK_EXCHANGES, connections - first)
        chosen = rng.choice(len(shares), count, p=shares)
        sums = done + np.cumsum(lengths[chosen])
        chosen = chosen[: int(np.searchsorted(sums, packets)) + 1]
        done = int(sums[len(chosen) - 1])
        yield chosen, first
        first = (first + count) % connections


def _block(
    plans: list[Plan], chosen: Column, first: int, state: Connections, now_ns: int, rng: np.random.Generator
) -> tuple[pa.Buffer, int, int]:
    """The block's packets in the order of their times, how many they are, and when the next block begins."""
    count, connections = len(chosen), len(state.order)
    who = state.order[(first + np.arange(count)) % connections]
    before = [_before(sizes[chosen], who, sent) for sizes, sent in zip(_sizes(plans), state.sent, strict=True)]
    number = _before(np.ones(count, np.int64), who, state.exchanges)
    step_ns = min(150_000, int(0.8 * connections * SLOT_NS / max(len(each.packets) for each in plans)))
    starts = now_ns + np.arange(count) * SLOT_NS
    steps = rng.integers(max(1, step_ns // 5), step_ns + 1, count)
    pieces, lengths, times = [], [], []
    for index, each in enumerate(plans):
        (of_plan,) = np.nonzero(chosen == index)
        if not len(of_plan):
            continue
        says = {
            "correlation_id": number[of_plan],
            "broker_id": who[of_plan] % 1000 + 1,
            "broker_epoch": who[of_plan] + 1000,
            "offset": 88_000 + (starts[of_plan] - START_NS) // SLOT_NS,
            "session_id": who[of_plan] + 1,
            "session_epoch": number[of_plan],
        }
        for at, packet in enumerate(each.packets):
            when = starts[of_plan] + at * steps[of_plan]
            rows = _rows(packet, when, who[of_plan], [sent[of_plan] for sent in before], state, says)
            pieces.append(rows.ravel())
            lengths.append(np.full(len(rows), rows.shape[1]))
            times.append(when)
    offsets = np.concatenate([[0], np.cumsum(np.concatenate(lengths))])
    when = np.concatenate(times)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(np.concatenate(pieces))]
    unordered = pa.Array.from_buffers(pa.large_binary(), len(when), buffers)
    ordered = unordered.take(pa.array(np.argsort(when, kind="stable")))
    return ordered.buffers()[2], len(when), int(when.max()) + SLOT_NS


def _sizes(plans: list[Plan]) -> tuple[Column, Column]:
    return np.array([each.client_bytes for each in plans]), np.array([each.server_bytes for each in plans])


def _before(amounts: Column, who: Column, state: Column) -> Column:
    """The running totals of each connection before each exchange, from `state` on, which is updated."""
    width = min(len(who), len(state))
    padded = np.zeros(-(-len(who) // width) * width, np.int64)
    padded[: len(amounts)] = amounts
    table = padded.reshape(-1, width)
    columns = who[:width]
    before = np.cumsum(table, axis=0) - table + state[columns]
    state[columns] += table.sum(axis=0)
    return before.ravel()[: len(who)]


def _rows(
    packet: Packet, when: Column, who: Column, before: list[Column], state: Connections, says: dict[str, Column]
) -> Column:
    """One packet of many exchanges: its template as often, with their bytes in it."""
    rows = np.empty((len(who), len(packet.template)), np.uint8)
    rows[:] = np.frombuffer(packet.template, np.uint8)
    seconds, rest_ns = np.divmod(when, 1_000_000_000)
    _put(rows, 0, seconds, "<u4")
    _put(rows, 4, rest_ns // 1000, "<u4")
    _put(rows, _CLIENT_IP if packet.from_client else _SERVER_IP, state.client_ip[who], ">u4")
    _put(rows, _PORTS if packet.from_client else _PORTS + 2, state.client_port[who], ">u2")
    mine, other = before if packet.from_client else before[::-1]
    _put(rows, _SEQ, mine + packet.mine & 0xFFFFFFFF, ">u4")
    if packet.has_ack:
        _put(rows, _ACK_AT, other + packet.other & 0xFFFFFFFF, ">u4")
    for place in packet.places:
        _put(rows, _PAYLOAD + place.at, says[place.what], f">u{place.size}")
    return rows


def _put(rows: Column, at: int, values: Column, form: str) -> None:
    as_bytes = values.astype(form).view(np.uint8).reshape(len(rows), -1)
    rows[:, at : at + as_bytes.shape[1]] = as_bytes


def plan(kind: Kind) -> Plan:
    """The packets of one exchange: the request's, the response's, and the client's acknowledgement."""
    packets = []
    for from_client, frame, places, other in (
        (True, kind.request, kind.request_places, 0),
        (False, kind.response, kind.response_places, len(kind.request)),
    ):
        for start in range(0, len(frame), SEGMENT_BYTES):
            payload = frame[start : start + SEGMENT_BYTES]
            inside = [each._replace(at=each.at - start) for each in places if 0 <= each.at - start < len(payload)]
            assert all(each.at + each.size <= len(payload) for each in inside), kind.name
            packets.append(_packet(from_client, _PSH | _ACK, start, other, payload, inside))
    packets.append(_packet(True, _ACK, len(kind.request), len(kind.response)))
    return Plan(packets, len(kind.request), len(kind.response))


def _handshake() -> Plan:
    opens = [_packet(True, _SYN, 0, 0), _packet(False, _SYN | _ACK, 0, 1), _packet(True, _ACK, 1, 1)]
    return Plan(opens, 1, 1)


def _packet(
    from_client: bool, flags: int, mine: int, other: int, payload: bytes = b"", places: list[Place] | None = None
) -> Packet:
    tcp = pack(">HHIIBBHHH", *([0, PORT] if from_client else [PORT, 0]), 0, 0, 8 << 4, flags, 512, 0, 0) + _TIMESTAMPS
    server = b"\x0a\x00\x00\x01"
    addresses = bytes(4) + server if from_client else server + bytes(4)
    ip = pack(">BBHHHBBH", 0x45, 0, 20 + len(tcp) + len(payload), 1, 0x4000, 64, 6, 0) + addresses
    data = b"\x02\0\0\0\0\x02\x02\0\0\0\0\x01\x08\x00" + ip + tcp + payload
    template = pack("<IIII", 0, 0, len(data), len(data)) + data
    return Packet(from_client, mine, other, bool(flags & _ACK), template, places or [])


def main() -> None:
    parser = argparse.ArgumentParser(description="Write a capture of a controller's traffic.")
    parser.add_argument("--packets", type=int, default=2_000_000)
    parser.add_argument("--connections", type=int, default=200)
    parser.add_argument("--out", required=True)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    made = generate(options.out, options.packets, options.connections, options.seed)
    print(json.dumps(made._asdict()))


if __name__ == "__main__":
    main()
