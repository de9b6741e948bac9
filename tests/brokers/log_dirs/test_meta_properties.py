"""meta.properties as Kafka reads and writes it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mockraft.brokers.log_dirs.meta_properties import MetaProperties, MetaPropertiesError
from mockraft.wire.uuids import read_text

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


@pytest.mark.parametrize(
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


@pytest.mark.parametrize("length", range(len(KAFKAS)))
def test_a_truncated_file_is_never_mistaken_for_another_node(length: int) -> None:
    try:
        meta = MetaProperties.read(KAFKAS[:length])
    except MetaPropertiesError:
        return
    assert meta.node_id in (None, 8)
    assert meta.cluster_id is None or (META.cluster_id is not None and META.cluster_id.startswith(meta.cluster_id))
