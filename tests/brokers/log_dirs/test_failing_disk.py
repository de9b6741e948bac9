"""A disk that fails on purpose."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Callable

import pytest
from mockraft.brokers.disks.failing_disk import FailingDisk
from mockraft.brokers.disks.memory_disk import MemoryDisk


@pytest.fixture
def disk() -> FailingDisk:
    made = FailingDisk(MemoryDisk("/simulated/d0"))
    made.append("a", b"hello")
    return made


def operations(disk: FailingDisk) -> list[tuple[Callable[..., object], tuple[object, ...]]]:
    return [
        (disk.names, ()),
        (disk.exists, ("a",)),
        (disk.size, ("a",)),
        (disk.read, ("a",)),
        (disk.append, ("a", b"1")),
        (disk.replace, ("a", b"1")),
        (disk.truncate, ("a", 0)),
        (disk.sync, ("a",)),
        (disk.make_dir, ("t-0",)),
        (disk.rename, ("a", "b")),
        (disk.remove, ("a",)),
        (disk.space, ()),
        (disk.lock, ()),
    ]


@pytest.mark.parametrize("error", [errno.EIO, errno.EROFS, errno.EACCES])
def test_failed_disk_refuses_every_call_until_healed(disk: FailingDisk, error: int) -> None:
    disk.fail(error)
    assert disk.is_failing
    for call, arguments in operations(disk):
        with pytest.raises(OSError, match="/simulated/d0") as told:
            call(*arguments)
        assert told.value.errno == error

    disk.heal()
    assert not disk.is_failing
    assert disk.names() == ["a"]
    assert disk.read("a") == b"hello"


def test_a_full_one_reads_and_removes_but_does_not_write(disk: FailingDisk) -> None:
    disk.fill()
    for call, arguments in (
        (disk.append, ("a", b"1")),
        (disk.replace, ("a", b"1")),
        (disk.make_dir, ("t-0",)),
    ):
        with pytest.raises(OSError, match="No space left"):
            call(*arguments)
    assert disk.space().usable_bytes == 0
    assert disk.read("a") == b"hello"
    disk.truncate("a", 4)
    disk.remove("a")
    disk.heal()
    disk.append("a", b"1")
    assert disk.space().usable_bytes > 0


def test_corrupt_flips_given_bytes_and_heal_keeps_them_flipped(disk: FailingDisk) -> None:
    disk.corrupt("a", 1, count=2)
    disk.heal()
    assert disk.read("a") == b"h" + bytes((ord("e") ^ 0xFF, ord("l") ^ 0xFF)) + b"lo"
    disk.corrupt("a", 1, count=2)
    disk.corrupt("a")
    assert disk.read("a") == b"he" + bytes((ord("l") ^ 0xFF,)) + b"lo"
    with pytest.raises(ValueError, match="a has 5 bytes, none at 5 to corrupt"):
        disk.corrupt("a", 5)


def test_a_flaky_one_fails_at_the_same_calls_for_the_same_seed() -> None:
    def run(seed: int, probability: float = 0.3) -> list[bool]:
        disk_below = MemoryDisk("/simulated/d0")
        disk = FailingDisk(disk_below)
        disk.flaky(probability, seed)
        told = []
        for _ in range(200):
            before = disk_below.space().usable_bytes
            with contextlib.suppress(OSError):
                disk.append("a", b"1")
            told.append(disk_below.space().usable_bytes == before)
        return told

    assert run(1) == run(1)
    assert run(1) != run(2)
    assert 30 < sum(run(3)) < 90
    assert not any(run(4, 0.0))
    with pytest.raises(ValueError, match=r"probability 1.5 is not between 0 and 1"):
        FailingDisk(MemoryDisk("/d")).flaky(1.5)


def test_a_slow_one_delays_clients_until_it_is_healed(disk: FailingDisk) -> None:
    disk.slow(30)
    assert (disk.delay_ms, FailingDisk(MemoryDisk("/d1")).delay_ms) == (30, 0)
    disk.heal()
    assert disk.delay_ms == 0
