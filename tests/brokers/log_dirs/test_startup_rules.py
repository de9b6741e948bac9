"""Directories at a broker's start: every rule of Kafka's start as one table, then on a real file system."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from mockraft.brokers.log_dirs.ensemble import (
    BOOTSTRAP_CHECKPOINT,
    META_PROPERTIES,
    DirFound,
    LogDirsError,
    MetaProperties,
    Refusal,
    look,
    verify,
)
from mockraft.brokers.log_dirs.startup_rules import Start, decide, open_log_dirs

from ...rows import each_row
from .bootstrap_file import BOOTSTRAP_FILE

CLUSTER = "41QSStLtR3qOekbX4ZlbHA"
FORMATTED = MetaProperties(1, CLUSTER, 8)


def dir_at(path: str, meta: MetaProperties | None = FORMATTED, **found: object) -> DirFound:
    if meta is FORMATTED:
        meta = meta.with_directory_id(path.encode().ljust(16, b"."))
    return DirFound(path, meta, canonical=str(found.pop("canonical", path)), **found)  # type: ignore[arg-type]


def failed(path: str) -> DirFound:
    return DirFound(path, error="Input/output error", canonical=path)


def start(
    *found: DirFound, metadata: str | None = None, cluster_id: str | None = CLUSTER, paths: tuple[str, ...] = ()
) -> Start:
    paths = paths or tuple(each.path for each in found if each.path != metadata)
    return decide(sorted(found), paths, metadata or paths[0], node_id=8, cluster_id=cluster_id, rng=random.Random(1))


A, B, M = dir_at("/a"), dir_at("/b"), dir_at("/m")
NO_ID = dir_at("/b", MetaProperties(1, CLUSTER, 8, others={"kept": "yes"}))

REFUSED: dict[str, tuple[Refusal, Callable[[], Start]]] = {
    "nothing is formatted": (Refusal.NOT_FORMATTED, lambda: start(dir_at("/a", None), dir_at("/b", None))),
    "nothing can be read": (Refusal.NONE_READABLE, lambda: start(failed("/a"), failed("/b"))),
    "one is not formatted": (Refusal.NOT_FORMATTED, lambda: start(A, dir_at("/b", None))),
    "the metadata dir is not formatted": (Refusal.NOT_FORMATTED, lambda: start(A, dir_at("/m", None), metadata="/m")),
    "one is of another cluster": (Refusal.CLUSTER_ID, lambda: start(A, dir_at("/b", MetaProperties(1, "other", 8)))),
    "all are of another cluster": (Refusal.CLUSTER_ID, lambda: start(A, B, cluster_id="other")),
    "they are of two clusters": (
        Refusal.CLUSTER_ID,
        lambda: start(A, dir_at("/b", MetaProperties(1, "other", 8)), cluster_id=None),
    ),
    "one is of another node": (Refusal.NODE_ID, lambda: start(A, dir_at("/b", MetaProperties(1, CLUSTER, 9)))),
    "one was a ZooKeeper broker's of another id": (
        Refusal.NODE_ID,
        lambda: start(A, dir_at("/b", MetaProperties(0, CLUSTER, 9))),
    ),
    "the metadata dir is of another node": (
        Refusal.NODE_ID,
        lambda: start(A, dir_at("/m", MetaProperties(1, CLUSTER, 9)), metadata="/m"),
    ),
    "an id is reserved": (
        Refusal.RESERVED_ID,
        lambda: start(A, dir_at("/b", MetaProperties(1, CLUSTER, 8, bytes(15) + b"\x63"))),
    ),
    "an id is there twice": (Refusal.DUPLICATE_ID, lambda: start(A, dir_at("/b", A.meta))),
    "the metadata dir has the id of another": (
        Refusal.DUPLICATE_ID,
        lambda: start(A, dir_at("/m", A.meta), metadata="/m"),
    ),
    "the metadata dir has failed": (Refusal.METADATA_DIR, lambda: start(A, B, failed("/m"), metadata="/m")),
    "the first dir, which has the metadata log, has failed": (Refusal.METADATA_DIR, lambda: start(failed("/a"), B)),
    "the bootstrap file beside the metadata log is broken": (
        Refusal.BOOTSTRAP,
        lambda: start(A, dir_at("/m", bootstrap_fault="broken"), metadata="/m"),
    ),
    "a metadata log lies in a data dir": (
        Refusal.METADATA_ELSEWHERE,
        lambda: start(A, dir_at("/b", has_metadata_log=True)),
    ),
    "a file was cut to nothing": (Refusal.NO_NODE_ID, lambda: start(A, dir_at("/b", MetaProperties()))),
    "a version 0 file lacks the cluster": (
        Refusal.NO_CLUSTER_ID,
        lambda: start(A, dir_at("/b", MetaProperties(0, None, 8))),
    ),
    "a link leads to a dir whose id is not written yet": (
        Refusal.DUPLICATE_PATH,
        lambda: start(dir_at("/a", NO_ID.meta, canonical="/x"), dir_at("/b", NO_ID.meta, canonical="/x")),
    ),
    "only the metadata dir is left": (Refusal.NONE_LIVE, lambda: start(failed("/a"), M, metadata="/m")),
}


@each_row(("refusal", "begin"), REFUSED)
def test_a_broker_does_not_start_when(refusal: Refusal, begin: Callable[[], object]) -> None:
    with pytest.raises(LogDirsError) as refused:
        begin()
    assert refused.value.refusal is refusal


def test_starts_on_formatted_directories_and_takes_each_once() -> None:
    assert start(A, B).live == start(A, B, paths=("/a", "/b", "/a")).live == ("/a", "/b")
    assert start(B, A, paths=("/b", "/a")).live == ("/b", "/a")
    assert start(A, B, cluster_id=None).rewritten == ()


def test_the_metadata_dir_is_no_data_dir() -> None:
    begun = start(A, dir_at("/m", has_metadata_log=True), metadata="/m")
    assert begun.live == ("/a",)
    assert set(begun.metas) == {"/a", "/m"}


def test_a_metadata_log_in_the_first_dir_or_a_broken_bootstrap_file_in_a_data_dir_is_no_fault() -> None:
    assert start(dir_at("/a", has_metadata_log=True), B).live == ("/a", "/b")
    assert start(A, dir_at("/b", bootstrap_fault="broken")).live == ("/a", "/b")


def test_a_dir_that_cannot_be_read_or_listed_is_offline_from_the_start() -> None:
    begun = start(A, failed("/b"))
    assert (begun.live, begun.offline) == (("/a",), {"/b": "Input/output error"})
    assert start(A, dir_at("/b", usable=False)).offline == {"/b": "/b is not a readable log directory."}


def test_a_missing_directory_id_is_drawn_and_written() -> None:
    begun = start(A, NO_ID)
    assert begun.rewritten == ("/b",)
    written = begun.metas["/b"]
    assert written.directory_id not in (None, A.meta and A.meta.directory_id)
    assert written.others == {"kept": "yes"}


def test_a_version_0_file_with_both_ids_is_accepted_as_kafka_does() -> None:
    assert start(A, dir_at("/b", MetaProperties(0, CLUSTER, 8))).rewritten == ("/b",)


@pytest.fixture
def dirs(tmp_path: Path) -> tuple[Path, Path]:
    """Two formatted directories without directory ids yet."""
    made = tmp_path / "d0", tmp_path / "d1"
    for each in made:
        each.mkdir()
        (each / META_PROPERTIES).write_bytes(FORMATTED.write())
    return made


def opened(*paths: Path, metadata: Path | None = None) -> tuple[list[str], list[str]]:
    at = open_log_dirs(
        [str(path) for path in paths],
        8,
        CLUSTER,
        random.Random(1),
        metadata_log_dir=None if metadata is None else str(metadata),
    )
    return [Path(each.path).name for each in at.log_dirs], [Path(path).name for path in at.offline]


def test_drawn_ids_are_kept_over_a_restart(dirs: tuple[Path, Path]) -> None:
    first = open_log_dirs(list(map(str, dirs)), 8, None, random.Random(1))
    again = open_log_dirs(list(map(str, dirs)), 8, None, random.Random(2))
    assert first == again
    assert (first.cluster_id, first.metadata_directory_id) == (CLUSTER, first.log_dirs[0].directory_id)
    assert len({each.directory_id for each in first.log_dirs}) == 2


def test_directory_keeps_its_id_when_moved(dirs: tuple[Path, Path], tmp_path: Path) -> None:
    first = open_log_dirs(list(map(str, dirs)), 8, None, random.Random(1))
    moved = dirs[1].rename(tmp_path / "elsewhere")
    again = open_log_dirs([str(dirs[0]), str(moved)], 8, None, random.Random(2))
    assert [each.directory_id for each in again.log_dirs] == [each.directory_id for each in first.log_dirs]
    assert again.log_dirs[1].path == str(moved)


def test_a_broken_dir_is_offline_and_the_others_go_on(dirs: tuple[Path, Path]) -> None:
    good, bad = dirs
    file = bad / META_PROPERTIES
    for damage in (b"version=2", b"version=1\nnode.id=8", b"directory.id=x", b"x" * 70_000):
        file.write_bytes(damage)
        assert opened(good, bad) == (["d0"], ["d1"])
    file.unlink()
    file.mkdir()
    assert opened(good, bad) == (["d0"], ["d1"])
    file.rmdir()
    os.mkfifo(file)
    assert opened(good, bad) == (["d0"], ["d1"])


def test_a_file_where_a_dir_should_be_and_a_link_that_leads_nowhere_are_offline(
    dirs: tuple[Path, Path], tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert opened(dirs[0], tmp_path / "file", tmp_path / "loop") == (["d0"], ["file", "loop"])
    assert look(["a\0b"])[0].error is not None


def test_the_reason_names_the_file(dirs: tuple[Path, Path]) -> None:
    (dirs[1] / META_PROPERTIES).write_bytes(b"version=7")
    begun = open_log_dirs(list(map(str, dirs)), 8, None, random.Random(1))
    assert begun.offline == {str(dirs[1]): f"{dirs[1] / META_PROPERTIES}: Unknown meta.properties version number 7"}


@pytest.mark.parametrize(
    ("damage", "complaint"),
    [
        (b"", "No FeatureLevelRecord for metadata.version was found"),
        (bytes(range(255, 0, -1)), "bootstrap.checkpoint: "),
        (BOOTSTRAP_FILE[:200], "No FeatureLevelRecord for metadata.version was found"),
        (BOOTSTRAP_FILE[:100] + b"x" + BOOTSTRAP_FILE[101:], "bootstrap.checkpoint: "),
    ],
)
def test_broken_bootstrap_file_is_reported(dirs: tuple[Path, Path], damage: bytes, complaint: str) -> None:
    file = dirs[0] / BOOTSTRAP_CHECKPOINT
    file.write_bytes(BOOTSTRAP_FILE)
    assert opened(*dirs) == (["d0", "d1"], [])
    file.write_bytes(damage)
    with pytest.raises(LogDirsError, match=str(file)) as refused:
        opened(*dirs)
    assert complaint in str(refused.value)
    assert refused.value.refusal is Refusal.BOOTSTRAP


def test_one_dir_through_a_link_is_refused(dirs: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(dirs[0])
    with pytest.raises(LogDirsError) as refused:
        opened(dirs[0], tmp_path / "link")
    assert refused.value.refusal is Refusal.DUPLICATE_PATH
    assert opened(dirs[0]) == (["d0"], [])


def test_an_id_that_cannot_be_written_stops_the_start_and_leaves_no_half_file(dirs: tuple[Path, Path]) -> None:
    before = (dirs[1] / META_PROPERTIES).read_bytes()
    (dirs[1] / f"{META_PROPERTIES}.tmp").mkdir()
    with pytest.raises(LogDirsError, match="Error while writing") as refused:
        opened(*dirs)
    assert refused.value.refusal is Refusal.NOT_WRITTEN
    assert (dirs[1] / META_PROPERTIES).read_bytes() == before


def test_no_directory_at_all_is_refused() -> None:
    with pytest.raises(LogDirsError, match="at least one log directory"):
        opened()


@each_row("between", [dir_at("/b", None), failed("/b")])
def test_a_directory_without_properties_hides_no_wrong_one_after_it(between: DirFound) -> None:
    wrong = dir_at("/c", MetaProperties(1, CLUSTER, 9))
    with pytest.raises(LogDirsError, match=r"Stored node id 9 doesn't match previous node id 8 in /c/meta\.properties"):
        start(A, between, wrong)


def test_a_path_is_usable_if_a_directory_is_there_or_can_be(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    (tmp_path / "file").write_text("")
    (tmp_path / "held" / "__cluster_metadata-0").mkdir(parents=True)
    found = look([str(tmp_path / name) for name in ("absent", "file", "held", "link")])
    assert [each.usable for each in found] == [True, False, True, False]
    assert [each.has_metadata_log for each in found] == [False, False, True, False]


def test_a_reserved_id_is_named_with_its_directory() -> None:
    reserved = FORMATTED.with_directory_id(bytes(15) + b"\1")
    with pytest.raises(LogDirsError, match="Invalid reserved directory ID AAAAAAAAAAAAAAAAAAAAAQ found in /d0"):
        verify([dir_at("/d0", reserved)], CLUSTER, 8)


@each_row("meta", [MetaProperties(), MetaProperties(0, None, 8)])
def test_a_file_that_lacks_an_id_is_named(meta: MetaProperties) -> None:
    with pytest.raises(LogDirsError, match=r"not found in /b\. /b/meta\.properties is empty, cut off or no such file"):
        start(A, dir_at("/b", meta))
