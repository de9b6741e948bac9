"""The start offsets of a log's leader epochs, in `leader-epoch-checkpoint` (Kafka's `LeaderEpochFileCache`)."""

from __future__ import annotations

from bisect import bisect_right

from mockraft.brokers.disks.disk import Disk
from mockraft.brokers.log_dirs.checkpoints import read_leader_epochs, write_leader_epochs

UNDEFINED = -1
FILE_NAME = "leader-epoch-checkpoint"


class LeaderEpochs:
    """(epoch, start offset) pairs, both ascending; changes are written before they take effect (OSError)."""

    __slots__ = ("_disk", "entries")

    def __init__(self, disk: Disk, dir_name: str) -> None:
        self._disk = disk
        self.entries = tuple(read_leader_epochs(disk, f"{dir_name}/{FILE_NAME}"))

    @property
    def latest(self) -> int | None:
        """The newest epoch; None when there is none."""
        return self.entries[-1][0] if self.entries else None

    def assign(self, dir_name: str, epoch: int, start_offset: int) -> None:
        """Assign this epoch to records from `start_offset` on; drop entries that contradict it."""
        if epoch < 0 or (self.entries and self.entries[-1][0] == epoch and start_offset >= self.entries[-1][1]):
            return
        kept = [entry for entry in self.entries if entry[0] < epoch and entry[1] < start_offset]
        self._store(dir_name, (*kept, (epoch, start_offset)))

    def end_of(self, epoch: int, end_offset: int) -> tuple[int, int]:
        """Return the largest epoch up to `epoch`, and the start of the next one (`end_offset` for the newest).

        (-1, -1) when the epoch is newer than all, as in an OffsetForLeaderEpoch response.
        """
        if epoch == UNDEFINED or not self.entries:
            return UNDEFINED, UNDEFINED
        if epoch == self.entries[-1][0]:
            return epoch, end_offset
        higher = bisect_right(self.entries, (epoch, 1 << 63))
        if higher == len(self.entries):
            return UNDEFINED, UNDEFINED
        next_start = self.entries[higher][1]
        return (epoch if higher == 0 else self.entries[higher - 1][0]), next_start

    def truncate_from_end(self, dir_name: str, end_offset: int) -> None:
        """Drop the epochs that started at `end_offset` or later."""
        kept = tuple(entry for entry in self.entries if entry[1] < end_offset)
        if kept != self.entries:
            self._store(dir_name, kept)

    def truncate_from_start(self, dir_name: str, start_offset: int) -> None:
        """Drop the epochs that ended before `start_offset`; the one that contains it then starts there."""
        ended = [entry for entry in self.entries if entry[1] <= start_offset]
        if not ended or ended == [(ended[0][0], start_offset)]:
            return
        rest = self.entries[len(ended) :]
        self._store(dir_name, ((ended[-1][0], start_offset), *rest))

    def clear(self, dir_name: str) -> None:
        """Drop all epochs."""
        if self.entries:
            self._store(dir_name, ())

    def _store(self, dir_name: str, entries: tuple[tuple[int, int], ...]) -> None:
        write_leader_epochs(self._disk, f"{dir_name}/{FILE_NAME}", entries)
        self.entries = entries
