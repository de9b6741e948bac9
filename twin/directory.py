"""A history as a new data directory of a controller, in Kafka's format."""

from __future__ import annotations

import random
from pathlib import Path

from mockraft.files.private_files import write_private
from mockraft.server.controller.log.data_dir import DataDir
from mockraft.server.controller.log.segments import LogStorage
from mockraft.twin.history import History, SourceError
from mockraft.twin.state import NODE_ID
from mockraft.wire import uuids

SEGMENT_BYTES_MAX = 1 << 30


def write_directory(history: History, path: Path) -> Path:
    """Write a history into a new directory, the same bytes for the same history; return its path.

    SourceError for a directory that has files; OSError.
    """
    if path.exists() and any(path.iterdir()):
        raise SourceError(f"{path}: it has files already; a copy needs a new directory")
    directory_id = history.directory.get("directory.id")
    data_dir = DataDir(
        path,
        history.cluster_id,
        int(history.directory.get("node.id", NODE_ID)),
        random.Random(history.cluster_id),
        directory_id=uuids.read_text(directory_id) if directory_id else None,
    )
    try:
        if history.snapshot is not None:
            content = history.snapshot.read(0, history.snapshot.size)
            write_private(data_dir.partition_path / history.snapshot.id.file_name, content)
        storage = LogStorage(data_dir.partition_path, segment_bytes_max=SEGMENT_BYTES_MAX, fsync=False)
        storage.open_for_append(history.start_offset)
        epochs: dict[int, int] = {}
        for header, data in history.batches:
            storage.append(data, header.base_offset)
            epochs.setdefault(header.leader_epoch, header.base_offset)
        storage.close()
        data_dir.write_leader_epochs([*epochs.items()])
    finally:
        data_dir.close()
    (path / ".lock").unlink()
    return path
