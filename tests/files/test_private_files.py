"""Files that only their owner may read."""

import os
import stat
from pathlib import Path

import pytest
from mockraft.files import private_files
from mockraft.files.given_files import read_file
from mockraft.files.private_files import replace_file, write_private


def test_a_new_private_file_is_its_owners_alone_and_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "state"
    for content in (b"a longer secret\n\xff", b"short"):
        write_private(path, content)
        assert path.read_bytes() == content
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_crash_while_a_file_is_replaced_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    replace_file(path, [b"old"])

    def fail(_: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="Input/output error"):
        replace_file(path, [b"new"])
    assert [(file.name, file.read_bytes()) for file in tmp_path.iterdir()] == [("file", b"old")]


def test_a_file_that_cannot_be_created_is_reported_as_such(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(private_files, "opener", refuse)
    with pytest.raises(OSError, match="No space left on device"):
        replace_file(tmp_path / "file", [b"new"])


def test_a_replaced_file_keeps_its_mode_and_a_new_one_is_its_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for mode in (0o600, 0o640):
        replace_file(path, [b"some", b"thing"])
        assert read_file(path, 9) == b"something"
        assert stat.S_IMODE(path.stat().st_mode) == mode
        path.chmod(0o640)


def test_only_a_regular_file_up_to_a_size_is_read(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"something")
    with pytest.raises(OSError, match=r"has more than 8 bytes.*file"):
        read_file(path, 8)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match=r"not a regular file.*pipe"):
        read_file(tmp_path / "pipe", 8)
