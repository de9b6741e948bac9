"""The contract of every disk, the disk that fails on purpose, and the disk in memory."""

from __future__ import annotations

import contextlib
import errno
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from mockraft.brokers.disks.disk import Disk
from mockraft.brokers.disks.failing_disk import FailingDisk
from mockraft.brokers.disks.memory_disk import MemoryDisk
from mockraft.brokers.disks.real_disk import RealDisk


@pytest.fixture(params=["memory", "real", "failing"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Disk:
    """Each kind of disk, empty; the failing one does not fail."""
    if request.param == "memory":
        return MemoryDisk("/simulated/d0")
    if request.param == "real":
        return RealDisk(str(tmp_path))
    return FailingDisk(MemoryDisk("/simulated/d0"))


def check_refused(number: int, call: Callable[..., object], *arguments: object) -> None:
    with pytest.raises(OSError) as raised:  # noqa: PT011
        call(*arguments)
    assert raised.value.errno == number


def test_appended_bytes_can_be_read_in_parts(disk: Disk) -> None:
    disk.append("a", b"hello ")
    disk.append("a", b"world")

    assert disk.read("a") == b"hello world"
    assert disk.read("a", 6) == b"world"
    assert disk.read("a", 4, 3) == b"o w"
    assert disk.read("a", 9, 100) == b"ld"
    assert disk.read("a", 100, 5) == b""
    assert disk.size("a") == 11
    disk.append("b", b"")
    assert (disk.exists("b"), disk.size("b")) == (True, 0)


def test_replace_makes_and_replaces_a_whole_file_and_leaves_no_other(disk: Disk) -> None:
    disk.replace("a", b"first, and long")
    disk.replace("a", b"second")

    assert disk.read("a") == b"second"
    assert disk.names() == ["a"]


def test_truncate_cuts_and_never_lengthens(disk: Disk) -> None:
    disk.append("a", b"hello")
    disk.truncate("a", 2)
    disk.append("a", b"y")

    assert disk.read("a") == b"hey"
    check_refused(errno.EINVAL, disk.truncate, "a", 4)


def test_names_are_those_directly_below_sorted(disk: Disk) -> None:
    disk.make_dir("t-1")
    disk.make_dir("t-0")
    disk.append("t-0/b", b"")
    disk.append("t-0/a", b"")
    disk.append("x", b"")

    assert disk.names() == ["t-0", "t-1", "x"]
    assert disk.names("t-0") == ["a", "b"]
    assert disk.names("t-1") == []


def test_a_directory_is_renamed_with_all_that_is_in_it(disk: Disk) -> None:
    disk.make_dir("t-0")
    disk.append("t-0/a", b"1")
    disk.make_dir("t-00")
    disk.append("t-00/a", b"2")
    disk.rename("t-0", "u-0")

    assert disk.names() == ["t-00", "u-0"]
    assert disk.read("u-0/a") == b"1"
    assert disk.read("t-00/a") == b"2"


def test_a_file_is_renamed_onto_another(disk: Disk) -> None:
    disk.append("a", b"1")
    disk.append("b", b"2")
    disk.rename("a", "b")

    assert disk.names() == ["b"]
    assert disk.read("b") == b"1"


def test_remove_takes_a_file_or_a_directory_with_all_that_is_in_it(disk: Disk) -> None:
    disk.append("a", b"1")
    disk.make_dir("t-0")
    disk.append("t-0/a", b"1")
    disk.remove("a")
    disk.remove("t-0")

    assert disk.names() == []
    assert not disk.exists("t-0/a")


def test_existing_and_missing_paths_raise_the_posix_errno(disk: Disk) -> None:
    disk.make_dir("t-0")
    disk.append("t-0/a", b"")
    disk.append("f", b"")
    disk.make_dir("u-0")

    check_refused(errno.EEXIST, disk.make_dir, "t-0")
    check_refused(errno.ENOTEMPTY, disk.rename, "u-0", "t-0")
    check_refused(errno.ENOENT, disk.rename, "none", "some")
    check_refused(errno.EISDIR, disk.rename, "f", "t-0")
    check_refused(errno.ENOTDIR, disk.rename, "t-0", "f")
    check_refused(errno.ENOENT, disk.read, "none")
    check_refused(errno.ENOENT, disk.append, "none/a", b"1")
    check_refused(errno.ENOENT, disk.names, "none")
    check_refused(errno.ENOTDIR, disk.names, "f")
    check_refused(errno.EISDIR, disk.size, "t-0")
    check_refused(errno.EISDIR, disk.append, "t-0", b"1")
    check_refused(errno.ENOENT, disk.remove, "none")
    check_refused(errno.ENOENT, disk.sync, "none")
    disk.sync("f")
    disk.sync("t-0")
    disk.sync("")


def test_a_name_that_leaves_the_root_is_refused(disk: Disk) -> None:
    for name in ("../a", "/etc/passwd", "a/../../b", "a//b", ".", "t/.", "a\0b"):
        for call in (disk.exists, disk.read, disk.size, disk.remove, disk.make_dir, disk.sync):
            with pytest.raises(ValueError, match="is not a name below a log directory"):
                call(name)
        with pytest.raises(ValueError, match="is not a name below"):
            disk.rename("a", name)


def test_the_lock_is_for_one(disk: Disk) -> None:
    disk.lock()
    with pytest.raises(BlockingIOError, match="another broker"):
        disk.lock()
    disk.close()
    disk.lock()
    assert disk.names() in ([], [".lock"])
    disk.close()


def test_a_healthy_disk_reports_its_space_and_delays_nobody(disk: Disk) -> None:
    assert 0 < disk.space().usable_bytes <= disk.space().total_bytes
    assert disk.delay_ms == 0


def test_an_error_names_the_whole_path(disk: Disk) -> None:
    disk.append("f", b"1")
    for call, arguments in ((disk.read, ("none",)), (disk.truncate, ("f", 5)), (disk.make_dir, ("none/t-0",))):
        with pytest.raises(OSError, match=r"\[Errno") as raised:
            call(*arguments)
        assert raised.value.filename == f"{disk.root}/{arguments[0]}"


@pytest.fixture
def failing() -> FailingDisk:
    made = FailingDisk(MemoryDisk("/simulated/d0"))
    made.append("a", b"hello")
    return made


def operations(failing: FailingDisk) -> list[tuple[Callable[..., object], tuple[object, ...]]]:
    return [
        (failing.names, ()),
        (failing.exists, ("a",)),
        (failing.size, ("a",)),
        (failing.read, ("a",)),
        (failing.append, ("a", b"1")),
        (failing.replace, ("a", b"1")),
        (failing.truncate, ("a", 0)),
        (failing.sync, ("a",)),
        (failing.make_dir, ("t-0",)),
        (failing.rename, ("a", "b")),
        (failing.remove, ("a",)),
        (failing.space, ()),
        (failing.lock, ()),
    ]


@pytest.mark.parametrize("error", [errno.EIO, errno.EROFS, errno.EACCES])
def test_failed_disk_refuses_every_call_until_healed(failing: FailingDisk, error: int) -> None:
    failing.fail(error)
    assert failing.is_failing
    for call, arguments in operations(failing):
        with pytest.raises(OSError, match="/simulated/d0") as raised:
            call(*arguments)
        assert raised.value.errno == error

    failing.heal()
    assert not failing.is_failing
    assert failing.names() == ["a"]
    assert failing.read("a") == b"hello"


def test_a_full_one_reads_and_removes_but_does_not_write(failing: FailingDisk) -> None:
    failing.fill()
    for call, arguments in (
        (failing.append, ("a", b"1")),
        (failing.replace, ("a", b"1")),
        (failing.make_dir, ("t-0",)),
    ):
        with pytest.raises(OSError, match="No space left"):
            call(*arguments)
    assert failing.space().usable_bytes == 0
    assert failing.read("a") == b"hello"
    failing.truncate("a", 4)
    failing.remove("a")
    failing.heal()
    failing.append("a", b"1")
    assert failing.space().usable_bytes > 0


def test_corrupt_flips_given_bytes_and_heal_keeps_them_flipped(failing: FailingDisk) -> None:
    failing.corrupt("a", 1, count=2)
    failing.heal()
    assert failing.read("a") == b"h" + bytes((ord("e") ^ 0xFF, ord("l") ^ 0xFF)) + b"lo"
    failing.corrupt("a", 1, count=2)
    failing.corrupt("a")
    assert failing.read("a") == b"he" + bytes((ord("l") ^ 0xFF,)) + b"lo"
    with pytest.raises(ValueError, match="a has 5 bytes, none at 5 to corrupt"):
        failing.corrupt("a", 5)


def test_a_flaky_one_fails_at_the_same_calls_for_the_same_seed() -> None:
    def run(seed: int, probability: float = 0.3) -> list[bool]:
        disk_below = MemoryDisk("/simulated/d0")
        disk = FailingDisk(disk_below)
        disk.flaky(probability, seed)
        result = []
        for _ in range(200):
            before = disk_below.space().usable_bytes
            with contextlib.suppress(OSError):
                disk.append("a", b"1")
            result.append(disk_below.space().usable_bytes == before)
        return result

    assert run(1) == run(1)
    assert run(1) != run(2)
    assert 30 < sum(run(3)) < 90
    assert not any(run(4, 0.0))
    with pytest.raises(ValueError, match=r"probability 1.5 is not between 0 and 1"):
        FailingDisk(MemoryDisk("/d")).flaky(1.5)


def test_a_slow_one_delays_clients_until_it_is_healed(failing: FailingDisk) -> None:
    failing.slow(30)
    assert (failing.delay_ms, FailingDisk(MemoryDisk("/d1")).delay_ms) == (30, 0)
    failing.heal()
    assert failing.delay_ms == 0


def test_full_disk_refuses_whole_writes_until_space_is_freed() -> None:
    disk = MemoryDisk("/simulated/d0", bytes_max=10)
    disk.append("a", b"12345678")
    for write in (disk.append, disk.replace):
        with pytest.raises(OSError, match="No space left") as raised:
            write("b", b"123")
        assert raised.value.errno == errno.ENOSPC
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
