"""I/O errors that cost a disk, and those that cost one replica (KIP-18)."""

from __future__ import annotations

import errno
import itertools
import os
from typing import Any, cast

from mockraft.brokers.disks.disk import EVERYBODYS, PROBE_NAME, Disk, Scope, Suspicion, classify, probe, suspicion

from ...rows import each_row

SEGMENT = "orders-3/00000000000000000000.log"
REPLICAS_FILES = [
    SEGMENT,
    "orders-3",
    "orders.of-today-12/partition.metadata",
    f"orders-3.{'0a' * 16}-future/00000000000000000000.log",
    f"orders-3.{'0a' * 16}-delete",
    f"orders-3.{'0a' * 16}-stray/leader-epoch-checkpoint",
]
EVERYBODYS_FILES = [
    "meta.properties",
    ".lock",
    "replication-offset-checkpoint",
    ".kafka_cleanshutdown",
    "",
    ".",
    "lost+found/x",
]
ERRNOS = [
    *(errno.EIO, errno.ENOENT, errno.EISDIR, errno.ENOTDIR, errno.EACCES, errno.EPERM, errno.EFBIG, errno.ELOOP),
    *(errno.EEXIST, errno.EINVAL, errno.ENAMETOOLONG, errno.EBADF, errno.EMFILE),
    *sorted(EVERYBODYS),
]


class ScriptedDisk:
    """A disk whose probe fails in one operation, or reads back something else."""

    def __init__(self, failing: str | None = None, reads_back: bytes | None = None) -> None:
        self.files: dict[str, bytes] = {}
        self._failing = failing
        self._reads_back = reads_back

    def _try(self, operation: str) -> None:
        if operation == self._failing:
            raise OSError(errno.EIO, os.strerror(errno.EIO), PROBE_NAME)

    def replace(self, name: str, data: bytes) -> None:
        self._try("replace")
        self.files[name] = data

    def sync(self, name: str) -> None:
        self._try("sync")

    def read(self, name: str) -> bytes:
        self._try("read")
        return self.files[name] if self._reads_back is None else self._reads_back

    def remove(self, name: str) -> None:
        self._try("remove")
        del self.files[name]


def disk(*arguments: Any, **options: Any) -> Disk:
    return cast(Disk, ScriptedDisk(*arguments, **options))


def error(number: int, name: str = SEGMENT) -> OSError:
    return OSError(number, os.strerror(number), name)


def test_only_a_replicas_own_file_on_a_disk_that_is_well_costs_one_replica() -> None:
    for number, name, well in itertools.product(ERRNOS, REPLICAS_FILES + EVERYBODYS_FILES, (True, False)):
        scope, why = classify(error(number, name), name, disk(None if well else "sync"))
        one_replica = name in REPLICAS_FILES and number not in EVERYBODYS and well
        assert scope is (Scope.PARTITION if one_replica else Scope.DISK), (number, name, well)
        assert os.strerror(number) in why


def test_disk_is_not_probed_when_the_error_is_conclusive() -> None:
    assert suspicion(error(errno.ENOSPC), SEGMENT) is Suspicion.EVERYBODYS
    assert suspicion(error(errno.EIO), "recovery-point-offset-checkpoint") is Suspicion.WHOLE_DIR
    assert suspicion(error(errno.EIO), SEGMENT) is Suspicion.SUSPECT
    untouched = cast(Disk, None)
    assert classify(error(errno.EROFS), SEGMENT, untouched)[0] is Scope.DISK


@each_row("operation", ["replace", "sync", "read", "remove"])
def test_a_probe_fails_with_any_of_its_steps(operation: str) -> None:
    found = probe(disk(operation))
    assert found is not None
    assert found.errno == errno.EIO


def test_a_probe_fails_when_it_reads_other_bytes_than_it_wrote() -> None:
    found = probe(disk(reads_back=b"no"))
    assert found is not None
    assert "other bytes" in str(found)


def test_probe_of_a_healthy_disk_leaves_no_file() -> None:
    scripted = ScriptedDisk()
    assert probe(cast(Disk, scripted)) is None
    assert not scripted.files
