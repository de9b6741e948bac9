"""TCP that nobody should have sent takes memory and work in proportion to its bytes."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from itertools import repeat
from pathlib import Path
from random import Random

from mockraft.spark_replay.frames import read_frames
from mockraft.spark_replay.key_logs import read_key_log

from ...budgets import sample, soak
from ...rows import each_row
from ..capture_bytes import Packet, pcap
from ..packetiser import (
    ACK,
    RST,
    START_NS,
    SYN,
    Flow,
    Segment,
    conversation,
    exchanges,
    ip,
    link,
    mixed,
    moved,
    packets,
    repeated,
    request,
    response,
)

FLOW = Flow()
OPENED = conversation([request(1), response(1)])
CLIENT, SERVER = (OPENED[-1].ack, OPENED[-1].seq + len(OPENED[-1].payload))
"""The sequence numbers that follow."""

BYTES_PER_BYTE = 20
CALLS_PER_BYTE = 12
CPU_NS_PER_BYTE = 4_000
"""What a byte of a capture takes at most, besides what every process does; docs/reference/capture-formats.md."""

PacketsOf = Callable[[int], Iterator[Packet]]


def packet(
    number: int, seq: int, data: bytes, *, from_client: bool = True, flow: Flow = FLOW, flags: int = ACK
) -> Packet:
    segment = Segment(flow, from_client, START_NS + number * 1000, seq & 0xFFFFFFFF, 0, flags, data)
    return packets([segment])[0]


def shortened(each: Packet, size: int) -> Packet:
    """The packet as a snaplen leaves it."""
    return Packet(each.time_ns, each.data[:size], len(each.data))


def claims_of_a_mebibyte(count: int) -> Iterator[Packet]:
    for number in range(count):
        segment = Segment(FLOW, True, START_NS + number, CLIENT + (number << 20) & 0xFFFFFFFF, 0, ACK, b"")
        data = link(ip(segment, length_zero=True))
        yield Packet(segment.time_ns, data, len(data) + (1 << 20))


def bytes_under_long_segments(count: int) -> Iterator[Packet]:
    for number in range(count // 2):
        yield packet(number, CLIENT + 9 + 2 * number, b"x")
    for number in range(count // 2):
        yield shortened(packet(number, CLIENT + 8 - number % 7, bytes(min(count, 60_000))), 54)


def staircase_of_overlaps(count: int) -> Iterator[Packet]:
    for number in range(count):
        yield packet(number, CLIENT + 7 + 3 * (count - number), b"y" * 60)


def uncaptured_behind_a_gap(count: int) -> Iterator[Packet]:
    for number in range(count):
        yield shortened(packet(number, CLIENT + 9 + number, b"z"), 54)


def a_gap_in_every_packet(count: int) -> Iterator[Packet]:
    for number in range(count):
        client = number % 2 == 0
        yield packet(number, (CLIENT if client else SERVER) + 9 + 3 * number, b"x", from_client=client)


def a_gap_before_every_frame(count: int) -> Iterator[Packet]:
    client, server = CLIENT, SERVER
    for number in range(count // 2):
        asked, answered = request(number).data, response(number).data
        yield packet(2 * number, client, asked)
        yield packet(2 * number + 1, server, answered, from_client=False)
        client, server = client + len(asked) + 5, server + len(answered) + 5


def half_a_frame_in_every_segment(count: int) -> Iterator[Packet]:
    asked, answered = request(7, bytes(100)).data[:40], response(7, bytes(100)).data[:40]
    for number in range(count):
        client = number % 3 > 0
        place = (CLIENT if client else SERVER) + 40 * number
        yield packet(number, place, asked if client else answered, from_client=client)


def half_a_frame_in_every_connection(count: int) -> Iterator[Packet]:
    for number in range(count):
        flow = Flow(f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}")
        yield packet(number, 7, request(1, bytes(100)).data[:40], flow=flow)


def one_byte_each_backwards(count: int) -> Iterator[Packet]:
    data = request(2, bytes(count)).data[:count]
    for number in range(count):
        yield packet(number, CLIENT + count - number - 1, data[count - number - 1 :][:1])


def headers_that_never_hold(count: int) -> Iterator[Packet]:
    # A plausible header every 14 bytes, none of which is followed by another.
    data = (request(0, bytes(60)).data[:14] * 100)[:1400]
    for number in range(count // 10):
        yield packet(number, CLIENT + 1400 * number + 5, b"\xff" + data[1:])


def refused_connections(count: int) -> Iterator[Packet]:
    for number in range(count // 2):
        flow = Flow(client_port=20_000 + number % 40_000)
        yield packet(2 * number, 7919 * number, b"", flow=flow, flags=SYN)
        yield packet(2 * number + 1, 0, b"", from_client=False, flow=flow, flags=RST | ACK)


RANDOM = bytes(32)
LABELS = [f"{end}_{name}" for end in ("CLIENT", "SERVER") for name in ("HANDSHAKE_TRAFFIC_SECRET", "TRAFFIC_SECRET_0")]
KEY_LOG = "".join(f"{label} {RANDOM.hex()} {RANDOM.hex()}\n" for label in LABELS)
CLIENT_HELLO, SERVER_HELLO = (
    bytes.fromhex(f"160303{size:04x}{kind}0000{size - 4:02x}0303") + RANDOM + bytes.fromhex(rest)
    for size, kind, rest in ((41, "01", "00 0000 00"), (48, "02", "00 1301 00 0006 002b 0002 0304"))
)
NO_RECORD = b"\x17\3\3\0\x16" + bytes(22)


def tls(client_port: int, gaps: Iterator[int]) -> Iterator[Packet]:
    flow, seq = Flow(client_port=client_port), 1 + len(SERVER_HELLO)
    yield packet(0, 0, b"", flow=flow, flags=SYN)
    yield packet(1, 0, b"", from_client=False, flow=flow, flags=SYN | ACK)
    yield packet(2, 1, CLIENT_HELLO, flow=flow)
    yield packet(3, 1, SERVER_HELLO, from_client=False, flow=flow)
    for number, gap in enumerate(gaps):
        seq += gap
        yield packet(4 + number, seq, NO_RECORD, from_client=False, flow=flow)
        seq += len(NO_RECORD)


def a_gap_before_every_tls_record(count: int) -> Iterator[Packet]:
    yield from tls(20_000, repeat(22, count))


def a_large_gap_in_every_tls_connection(count: int) -> Iterator[Packet]:
    for number in range(count // 5):
        yield from tls(20_000 + number, repeat(1 << 20, 1))


def anything(count: int) -> Iterator[Packet]:
    rng = Random(count)
    segments = conversation(exchanges(count // 20, rng), segment_bytes=rng.choice([7, 60]))
    segments = mixed(repeated(moved(segments, -900, 0), rng, 0.3), rng, 200)[:count]
    for number, each in enumerate(segments):
        lie = rng.random()
        seq = each.seq + (rng.randrange(1 << 32) if lie < 0.05 else rng.randrange(-90, 90) if lie < 0.2 else 0)
        made = packet(
            number, seq, each.payload, from_client=each.from_client, flags=rng.choice([each.flags] * 30 + [RST])
        )
        yield shortened(made, rng.randrange(54, 90)) if rng.random() < 0.2 else made


KINDS: list[PacketsOf] = [
    claims_of_a_mebibyte,
    bytes_under_long_segments,
    staircase_of_overlaps,
    uncaptured_behind_a_gap,
    a_gap_in_every_packet,
    a_gap_before_every_frame,
    half_a_frame_in_every_segment,
    half_a_frame_in_every_connection,
    one_byte_each_backwards,
    headers_that_never_hold,
    a_gap_before_every_tls_record,
    refused_connections,
    a_large_gap_in_every_tls_connection,
    anything,
]


def hostile(path: Path, kind: PacketsOf, count: int) -> Path:
    path.write_bytes(pcap([*packets(OPENED), *kind(count)]))
    path.with_name("key.log").write_text(KEY_LOG)
    return path


def calls_of(path: Path) -> int:
    calls = 0

    def count(*_: object) -> None:
        nonlocal calls
        calls += 1

    sys.setprofile(count)
    try:
        for _ in read_frames(path, key_log=path.with_name("key.log")):
            pass
    finally:
        sys.setprofile(None)
    return calls


@each_row("kind", sample(KINDS, 4))
def test_hostile_streams_take_work_and_memory_in_proportion(tmp_path: Path, kind: PacketsOf) -> None:
    few, many = (hostile(tmp_path / str(count), kind, count) for count in (300, 1800))
    # The first run fills tables that stay.
    calls_of(few)
    assert calls_of(many) - calls_of(few) < CALLS_PER_BYTE * (many.stat().st_size - few.stat().st_size)
    key_log = read_key_log(str(many.with_name("key.log")))
    tracemalloc.start()
    for _ in read_frames(many, conn_events=[], key_log=key_log):
        pass
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 16_000_000 + BYTES_PER_BYTE * many.stat().st_size


READ = """
import resource, sys
from mockraft.spark_replay import read_frames

events, key_log, *paths = [], *sys.argv[1:]
for path in paths:
    frames = sum(batch.num_rows for batch in read_frames(path, conn_events=events, key_log=key_log))
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(used.ru_maxrss * 1024, int((used.ru_utime + used.ru_stime) * 1e9))
"""


@soak
@each_row("kind", KINDS)
def test_large_hostile_captures_are_linear(tmp_path: Path, kind: PacketsOf) -> None:
    small, large = hostile(tmp_path / "small", kind, 1000), hostile(tmp_path / "large", kind, 200_000)
    command = [sys.executable, "-c", READ, *map(str, (tmp_path / "key.log", small, large))]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    (memory, cpu_ns), (all_memory, all_cpu_ns) = (map(int, line.split()) for line in ended.stdout.splitlines())
    size = large.stat().st_size
    assert all_memory - memory < 100_000_000 + BYTES_PER_BYTE * size
    assert all_cpu_ns - cpu_ns < CPU_NS_PER_BYTE * size
