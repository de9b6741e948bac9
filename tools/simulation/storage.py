"""Metadata logs of controllers and disks of brokers, which outlive the runs of their simulated processes."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from mockraft.brokers.disks.memory_disk import MemoryDisk
from mockraft.server.config import ControllerConfig
from mockraft.server.controller.log.files import LogFiles
from mockraft.server.controller.log.metadata_log import MetadataLog
from mockraft.wire import record_batch


class WatchedLog(MetadataLog):
    """A log that keeps each appended batch with its end offset, by base offset: a snapshot may drop them at once."""

    def __init__(self, config: ControllerConfig, files: LogFiles | None, directory_id: bytes) -> None:
        super().__init__(config, files, directory_id)
        self.appended: dict[int, tuple[bytes, int]] = {}

    def _recover(self, files: LogFiles) -> None:
        super()._recover(files)
        data = self.read(self.start_offset, 1 << 30)
        for header in record_batch.read_headers(data):
            self.appended[header.base_offset] = (data[header.position : header.end], header.last_offset + 1)

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


class PageCache:
    """Files as a power cut leaves them: `fsync` stands in for os.fsync, and keeps the contents and names it is given.

    A file that was written but not synced has its old contents, one whose directory was not synced its old name. Each
    known file is held open: the file system would give the number of a deleted one to the next file of any process.
    """

    def __init__(self) -> None:
        self._contents: dict[int, bytes] = {}
        self._names: dict[int, dict[str, int]] = {}
        self._held: dict[int, int] = {}
        self._is_cut = False

    def close(self) -> None:
        """Release the files."""
        while self._held:
            os.close(self._held.popitem()[1])

    def fsync(self, descriptor: int) -> None:
        """Keep what a file, or the list of a directory, has now."""
        found = os.fstat(descriptor)
        if self._is_cut:
            return
        if not stat.S_ISDIR(found.st_mode):
            # The descriptor may be open for writing only.
            path = Path(f"/proc/self/fd/{descriptor}")
            self._contents[found.st_ino] = path.read_bytes()
            self._hold(found.st_ino, path)
            return
        with os.scandir(descriptor) as entries:
            names = {entry.name: entry.inode() for entry in entries}
        for name, inode in names.items():
            self._hold(inode, Path(f"/proc/self/fd/{descriptor}", name))
        for gone in {*self._names.get(found.st_ino, {}).values()} - {*names.values()}:
            self._contents.pop(gone, None)
            os.close(self._held.pop(gone))
        self._names[found.st_ino] = names

    def _hold(self, inode: int, path: Path) -> None:
        if inode not in self._held:
            self._held[inode] = os.open(path, os.O_RDONLY)

    @contextmanager
    def cut(self) -> Iterator[None]:
        """Sync nothing: a process that is killed does not."""
        self._is_cut = True
        yield
        self._is_cut = False

    def lose(self, folder: Path, keep: float, *, zeros: bool, survives: Callable[[], bool]) -> None:
        """Leave what was synced, and of what was appended to it a share; with `zeros` the rest is zero bytes.

        `survives` decides for each name that was created, replaced or deleted, and not synced since.
        """
        now = {path.name: path.stat().st_ino for path in folder.iterdir()}
        synced = self._names.get(folder.stat().st_ino, {})
        contents = {}
        for name in sorted({*now, *synced}):
            inode = now.get(name) if now.get(name) == synced.get(name) or survives() else synced.get(name)
            path = folder / name
            if path.is_dir():
                if inode is None:
                    shutil.rmtree(path)
                else:
                    self.lose(path, keep, zeros=zeros, survives=survives)
                continue
            if inode is not None:
                contents[name] = self._remains(inode, path, keep, zeros=zeros)
            path.unlink(missing_ok=True)
        for name, content in contents.items():
            (folder / name).write_bytes(content)
            with (folder / name).open("rb") as file:
                self.fsync(file.fileno())
        descriptor = os.open(folder, os.O_RDONLY)
        self.fsync(descriptor)
        os.close(descriptor)

    def _remains(self, inode: int, path: Path, keep: float, *, zeros: bool) -> bytes:
        synced = self._contents.get(inode, b"")
        held = self._held.get(inode)
        written = (path if held is None else Path(f"/proc/self/fd/{held}")).read_bytes()
        if not written.startswith(synced):
            return synced
        kept = written[: len(synced) + int(keep * (len(written) - len(synced)))]
        return kept.ljust(len(written), b"\0") if zeros else kept
