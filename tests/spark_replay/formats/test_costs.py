"""Files that are made to be slow to read take a time that grows with their size, not with its square."""

import time
from collections.abc import Callable
from pathlib import Path
from struct import pack

import pytest
from mockraft.spark_replay.formats import read_segments
from mockraft.spark_replay.formats.file_events import FileEvent
from mockraft.spark_replay.formats.file_headers import read_interface

from ...budgets import soak
from ..capture_bytes import RAW, block, interface, section
from ..packetiser import FLOW, FLOW_6, Segment, ip
from .segment_rows import written

MORE_FRAGMENTS = 0x2000
ONE = Segment(FLOW, True, 0, 7, 0, 0x10, b"hello")
SIX = ONE._replace(flow=FLOW_6)
SHORT, LONG = 8_000, 64_000
GROWTH_MAX = 4 * LONG / SHORT
"""Linear time grows 8 times, quadratic time up to 64 times."""


def packet(interface_id: int, data: bytes = bytes(20)) -> bytes:
    return block(6, pack("<IIIII", interface_id, 0, 0, len(data), len(data)) + data)


def an_interface_for_each_packet(size: int) -> bytes:
    return section() + b"".join(interface(offset_s=index) + packet(index) for index in range(size))


def a_link_type_for_each_packet(size: int) -> bytes:
    links = b"".join(interface(link_type) for link_type in range(size))
    return section() + links + b"".join(map(packet, range(size)))


def damaged_blocks(size: int) -> bytes:
    broken = packet(0)[:-4] + bytes(4)
    return section() + interface() + (packet(0) * 200 + broken) * (size // 100)


def a_long_chain_of_ipv6_extensions(size: int) -> bytes:
    chain, last = (ip(SIX, extensions=bytes(8 * count), protocol=0) for count in (size // 8, 1))
    return section() + interface(RAW) + packet(0, chain) + packet(0, last) * size


def fragments_that_never_fit(size: int) -> bytes:
    """As many bytes as the packet has, one piece missing and one behind the last one."""
    end = size // 8
    pieces = [ip(ONE, bytes(8), fragment=MORE_FRAGMENTS | place) for place in (*range(end - 2), end)]
    given = [*pieces, ip(ONE, bytes(8), fragment=end - 1), *pieces[:1] * size]
    return section() + interface(RAW) + b"".join(packet(0, each) for each in given)


@soak
@pytest.mark.parametrize(
    "make",
    [
        an_interface_for_each_packet,
        a_link_type_for_each_packet,
        damaged_blocks,
        a_long_chain_of_ipv6_extensions,
        fragments_that_never_fit,
    ],
)
def test_time_to_read_a_file_grows_with_its_size(tmp_path: Path, make: Callable[[int], bytes]) -> None:
    def read(size: int) -> float:
        path, events = written(tmp_path / f"{size}.pcapng", make(size)), list[FileEvent]()
        begin = time.process_time()
        assert [*read_segments(str(path), on_error="skip", events=events), *events]
        return time.process_time() - begin

    assert read(LONG) < GROWTH_MAX * read(SHORT)


def test_time_to_read_options_grows_with_their_number() -> None:
    def read(size: int) -> float:
        body = pack("<HHI", 1, 0, 0) + pack("<HH", 99, 0) * size
        begin = time.process_time()
        assert read_interface("<", body).link_type == 1
        return time.process_time() - begin

    assert read(LONG) < GROWTH_MAX * read(SHORT)
