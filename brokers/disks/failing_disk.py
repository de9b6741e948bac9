"""A disk with injected faults: dead, full, slow, flaky or with flipped bytes."""

from __future__ import annotations

import errno
import os
import random
from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

from mockraft.brokers.disks.disk import Disk, Space

P = ParamSpec("P")
T = TypeVar("T")


def _checked(
    operation: Callable[Concatenate[Disk, P], T], *, needs_space: bool = False
) -> Callable[Concatenate[FailingDisk, P], T]:
    """Return the operation of the disk within, after a look for faults of the file that it names first."""

    def checked(disk: FailingDisk, /, *args: P.args, **kwargs: P.kwargs) -> T:
        disk._check(str(args[0]) if args else "", needs_space=needs_space)
        result: T = getattr(disk._disk, operation.__name__)(*args, **kwargs)
        return result

    return checked


class FailingDisk:
    """A wrapper around another disk, transparent until a fault is set; see `Disk` and the methods `fail` to `heal`.

    Its behaviour depends only on the calls made and on the seed, never on the clock.
    """

    __slots__ = ("_bad", "_disk", "_error", "_is_full", "_probability", "_rng", "delay_ms", "root")

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self.root = disk.root
        self.delay_ms = 0.0
        self._error = 0
        self._bad: dict[str, int] = {}
        self._is_full = False
        self._probability = 0.0
        self._rng: random.Random | None = None

    @property
    def is_failing(self) -> bool:
        """True if a fault that is set can make an operation fail now."""
        return bool(self._error or self._bad or self._is_full or self._probability)

    def fail(self, error: int = errno.EIO) -> None:
        """Let every operation fail with this errno."""
        self._error = error

    def fail_file(self, name: str, error: int = errno.EIO) -> None:
        """Let every operation on this file, or in this directory, fail with this errno."""
        self._bad[name] = error

    def fill(self) -> None:
        """Let writes fail with ENOSPC; other operations still work."""
        self._is_full = True

    def slow(self, ms: float) -> None:
        """Let clients wait this long before each operation."""
        self.delay_ms = ms

    def flaky(self, probability: float, seed: int = 0) -> None:
        """Let each operation fail with EIO with this probability, the same ones for the same seed."""
        if not 0 <= probability <= 1:
            raise ValueError(f"probability {probability} is not between 0 and 1")
        self._probability = probability
        self._rng = random.Random(seed)

    def corrupt(self, name: str, position: int | None = None, count: int = 1) -> None:
        """Flip all bits of `count` bytes of a file, in its middle unless `position` is given. ValueError when empty.

        The change is immediate and permanent: `heal` does not undo it.
        """
        data = bytearray(self._disk.read(name))
        at = len(data) // 2 if position is None else position
        if not 0 <= at < len(data):
            raise ValueError(f"{name} has {len(data)} bytes, none at {at} to corrupt")
        for index in range(at, min(at + count, len(data))):
            data[index] ^= 0xFF
        self._disk.replace(name, bytes(data))

    def heal(self) -> None:
        """Remove all faults."""
        self._error = 0
        self._bad.clear()
        self._is_full = False
        self._probability = self.delay_ms = 0.0
        self._rng = None

    names = _checked(Disk.names)
    exists = _checked(Disk.exists)
    size = _checked(Disk.size)
    read = _checked(Disk.read)
    append = _checked(Disk.append, needs_space=True)
    replace = _checked(Disk.replace, needs_space=True)
    truncate = _checked(Disk.truncate)
    sync = _checked(Disk.sync)
    make_dir = _checked(Disk.make_dir, needs_space=True)
    rename = _checked(Disk.rename)
    remove = _checked(Disk.remove)

    def space(self) -> Space:
        """Return the size of the volume and the free space."""
        self._check("")
        found = self._disk.space()
        return found._replace(usable_bytes=0) if self._is_full else found

    def lock(self) -> None:
        """Lock the directory for this process."""
        self._check(".lock")
        self._disk.lock()

    def close(self) -> None:
        """Release files and lock, whatever faults are set."""
        self._disk.close()

    def _check(self, name: str, *, needs_space: bool = False) -> None:
        number = self._error
        for bad, error in self._bad.items():
            if name == bad or name.startswith(f"{bad}/"):
                number = number or error
        if not number and self._rng is not None and self._rng.random() < self._probability:
            number = errno.EIO
        if not number and needs_space and self._is_full:
            number = errno.ENOSPC
        if number:
            raise OSError(number, os.strerror(number), f"{self.root}/{name}" if name else self.root)
