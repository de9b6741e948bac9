"""Formatting as kafka-storage does it."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from mockraft.brokers.log_dirs.ensemble import META_PROPERTIES, LogDirsError, MetaProperties, Refusal
from mockraft.brokers.log_dirs.startup_rules import open_log_dirs
from mockraft.brokers.log_dirs.storage_format import Formatted, format_log_dirs
from mockraft.wire.uuids import text_of

from ...rows import each_row

CLUSTER = "41QSStLtR3qOekbX4ZlbHA"


def format_at(
    *paths: Path,
    cluster_id: str = CLUSTER,
    node_id: int = 8,
    ignore_formatted: bool = False,
    metadata: Path | None = None,
) -> Formatted:
    return format_log_dirs(
        [str(path) for path in paths],
        node_id,
        cluster_id,
        random.Random(1),
        metadata_log_dir=None if metadata is None else str(metadata),
        ignore_formatted=ignore_formatted,
    )  # fmt: skip


def read(path: Path) -> MetaProperties:
    return MetaProperties.read((path / META_PROPERTIES).read_bytes())


def test_each_directory_gets_an_id_of_its_own_the_metadata_dir_too(tmp_path: Path) -> None:
    d1, d2, metadata = tmp_path / "deep" / "d1", tmp_path / "d2", tmp_path / "m"
    done = format_at(d1, d2, metadata=metadata)
    metas = [read(path) for path in (d1, d2, metadata)]
    assert [(meta.version, meta.cluster_id, meta.node_id) for meta in metas] == [(1, CLUSTER, 8)] * 3
    assert len({meta.directory_id for meta in metas}) == 3
    assert sorted(done.lines()) == [
        f"Formatting data directory {d2} with metadata.version 4.4-IV2.",
        f"Formatting data directory {d1} with metadata.version 4.4-IV2.",
        f"Formatting metadata directory {metadata} with metadata.version 4.4-IV2.",
    ]


def test_broker_starts_on_formatted_directories(tmp_path: Path) -> None:
    paths = [tmp_path / "d1", tmp_path / "d2"]
    format_at(*paths)
    begun = open_log_dirs([str(path) for path in paths], 8, CLUSTER, random.Random(2))
    assert [each.directory_id for each in begun.log_dirs] == [read(path).directory_id for path in paths]


def test_second_format_is_refused_and_changes_no_file(tmp_path: Path) -> None:
    format_at(tmp_path / "d1")
    before = read(tmp_path / "d1")
    with pytest.raises(LogDirsError, match=r"d1 is already formatted\. Use --ignore-formatted") as refused:
        format_at(tmp_path / "d1", tmp_path / "d2")
    assert refused.value.refusal is Refusal.ALREADY_FORMATTED
    assert read(tmp_path / "d1") == before
    assert not (tmp_path / "d2").exists()


def test_ignore_formatted_formats_only_the_unformatted_dirs(tmp_path: Path) -> None:
    format_at(tmp_path / "d1")
    before = read(tmp_path / "d1")
    done = format_at(tmp_path / "d1", tmp_path / "d2", ignore_formatted=True)
    assert list(done.metas) == [str(tmp_path / "d2")]
    assert read(tmp_path / "d1") == before
    nothing = format_at(tmp_path / "d1", tmp_path / "d2", ignore_formatted=True)
    assert nothing.metas == {}
    assert nothing.lines() == ["All of the log directories are already formatted."]


def test_formatted_dir_without_a_directory_id_is_left_to_the_broker(tmp_path: Path) -> None:
    """KIP-858 says that the tool draws it; what Kafka shipped leaves it to the start of the broker."""
    (tmp_path / "d1").mkdir()
    (tmp_path / "d1" / META_PROPERTIES).write_bytes(MetaProperties(1, CLUSTER, 8).write())
    format_at(tmp_path / "d1", ignore_formatted=True)
    assert read(tmp_path / "d1").directory_id is None
    open_log_dirs([str(tmp_path / "d1")], 8, CLUSTER, random.Random(1))
    assert read(tmp_path / "d1").directory_id is not None


@each_row(("again", "refusal"), [({"cluster_id": "other"}, Refusal.CLUSTER_ID), ({"node_id": 9}, Refusal.NODE_ID)])
def test_a_dir_of_another_cluster_or_node_is_refused_even_when_to_be_ignored(
    tmp_path: Path, again: dict[str, object], refusal: Refusal
) -> None:
    format_at(tmp_path / "d1")
    with pytest.raises(LogDirsError, match=" in") as refused:
        format_at(tmp_path / "d1", tmp_path / "d2", ignore_formatted=True, **again)  # type: ignore[arg-type]
    assert refused.value.refusal is refusal
    assert not (tmp_path / "d2").exists()


@each_row(
    ("bad", "text"),
    [
        ({"node_id": -1}, "node id -1"),
        ({"node_id": 2**31}, "node id 2147483648"),
        ({"cluster_id": ""}, "cluster id ''"),
        ({"cluster_id": "a\nb"}, "cluster id 'a"),
    ],
)
def test_ids_that_cannot_be_are_refused(tmp_path: Path, bad: dict[str, object], text: str) -> None:
    with pytest.raises(LogDirsError, match=text) as refused:
        format_at(tmp_path / "d1", **bad)  # type: ignore[arg-type]
    assert refused.value.refusal is Refusal.BAD_ID
    assert not (tmp_path / "d1").exists()


def test_unreadable_dir_is_left_out_if_another_is_readable(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    done = format_at(tmp_path / "d1", tmp_path / "file")
    assert done.lines()[0].startswith(f"I/O error trying to read log directory {tmp_path / 'file'}. Ignoring...")
    assert list(done.metas) == [str(tmp_path / "d1")]
    with pytest.raises(LogDirsError, match="No available log directories") as refused:
        format_at(tmp_path / "file")
    assert refused.value.refusal is Refusal.NONE_LIVE
    assert (tmp_path / "file").read_text() == "mine"


def test_a_dir_that_cannot_be_written_is_not_formatted(tmp_path: Path) -> None:
    (tmp_path / "d1" / f"{META_PROPERTIES}.tmp").mkdir(parents=True)
    with pytest.raises(LogDirsError, match=str(tmp_path / "d1")) as refused:
        format_at(tmp_path / "d1")
    assert refused.value.refusal is Refusal.NOT_WRITTEN
    assert not (tmp_path / "d1" / META_PROPERTIES).exists()


def test_ids_begin_with_no_dash_and_are_never_reserved(tmp_path: Path) -> None:
    class Chance(random.Random):
        def __init__(self) -> None:
            super().__init__(1)
            self.drawn = [bytes(16), bytes(15) + b"\x63", b"\xfb" * 16, b"good" * 4]

        def randbytes(self, n: int) -> bytes:
            return self.drawn.pop(0)

    done = format_log_dirs([str(tmp_path / "d1")], 8, CLUSTER, Chance())
    (meta,) = done.metas.values()
    assert meta.directory_id is not None
    assert text_of(meta.directory_id) == text_of(b"good" * 4)


def test_formatting_needs_a_directory() -> None:
    with pytest.raises(LogDirsError) as refused:
        format_at()
    assert refused.value.refusal is Refusal.NO_DIRECTORY
