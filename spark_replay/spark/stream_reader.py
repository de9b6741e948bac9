"""A growing folder as a stream: each capture file once, when it is complete."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
from mockraft.spark_replay.capture_paths import NoCaptureError, capture_files
from mockraft.spark_replay.spark.options import SourceOptions
from mockraft.spark_replay.spark.partition_reading import plan_tasks, read_splits
from mockraft.spark_replay.storage import Location
from mockraft.spark_replay.storage.listing import StoredFile, exists, is_pattern
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxFiles, SupportsTriggerAvailableNow

Offset = dict[str, int]


class ChangedCaptureError(ValueError):
    """Raised if a file changed after it was read: bytes were appended when it had been considered complete."""


class CaptureStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Stream the files of folders and globs once each, oldest first, `maxFilesPerTrigger` at a time.

    A file is complete when it was last written `quietSeconds` ago or earlier. An offset holds the sizes of the files
    that were read and still exist, by path: all that a restart needs.
    """

    def __init__(self, paths: Sequence[str], options: SourceOptions) -> None:
        self._paths = paths
        self._options = options
        self._last: set[str] | None = None

    def initialOffset(self) -> Offset:  # noqa: N802 - Spark's name
        """Return the offset before the first file."""
        return {}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """Return maxFilesPerTrigger; without it, all."""
        files = self._options.max_files_per_trigger
        return ReadAllAvailable() if files is None else ReadMaxFiles(files)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Fix the set of files: those completed from now on are not read by this run."""
        self._last = set(self._whole(self._files()))

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802 - Spark's name
        """Return `start` plus the next files. Raises ChangedCaptureError, NoCaptureError with onError=fail."""
        files = self._files()
        self._check_unchanged(start, files)
        new = [path for path in self._whole(files) if path not in start]
        if self._last is not None:
            new = [path for path in new if path in self._last]
        if isinstance(limit, ReadMaxFiles):
            new = new[: limit.max_files]
        if not new:
            return start
        known = {path: size for path, size in start.items() if path in files}
        return dict(sorted((known | {path: files[path].size for path in new}).items()))

    def partitions(self, start: Offset, end: Offset) -> list[InputPartition]:
        """Return the splits of files that are new in `end`. Raises NoCaptureError, CaptureError with onError=fail."""
        new = [path for path in end if path not in start]
        gone = [path for path in new if not exists(Location.parse(path))]
        if gone and self._options.on_error == "fail":
            raise NoCaptureError(
                f"{gone[0]} was planned for this batch and no longer exists: restore it, "
                "or continue without it with onError=skip"
            )
        files = (StoredFile(path, end[path], 0) for path in new if path not in gone)
        return [InputPartition(task.splits) for task in plan_tasks(files, self._options)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Return the batches of the partition's splits. Raises CaptureError (file, offset) with onError=fail."""
        return read_splits(partition.value, self._options)

    def _files(self) -> dict[str, StoredFile]:
        """Return the current files. Raises NoCaptureError if there is no folder."""
        found: dict[str, StoredFile] = {}
        for path in self._paths:
            files = capture_files(path)
            location = Location.parse(path)
            # An empty folder of an object store does not exist until a file comes.
            if not files and not location.is_object_store and not is_pattern(location) and not exists(location):
                raise NoCaptureError(f"{path} does not exist: a stream needs a folder, a file or a glob")
            found |= {file.path: file for file in files}
        return found

    def _whole(self, files: Mapping[str, StoredFile]) -> list[str]:
        """Return the complete files, oldest first."""
        before_ns = time.time_ns() - self._options.quiet_seconds * 1_000_000_000
        whole = [path for path, file in files.items() if file.modified_ns <= before_ns]
        return sorted(whole, key=lambda path: (files[path].modified_ns, path))

    def _check_unchanged(self, start: Offset, files: Mapping[str, StoredFile]) -> None:
        if self._options.on_error != "fail":
            return
        for path, size in start.items():
            if path in files and files[path].size != size:
                raise ChangedCaptureError(
                    f"{path} had {size} bytes when it was read and has {files[path].size} now: quietSeconds "
                    f"({self._options.quiet_seconds}) is too short for the writer, or move files here when they "
                    "are complete; onError=skip ignores the added bytes"
                )
