"""A disk that fails on purpose: dead, full, slow, flaky or with bytes flipped, as a test says."""

from __future__ import annotations

import asyncio
import errno
import os
import random

from mockraft.brokers.log_dirs.disk import Disk, Space


class FailingDisk:
    """Another disk, as long as nothing is asked of it; see `Disk` and the verbs `fail` to `heal`.

    What happens depends only on the calls made and on the seed given, never on the clock.
    """

    __slots__ = ("_bad", "_chance", "_disk", "_error", "_is_full", "_probability", "root", "slow_ms")

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self.root = disk.root
        self.slow_ms = 0.0
        self._error = 0
        self._bad: dict[str, int] = {}
        self._is_full = False
        self._probability = 0.0
        self._chance: random.Random | None = None

    @property
    def is_failing(self) -> bool:
        """Whether any operation can fail now by what a test said."""
        return bool(self._error or self._bad or self._is_full or self._probability)

    def fail(self, error: int = errno.EIO) -> None:
        """From now on every operation gets this errno."""
        self._error = error

    def fail_file(self, name: str, error: int = errno.EIO) -> None:
        """From now on every operation on this file, or in this directory, gets this errno; the rest goes on."""
        self._bad[name] = error

    def fill(self) -> None:
        """From now on there is no space left: writes get ENOSPC, the rest goes on."""
        self._is_full = True

    def slow(self, ms: float) -> None:
        """From now on `ready` takes this long."""
        self.slow_ms = ms

    def flaky(self, probability: float, seed: int = 0) -> None:
        """From now on each operation gets EIO with this probability, the same ones for the same seed."""
        if not 0 <= probability <= 1:
            raise ValueError(f"probability {probability} is not between 0 and 1")
        self._probability = probability
        self._chance = random.Random(seed)

    def corrupt(self, name: str, position: int | None = None, count: int = 1) -> None:
        """Flip all bits of `count` bytes of a file, at its middle unless `position` says where. ValueError when empty.

        It is done at once and stays: `heal` does not undo it.
        """
        data = bytearray(self._disk.read(name))
        at = len(data) // 2 if position is None else position
        if not 0 <= at < len(data):
            raise ValueError(f"{name} has {len(data)} bytes, none at {at} to corrupt")
        for index in range(at, min(at + count, len(data))):
            data[index] ^= 0xFF
        self._disk.replace(name, bytes(data))

    def heal(self) -> None:
        """From now on all is well again."""
        self._error = 0
        self._bad.clear()
        self._is_full = False
        self._probability = self.slow_ms = 0.0
        self._chance = None

    async def ready(self) -> None:
        """Return when the disk takes the next operation; others go on meanwhile."""
        if self.slow_ms:
            await asyncio.sleep(self.slow_ms / 1000)
        await self._disk.ready()

    def names(self, under: str = "") -> list[str]:
        """What lies directly under a directory, sorted."""
        self._check(under)
        return self._disk.names(under)

    def exists(self, name: str) -> bool:
        """Whether there is a file or directory of this name."""
        self._check(name)
        return self._disk.exists(name)

    def size(self, name: str) -> int:
        """The bytes of a file."""
        self._check(name)
        return self._disk.size(name)

    def read(self, name: str, offset: int = 0, size: int = -1) -> bytes:
        """Part of a file."""
        self._check(name)
        return self._disk.read(name, offset, size)

    def append(self, name: str, data: bytes) -> None:
        """Write at the end of a file. All of it or none."""
        self._check(name, needs_space=True)
        self._disk.append(name, data)

    def replace(self, name: str, data: bytes) -> None:
        """Make this the whole of a file."""
        self._check(name, needs_space=True)
        self._disk.replace(name, data)

    def truncate(self, name: str, size: int) -> None:
        """Cut a file to this size."""
        self._check(name)
        self._disk.truncate(name, size)

    def sync(self, name: str) -> None:
        """Force a file, or the names in a directory, to the disk."""
        self._check(name)
        self._disk.sync(name)

    def make_dir(self, name: str) -> None:
        """Make a directory."""
        self._check(name, needs_space=True)
        self._disk.make_dir(name)

    def rename(self, old: str, new: str) -> None:
        """Give a file or directory another name, in one step."""
        self._check(old)
        self._disk.rename(old, new)

    def remove(self, name: str) -> None:
        """Remove a file, or a directory with all that is in it."""
        self._check(name)
        self._disk.remove(name)

    def space(self) -> Space:
        """How large the volume is and how much is left."""
        self._check("")
        found = self._disk.space()
        return found._replace(usable_bytes=0) if self._is_full else found

    def lock(self) -> None:
        """Take the directory for this process."""
        self._check(".lock")
        self._disk.lock()

    def close(self) -> None:
        """Let go of files and lock, however the disk is."""
        self._disk.close()

    def _check(self, name: str, *, needs_space: bool = False) -> None:
        number = self._error
        for bad, error in self._bad.items():
            if name == bad or name.startswith(f"{bad}/"):
                number = number or error
        if not number and self._chance is not None and self._chance.random() < self._probability:
            number = errno.EIO
        if not number and needs_space and self._is_full:
            number = errno.ENOSPC
        if number:
            raise OSError(number, os.strerror(number), f"{self.root}/{name}" if name else self.root)
