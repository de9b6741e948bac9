"""One log directory of a broker: its disk, its id, its checkpoints and its offline state."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping

from mockraft.brokers.disks.disk import Disk
from mockraft.brokers.log_dirs.checkpoints import TopicPartition, write_offsets

CLEAN_SHUTDOWN = ".kafka_cleanshutdown"


class LogDir:
    """A log directory. `offline` is the reason for being offline, None while online. `directory_id` is 16 bytes."""

    __slots__ = ("_is_locked", "_written", "directory_id", "disk", "offline", "path")

    def __init__(self, disk: Disk, directory_id: bytes) -> None:
        self.disk = disk
        self.path = disk.root
        self.directory_id = directory_id
        self.offline: str | None = None
        self._is_locked = False
        self._written: dict[str, dict[TopicPartition, int]] = {}

    def lock(self) -> None:
        """Lock the directory. BlockingIOError when another broker has it, other OSErrors when it is unusable."""
        self.disk.lock()
        self._is_locked = True

    def unlock(self) -> None:
        """Unlock the directory if it is locked."""
        if self._is_locked:
            self._is_locked = False
            with contextlib.suppress(OSError):
                self.disk.close()

    def take_clean_shutdown(self) -> tuple[bool, int]:
        """Return whether the directory was closed cleanly, and its broker epoch then, else -1. Removes the mark."""
        if not self.disk.exists(CLEAN_SHUTDOWN):
            return False, -1
        try:
            epoch = int(json.loads(self.disk.read(CLEAN_SHUTDOWN))["brokerEpoch"])
        except (ValueError, TypeError, KeyError):
            epoch = -1
        self.disk.remove(CLEAN_SHUTDOWN)
        return True, epoch

    def write_clean_shutdown(self, broker_epoch: int) -> None:
        """Mark the directory as closed cleanly."""
        content = {"version": 0, "brokerEpoch": broker_epoch}
        self.disk.replace(CLEAN_SHUTDOWN, json.dumps(content, separators=(",", ":")).encode())

    def write_offsets(self, name: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Write a checkpoint, unless the same was written last and the file still exists."""
        if self._written.get(name) == offsets and self.disk.exists(name):
            return
        write_offsets(self.disk, name, offsets)
        self._written[name] = dict(offsets)
