"""Directories that this user may not list or write to: reported with their paths, and left unchanged."""

from __future__ import annotations

import os
import random
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from mockraft.brokers.ids.host_map import HOSTS_FILE, HostFile, HostMapError
from mockraft.brokers.log_dirs.ensemble import LogDirsError, Refusal
from mockraft.brokers.log_dirs.meta_properties import META_PROPERTIES, MetaProperties
from mockraft.brokers.log_dirs.startup_rules import open_log_dirs
from mockraft.brokers.log_dirs.storage_format import format_log_dirs

NOBODY = 65534
META = MetaProperties(1, "cluster", 8)
WHOLE = META.with_directory_id(b"a" * 16)
Make = Callable[[str, int, MetaProperties | None], str]


@pytest.fixture
def make() -> Iterator[Make]:
    """Makes a directory with this mode and this file in it, where every user gets to."""
    root = Path(tempfile.mkdtemp(prefix="mockraft-test-"))
    root.chmod(0o755)

    def make_dir(name: str, mode: int, meta: MetaProperties | None) -> str:
        path = root / name
        path.mkdir()
        if meta is not None:
            (path / META_PROPERTIES).write_bytes(meta.write())
        path.chmod(mode)
        return str(path)

    yield make_dir
    for path in root.iterdir():
        path.chmod(0o755)
    shutil.rmtree(root)


@pytest.fixture
def become(make: Make) -> Iterator[Callable[[], None]]:
    """From the call on the test is nobody: no mode keeps root out."""
    is_root = os.geteuid() == 0
    yield (lambda: os.seteuid(NOBODY)) if is_root else (lambda: None)
    if is_root:
        os.seteuid(0)


def test_a_dir_that_may_not_be_read_is_offline(make: Make, become: Callable[[], None]) -> None:
    good, closed = make("good", 0o755, WHOLE), make("closed", 0o000, META)
    become()
    begun = open_log_dirs([good, closed], 8, None, random.Random(1))
    assert begun.offline == {closed: f"{closed}/{META_PROPERTIES}: Permission denied"}
    assert [each.path for each in begun.log_dirs] == [good]


def test_a_dir_that_may_not_be_written_can_be_opened_when_its_file_is_whole(
    make: Make, become: Callable[[], None]
) -> None:
    whole = make("whole", 0o555, WHOLE)
    become()
    assert [each.path for each in open_log_dirs([whole], 8, None, random.Random(1)).log_dirs] == [whole]


def test_a_dir_that_may_not_be_written_gets_no_directory_id(make: Make, become: Callable[[], None]) -> None:
    path = make("d0", 0o555, META)
    become()
    with pytest.raises(LogDirsError, match=f"{path}.*Permission denied.*writable") as refused:
        open_log_dirs([path], 8, None, random.Random(1))
    assert refused.value.refusal is Refusal.NOT_WRITTEN
    assert MetaProperties.read(Path(path, META_PROPERTIES).read_bytes()) == META


def test_a_dir_that_may_not_be_written_is_not_formatted(make: Make, become: Callable[[], None]) -> None:
    path = make("d0", 0o555, None)
    become()
    for each in (path, f"{path}/below"):
        with pytest.raises(LogDirsError, match=f"{each}.*Permission denied") as refused:
            format_log_dirs([each], 8, "cluster", random.Random(1))
        assert refused.value.refusal is Refusal.NOT_WRITTEN
    assert os.listdir(path) == []


def test_a_data_dir_that_may_not_be_written_gets_no_host(make: Make, become: Callable[[], None]) -> None:
    path = make("data", 0o555, None)
    become()
    with pytest.raises(HostMapError, match=f"{path}.*Permission denied.*writable"), HostFile(Path(path)).changing():
        pass
    assert not Path(path, HOSTS_FILE).exists()
