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
from ..capture_bytes import block, interface, section
from .segment_rows import written

SHORT, LONG = 8_000, 64_000
GROWTH_MAX = 4 * LONG / SHORT
"""Linear time grows 8 times, quadratic time up to 64 times."""


def packet(interface_id: int) -> bytes:
    return block(6, pack("<IIIII", interface_id, 0, 0, 20, 20) + bytes(20))


def an_interface_for_each_packet(size: int) -> bytes:
    return section() + b"".join(interface(offset_s=index) + packet(index) for index in range(size))


def a_link_type_for_each_packet(size: int) -> bytes:
    links = b"".join(interface(link_type) for link_type in range(size))
    return section() + links + b"".join(map(packet, range(size)))


def damaged_blocks(size: int) -> bytes:
    broken = packet(0)[:-4] + bytes(4)
    return section() + interface() + (packet(0) * 200 + broken) * (size // 100)


@soak
@pytest.mark.parametrize("make", [an_interface_for_each_packet, a_link_type_for_each_packet, damaged_blocks])
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
