"""Metadata logs of controllers and disks of brokers, which outlive the runs of their simulated processes."""

from __future__ import annotations

from mockraft.brokers.disks.memory_disk import MemoryDisk
from mockraft.server.config import ControllerConfig
from mockraft.server.controller.log.files import LogFiles
from mockraft.server.controller.log.metadata_log import MetadataLog


class WatchedLog(MetadataLog):
    """A log that keeps each appended batch with its end offset, by base offset: a snapshot may drop them at once."""

    def __init__(self, config: ControllerConfig, files: LogFiles | None, directory_id: bytes) -> None:
        super().__init__(config, files, directory_id)
        self.appended: dict[int, tuple[bytes, int]] = {}

    def _append(self, data: bytes, count: int, now_ms: int) -> int:
        base_offset = super()._append(data, count, now_ms)
        self.appended[base_offset] = (data, base_offset + count)
        return base_offset


class CachedDisk(MemoryDisk):
    """A disk in memory that can lose what was appended to a file since its last sync."""

    def __init__(self, root: str) -> None:
        super().__init__(root)
        self._synced: dict[str, int] = {}

    def sync(self, name: str) -> None:
        super().sync(name)
        if name.endswith(".log"):
            self._synced[name] = self.size(name)

    def truncate(self, name: str, size: int) -> None:
        super().truncate(name, size)
        self._synced[name] = min(self._synced.get(name, 0), size)

    def lose_tails(self, keep: float) -> None:
        """Cut each segment to what was synced and a share of the rest."""
        for folder in self.names():
            for name in self.names(folder) if folder.rpartition("-")[2].isdigit() else ():
                path = f"{folder}/{name}"
                if name.endswith(".log"):
                    synced = self._synced.get(path, 0)
                    self.truncate(path, synced + int(keep * (self.size(path) - synced)))
