"""Disks and batches for the tests of what lies in log directories."""

from __future__ import annotations

import struct

import pytest
from crc32c import crc32c
from mockraft.brokers.disks.disk import Disk
from mockraft.brokers.disks.memory_disk import MemoryDisk
from mockraft.wire import record_batch


@pytest.fixture
def disk() -> Disk:
    """An empty disk. `test_disks` shows that the kinds of disks do the same."""
    return MemoryDisk("/simulated/d0")


def batch(*values: str, at: int = 0, epoch: int = 0, time_ms: int = 1000, attributes: int = 0) -> bytes:
    """The bytes of a batch of these values."""
    data = record_batch.encode(
        [value.encode() for value in values], base_offset=at, leader_epoch=epoch, timestamp_ms=time_ms
    )
    return with_header(data, attributes=attributes) if attributes else data


def with_header(data: bytes, **changes: int) -> bytes:
    """A batch with fields of its header changed, and a CRC that fits: attributes, last_offset_delta, count."""
    places = {"attributes": (21, "h"), "last_offset_delta": (23, "i"), "producer_id": (43, "q"), "count": (57, "i")}
    changed = bytearray(data)
    for name, value in changes.items():
        at, kind = places[name]
        struct.pack_into(f">{kind}", changed, at, value)
    struct.pack_into(">I", changed, 17, crc32c(bytes(changed[21:])))
    return bytes(changed)
