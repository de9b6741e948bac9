"""Kafka's small files as Kafka reads and writes them: meta.properties and checkpoints."""

from __future__ import annotations

import contextlib
import errno

import pytest
from hypothesis import given
from hypothesis import strategies as st
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
from mockraft.brokers.log_dirs.ensemble import MetaProperties, MetaPropertiesError
from mockraft.wire.uuids import read_text

from ...rows import each_row

KAFKAS = b"""#
#Sun Nov 22 01:42:26 UTC 2026
node.id=8
directory.id=itJ8_XYYWgekF0XeCAZfaQ
version=1
cluster.id=41QSStLtR3qOekbX4ZlbHA
"""
META = MetaProperties(1, "41QSStLtR3qOekbX4ZlbHA", 8, read_text("itJ8_XYYWgekF0XeCAZfaQ"))


def test_parses_files_of_kafka() -> None:
    assert MetaProperties.read(KAFKAS) == META


def test_writes_the_bytes_of_kafka_except_for_the_date() -> None:
    assert META.write() == KAFKAS.replace(b"#Sun Nov 22 01:42:26 UTC 2026\n", b"")


def test_file_without_a_version_is_version_0_and_may_be_empty() -> None:
    assert MetaProperties.read(b"") == MetaProperties()
    assert MetaProperties.read(b"broker.id=3\ncluster.id=c\n") == MetaProperties(0, "c", 3)
    assert MetaProperties.read(b"node.id=3\n").node_id is None
    assert MetaProperties(0, "c", 3).write() == b"#\nbroker.id=3\nversion=0\ncluster.id=c\n"


def test_unknown_keys_are_kept() -> None:
    read = MetaProperties.read(KAFKAS + b"rack.unit=7\nowner=a b\n")
    assert read.others == {"rack.unit": "7", "owner": "a b"}
    assert MetaProperties.read(read.with_directory_id(b"d" * 16).write()).others == read.others


@each_row(
    ("data", "reason"),
    [
        (b"version=2\n", "Unknown meta.properties version number 2"),
        (b"version=one\n", "Invalid meta.properties version string 'one'"),
        (b"version=\n", "Invalid meta.properties version string ''"),
        (b"version=1\ncluster.id=c\n", "Failed to find node.id"),
        (b"version=1\nnode.id=1\n", "cluster.id was not found."),
        (b"version=1\nnode.id=1 \ncluster.id=c\n", "Unable to read node.id as a base-10 number."),
        (b"version=1\nnode.id=2147483648\ncluster.id=c\n", "Unable to read node.id as a base-10 number."),
        (b"version=1\nnode.id=1_0\ncluster.id=c\n", "Unable to read node.id as a base-10 number."),
        (b"broker.id=" + b"9" * 5000, "Unable to read broker.id as a base-10 number."),
        (b"directory.id=short\n", "Unable to read directory.id as a Uuid"),
        (b"directory.id=itJ8_XYYWgekF0XeCAZfaQitJ8_XYYWgekF0XeCAZfaQ\n", "Unable to read directory.id as a Uuid"),
        (b"directory.id=\\u12", "Malformed"),
    ],
)
def test_unusable_file_is_refused_with_a_reason(data: bytes, reason: str) -> None:
    with pytest.raises(MetaPropertiesError) as refused:
        MetaProperties.read(data)
    assert reason in str(refused.value)


@given(st.binary(max_size=80))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        version = MetaProperties.read(data).version
    except MetaPropertiesError:
        version = 0
    assert version in (0, 1)


def test_a_truncated_file_is_never_mistaken_for_another_node() -> None:
    assert META.cluster_id is not None
    for length in range(len(KAFKAS)):
        with contextlib.suppress(MetaPropertiesError):
            meta = MetaProperties.read(KAFKAS[:length])
            assert meta.node_id in (None, 8)
            assert meta.cluster_id is None or META.cluster_id.startswith(meta.cluster_id)


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


def disk_with(name: str, text: bytes | None) -> MemoryDisk:
    disk = MemoryDisk("/simulated/d0")
    if text is not None:
        disk.append(name, text)
    return disk


@each_row("text", [None, b"", b"0\n", b"0\n0\n"])
def test_missing_file_empty_file_and_file_without_entries_are_empty(text: bytes | None) -> None:
    disk = disk_with("c", text)
    assert read_offsets(disk, "c") == {}
    assert read_leader_epochs(disk, "c") == []


@each_row(
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
    disk = disk_with("c", text)
    with pytest.raises(OSError, match="malformed at") as raised:
        read_offsets(disk, "c")
    assert (raised.value.errno, raised.value.filename) == (errno.EBADMSG, "/simulated/d0/c")
    assert said in str(raised.value)


@each_row("second", ["2 5", "2 8", "3 5", "3 8", "4 6"])
def test_epochs_that_do_not_ascend_are_refused(second: str) -> None:
    disk = disk_with("c", f"0\n2\n3 7\n{second}\n".encode())
    with pytest.raises(OSError, match="line 4: epochs and offsets do not ascend"):
        read_leader_epochs(disk, "c")


def test_an_epoch_without_records_starts_where_the_next_one_does() -> None:
    assert read_leader_epochs(disk_with("c", b"0\n2\n3 7\n4 7\n"), "c") == [(3, 7), (4, 7)]


def test_an_epoch_that_is_no_number_is_named_with_its_line() -> None:
    with pytest.raises(OSError, match="line 3: 'x' is not a number"):
        read_leader_epochs(disk_with("c", b"0\n1\nx 0\n"), "c")


@each_row(
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
