"""The small text files of log directories: offset and leader epoch checkpoints, and `partition.metadata`.

Source: Kafka's CheckpointFile, OffsetCheckpointFile, LeaderEpochCheckpointFile and PartitionMetadataFile. Each write
replaces the whole file. A malformed file raises OSError (EBADMSG) with the line number, where Kafka raises IOException.
`LeaderEpochs` is Kafka's LeaderEpochFileCache.
"""

from __future__ import annotations

import errno
import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping

from mockraft.brokers.disks.disk import Disk
from mockraft.wire import uuids

REPLICATION_OFFSETS = "replication-offset-checkpoint"
RECOVERY_POINTS = "recovery-point-offset-checkpoint"
LOG_START_OFFSETS = "log-start-offset-checkpoint"
PARTITION_METADATA = "partition.metadata"

TopicPartition = tuple[str, int]

_VERSION = "0"


def read_offsets(disk: Disk, name: str) -> dict[TopicPartition, int]:
    """Read the offset of each (topic, partition) from a checkpoint file; empty when the file is empty or missing."""
    entries = {}
    for line, fields in _read(disk, name, 3):
        partition, offset = _number(disk, name, line, fields[1]), _number(disk, name, line, fields[2])
        entries[fields[0], partition] = offset
    return entries


def write_offsets(disk: Disk, name: str, offsets: Mapping[TopicPartition, int]) -> None:
    """Replace a checkpoint file."""
    _write(disk, name, (f"{topic} {partition} {offset}" for (topic, partition), offset in offsets.items()))


def read_leader_epochs(disk: Disk, name: str) -> list[tuple[int, int]]:
    """Read the (epoch, start offset) pairs of a leader-epoch-checkpoint; none when there is no such file."""
    entries: list[tuple[int, int]] = []
    for line, fields in _read(disk, name, 2):
        entry = _number(disk, name, line, fields[0]), _number(disk, name, line, fields[1])
        if entries and (entry[0] <= entries[-1][0] or entry[1] < entries[-1][1]):
            raise _malformed(disk, name, line, "epochs and offsets do not ascend")
        entries.append(entry)
    return entries


def write_leader_epochs(disk: Disk, name: str, entries: Iterable[tuple[int, int]]) -> None:
    """Replace a leader-epoch-checkpoint."""
    _write(disk, name, (f"{epoch} {start}" for epoch, start in entries))


def read_topic_id(disk: Disk, dir_name: str) -> bytes | None:
    """Read the topic id (16 bytes) from the partition.metadata of a log; None when there is no such file."""
    name = f"{dir_name}/{PARTITION_METADATA}"
    if not disk.exists(name):
        return None
    lines = _text(disk, name).splitlines()
    if len(lines) < 2 or not re.fullmatch(r"version:\s*0", lines[0]):
        raise _malformed(disk, name, 1, "expected 'version: 0'")
    found = re.fullmatch(r"topic_id:\s*(\S+)", lines[1])
    try:
        topic_id = uuids.read_text(found[1]) if found else bytes(16)
    except ValueError:
        topic_id = bytes(16)
    if topic_id == bytes(16):
        raise _malformed(disk, name, 2, "expected 'topic_id: ' and an id")
    return topic_id


def write_topic_id(disk: Disk, dir_name: str, topic_id: bytes) -> None:
    """Write the partition.metadata of a log."""
    disk.replace(f"{dir_name}/{PARTITION_METADATA}", f"version: 0\ntopic_id: {uuids.text_of(topic_id)}".encode())


def _read(disk: Disk, name: str, fields: int) -> Iterable[tuple[int, list[str]]]:
    """Return line number and fields of every entry: version and count are followed by that many lines."""
    if not disk.exists(name):
        return
    lines = _text(disk, name).splitlines()
    if not lines:
        # Kafka creates its checkpoint files empty.
        return
    if lines[0] != _VERSION:
        raise _malformed(disk, name, 1, "expected version 0")
    if len(lines) == 1:
        return
    if not re.fullmatch(r"\d{1,10}", lines[1]):
        raise _malformed(disk, name, 2, "expected the number of entries")
    if len(lines) - 2 != int(lines[1]):
        raise _malformed(disk, name, 2, f"expected {lines[1]} entries, found {len(lines) - 2}")
    for number, line in enumerate(lines[2:], start=3):
        found = line.split()
        if len(found) != fields:
            raise _malformed(disk, name, number, f"expected {fields} fields")
        yield number, found


def _write(disk: Disk, name: str, entries: Iterable[str]) -> None:
    lines = list(entries)
    disk.replace(name, "".join(f"{line}\n" for line in (_VERSION, len(lines), *lines)).encode())


def _text(disk: Disk, name: str) -> str:
    return disk.read(name).decode(errors="replace")


def _number(disk: Disk, name: str, line: int, text: str) -> int:
    if not re.fullmatch(r"-?\d{1,19}", text):
        raise _malformed(disk, name, line, f"{text!r} is not a number")
    return int(text)


def _malformed(disk: Disk, name: str, line: int, what: str) -> OSError:
    return OSError(errno.EBADMSG, f"malformed at line {line}: {what}", f"{disk.root}/{name}")


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
