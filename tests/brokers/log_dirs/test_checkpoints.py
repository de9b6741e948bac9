"""Kafka's small text files: reading, writing, and errors with their line."""

from __future__ import annotations

import errno

import pytest
from mockraft.brokers.disks.disk import Disk
from mockraft.brokers.disks.memory_disk import MemoryDisk
from mockraft.brokers.log_dirs.checkpoints import (
    read_leader_epochs,
    read_offsets,
    read_topic_id,
    write_leader_epochs,
    write_offsets,
    write_topic_id,
)

TOPIC = bytes(range(16))


def test_offsets_are_read_as_they_were_written(disk: Disk) -> None:
    write_offsets(disk, "c", {("a.b-c", 0): 5, ("t", 10): 1 << 40})

    assert disk.read("c") == b"0\n2\na.b-c 0 5\nt 10 1099511627776\n"
    assert read_offsets(disk, "c") == {("a.b-c", 0): 5, ("t", 10): 1 << 40}
    assert disk.names() == ["c"]


def test_epochs_are_read_as_they_were_written(disk: Disk) -> None:
    write_leader_epochs(disk, "c", [(0, 0), (3, 10)])

    assert disk.read("c") == b"0\n2\n0 0\n3 10\n"
    assert read_leader_epochs(disk, "c") == [(0, 0), (3, 10)]


def test_a_topic_id_is_read_as_it_was_written(disk: Disk) -> None:
    disk.make_dir("t-0")
    assert read_topic_id(disk, "t-0") is None
    write_topic_id(disk, "t-0", TOPIC)
    assert read_topic_id(disk, "t-0") == TOPIC


@pytest.mark.parametrize("text", [None, b"", b"0\n", b"0\n0\n"])
def test_missing_file_empty_file_and_file_without_entries_are_empty(text: bytes | None) -> None:
    disk = MemoryDisk("/simulated/d0")
    if text is not None:
        disk.append("c", text)
    assert read_offsets(disk, "c") == {}
    assert read_leader_epochs(disk, "c") == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"1\n0\n", "line 1: expected version 0"),
        (b"\xff\xfe\n0\n", "line 1: expected version 0"),
        (b"0\n-1\n", "line 2: expected the number of entries"),
        (b"0\nmany\n", "line 2: expected the number of entries"),
        (b"0\n2\nt 0 1\n", "line 2: expected 2 entries, found 1"),
        (b"0\n1\nt 0 1\nt 1 1\n", "line 2: expected 1 entries, found 2"),
        (b"0\n1\nt 0\n", "line 3: expected 3 fields"),
        (b"0\n1\nt 0 1 2\n", "line 3: expected 3 fields"),
        (b"0\n2\nt 0 1\nt x 1\n", "line 4: 'x' is not a number"),
        (b"0\n1\nt 0 99999999999999999999\n", "line 3: '99999999999999999999' is not a number"),
    ],
)
def test_a_broken_checkpoint_is_refused_with_its_path_and_line(text: bytes, said: str) -> None:
    disk = MemoryDisk("/simulated/d0")
    disk.append("c", text)
    with pytest.raises(OSError, match="malformed at") as told:
        read_offsets(disk, "c")
    assert told.value.errno == errno.EBADMSG
    assert told.value.filename == "/simulated/d0/c"
    assert said in str(told.value)


def test_epochs_that_go_back_are_refused() -> None:
    disk = MemoryDisk("/simulated/d0")
    disk.append("c", b"0\n2\n3 0\n2 5\n")
    with pytest.raises(OSError, match="line 4: epochs and offsets do not ascend"):
        read_leader_epochs(disk, "c")


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"version: 1\ntopic_id: AAECAwQFBgcICQoLDA0ODw",
        b"version: 0\n",
        b"version: 0\ntopic_id: short",
        b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA",
    ],
)
def test_a_broken_partition_metadata_is_refused(text: bytes) -> None:
    disk = MemoryDisk("/simulated/d0")
    disk.make_dir("t-0")
    disk.append("t-0/partition.metadata", text)
    with pytest.raises(OSError, match=r"malformed at line \d: expected"):
        read_topic_id(disk, "t-0")
