"""The disk in memory: its capacity, and that it costs nothing."""

from __future__ import annotations

import errno
import tracemalloc

import pytest
from mockraft.brokers.disks.memory_disk import MemoryDisk


def test_full_disk_refuses_whole_writes_until_space_is_freed() -> None:
    disk = MemoryDisk("/simulated/d0", bytes_max=10)
    disk.append("a", b"12345678")
    for write in (disk.append, disk.replace):
        with pytest.raises(OSError, match="No space left") as told:
            write("b", b"123")
        assert told.value.errno == errno.ENOSPC
    assert disk.names() == ["a"]
    disk.replace("a", b"1234567890")
    assert disk.space() == (10, 0)

    disk.truncate("a", 1)
    assert disk.space().usable_bytes == 9
    disk.make_dir("t-0")
    disk.append("t-0/a", b"123456789")
    disk.remove("t-0")
    disk.append("b", b"12345")
    disk.rename("b", "a")
    assert disk.space().usable_bytes == 5


def test_ten_thousand_empty_ones_take_few_kilobytes_each() -> None:
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        disks = [MemoryDisk(f"/simulated/{index}") for index in range(1000)]
        assert (tracemalloc.get_traced_memory()[0] - before) / len(disks) < 1500
    finally:
        tracemalloc.stop()
