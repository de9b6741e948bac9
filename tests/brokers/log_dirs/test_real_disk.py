"""A log directory on the real file system: its errors, and kill -9 while a log is written."""

from __future__ import annotations

import errno
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from mockraft.brokers.disks.real_disk import RealDisk
from mockraft.brokers.log_dirs.log_loading import LogDir
from mockraft.brokers.log_dirs.logs import Logs
from mockraft.wire import record_batch

from ...rows import each_row

OTHER_PROCESS = """
import sys
from mockraft.brokers.disks.real_disk import RealDisk
RealDisk(sys.argv[1]).lock()
print("locked", flush=True)
sys.stdin.read()
"""


@contextmanager
def files_no_longer_than(size: int) -> Iterator[None]:
    """The operating system cuts writes short at this size, as a full disk does."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


@pytest.fixture
def disk(tmp_path: Path) -> RealDisk:
    return RealDisk(str(tmp_path))


def test_partial_append_is_rolled_back(disk: RealDisk) -> None:
    disk.append("a", b"x" * 80)
    with files_no_longer_than(100), pytest.raises(OSError, match="File too large") as raised:
        disk.append("a", b"y" * 50)

    assert raised.value.filename == f"{disk.root}/a"
    assert disk.read("a") == b"x" * 80


def test_a_replacement_that_is_cut_short_leaves_the_old_file_and_no_other(disk: RealDisk) -> None:
    disk.replace("a", b"old")
    with files_no_longer_than(10), pytest.raises(OSError, match="File too large"):
        disk.replace("a", b"new" * 10)

    assert disk.read("a") == b"old"
    assert disk.names() == ["a"]


def test_a_name_that_a_crash_left_beside_a_file_is_written_over(disk: RealDisk) -> None:
    disk.append("a.tmp", b"half")
    disk.replace("a", b"whole")

    assert disk.names() == ["a"]
    assert disk.read("a") == b"whole"


def test_symbolic_links_are_not_followed_and_go_alone(disk: RealDisk, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "kept").write_text("kept")
    for name, target in (("out", elsewhere), ("loop", Path(disk.root) / "loop"), ("up", Path(disk.root))):
        os.symlink(target, f"{disk.root}/{name}")
    for name in ("out/kept", "loop", "up/up", "up"):
        for call in (disk.read, disk.size, disk.exists, disk.names, disk.sync):
            with pytest.raises(OSError, match="symbolic links below a log directory are not followed") as raised:
                call(name)
            assert raised.value.errno == errno.ELOOP
    with pytest.raises(OSError, match="not followed"):
        disk.append("out/new", b"1")
    for name in ("out", "loop", "up"):
        disk.remove(name)

    assert disk.names() == []
    assert (elsewhere / "kept").read_text() == "kept"


def test_a_link_that_looks_like_a_log_takes_the_directory_offline_with_its_path(disk: RealDisk) -> None:
    os.symlink(disk.root, f"{disk.root}/t-0")
    logs = Logs([LogDir(disk, bytes(16))])
    found = logs.load()

    assert found.live == []
    assert f"symbolic links below a log directory are not followed: '{disk.root}/t-0'" in str(logs.log_dirs[0].offline)


def test_missing_root_is_reported(disk: RealDisk) -> None:
    disk.append("a", b"1")
    os.rename(disk.root, f"{disk.root}.gone")
    for call in (disk.read, disk.size, disk.truncate, disk.append, disk.replace):
        arguments = {disk.truncate: (0,), disk.append: (b"2",), disk.replace: (b"2",)}.get(call, ())
        with pytest.raises(FileNotFoundError) as raised:
            call("a", *arguments)
        assert str(raised.value.filename).startswith(disk.root)
    with pytest.raises(FileNotFoundError):
        disk.names()
    assert not disk.exists("a")


def test_no_handle_stays_open_but_the_lock(disk: RealDisk) -> None:
    def handles() -> int:
        return len(os.listdir("/dev/fd"))

    before = handles()
    for number in range(200):
        disk.append(f"{number}", b"1")
        disk.read(f"{number}")
    disk.lock()
    assert handles() == before + 1
    disk.close()
    assert handles() == before


def test_another_process_has_the_directory_until_it_ends(disk: RealDisk) -> None:
    command = [sys.executable, "-c", OTHER_PROCESS, disk.root]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "locked\n"
        with pytest.raises(BlockingIOError, match=r"give this one a directory of its own.*/\.lock"):
            disk.lock()
        other.kill()
    disk.lock()
    disk.close()


def test_a_directory_in_place_of_the_lock_is_an_error_of_the_disk(disk: RealDisk) -> None:
    os.mkdir(f"{disk.root}/.lock")
    logs = Logs([LogDir(disk, bytes(16))])
    logs.lock()

    assert "Is a directory" in str(logs.log_dirs[0].offline)


def test_a_directory_that_was_taken_away_is_noticed_at_the_next_checkpoint(disk: RealDisk) -> None:
    logs = Logs([LogDir(disk, bytes(16))])
    logs.lock()
    logs.create((bytes(range(16)), 0), "t", bytes(16))
    logs.checkpoint_high_watermarks()
    os.rename(disk.root, f"{disk.root}.gone")
    logs.checkpoint_high_watermarks()

    assert logs.live() == []
    assert "No such file or directory" in str(logs.log_dirs[0].offline)
    assert disk.root in str(logs.log_dirs[0].offline)


WRITER = """
import sys
from mockraft.brokers.log_dirs.log_loading import LogDir
from mockraft.brokers.log_dirs.logs import Logs
from mockraft.brokers.disks.real_disk import RealDisk
from mockraft.brokers.log_dirs.produced_batches import LogConfig
from mockraft.wire import record_batch

logs = Logs([LogDir(RealDisk(sys.argv[1]), bytes(16))])
logs.lock()
logs.load()
log = logs.create((bytes(range(16)), 0), "t", bytes(16), config=LogConfig(segment_bytes=4000))
while True:
    value = b"%d" % log.end_offset
    _, end = log.append_as_leader(record_batch.encode([value] * 3, base_offset=0, leader_epoch=0, timestamp_ms=0), 1, 0)
    log.high_watermark = end
    if end % 60 == 0:
        logs.checkpoint_high_watermarks()
        logs.checkpoint(flush=end % 120 == 0)
    print(end, flush=True)
"""


@each_row("kill_after", [1, 70])
def test_acknowledged_records_survive_a_kill(tmp_path: Path, kill_after: int) -> None:
    acknowledged = 0
    for _ in range(2):
        with subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True
        ) as writer:
            assert writer.stdout is not None
            for _ in range(kill_after):
                acknowledged = int(writer.stdout.readline())
            writer.send_signal(signal.SIGKILL)
            acknowledged = int((writer.stdout.read().splitlines() or [str(acknowledged)])[-1])

    logs = Logs([LogDir(RealDisk(str(tmp_path)), bytes(16))])
    logs.lock()
    (held,) = logs.load().live
    assert held.log.end_offset >= acknowledged
    assert held.log.high_watermark <= held.log.end_offset
    read, offset = [], 0
    while data := held.log.read(offset, 1 << 20):
        for batch in record_batch.read_batches(data):
            assert batch.base_offset == offset
            offset = batch.last_offset + 1
            read += [int(value or b"") for _, value in batch.records]
    assert read == [number // 3 * 3 for number in range(held.log.end_offset)]
    logs.shut_down()
