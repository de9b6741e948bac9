"""The rules by which a broker starts with its log directories, or refuses to (KIP-858).

The rules of Kafka's `KafkaRaftServer.initializeLogDirs`, `MetaPropertiesEnsemble.verify` and of LogManager's start, as
one function without side effects, :func:`decide`; :func:`open_log_dirs` reads, decides and writes.
"""

from __future__ import annotations

import os
import random
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from mockraft.brokers.log_dirs.ensemble import (
    META_PROPERTIES,
    METADATA_PARTITION_DIR,
    DirFound,
    LogDirsError,
    MetaProperties,
    Refusal,
    draw_directory_id,
    look,
    verify,
    write_meta,
)
from mockraft.brokers.log_dirs.placement import DirectoryAt


class Start(NamedTuple):
    """The result of a start: the new files by path, those to be written, the failed directories with their reasons."""

    metas: Mapping[str, MetaProperties]
    rewritten: tuple[str, ...]
    live: tuple[str, ...]
    offline: Mapping[str, str]


class OpenedDirs(NamedTuple):
    """The directories of a broker that may start.

    `log_dirs` are live, in the configured order; `offline` are the others, path to reason, which the broker does not
    register. `metadata_directory_id` is that of the directory with the metadata log, 16 bytes.
    """

    log_dirs: tuple[DirectoryAt, ...]
    offline: Mapping[str, str]
    metadata_directory_id: bytes
    cluster_id: str


def open_log_dirs(
    paths: Sequence[str],
    node_id: int,
    cluster_id: str | None,
    rng: random.Random,
    *,
    metadata_log_dir: str | None = None,
) -> OpenedDirs:
    """Check formatted directories as a starting broker does, and write missing directory.ids.

    `cluster_id` None takes that of the directories; `metadata_log_dir` None is the first of `paths`, as in Kafka.
    Locking them is a later step. Raises LogDirsError when a broker must not start on them.
    """
    if not paths:
        raise LogDirsError(Refusal.NO_DIRECTORY, "You must specify at least one log directory.")
    metadata_dir = paths[0] if metadata_log_dir is None else metadata_log_dir
    found = look([metadata_dir, *paths])
    start = decide(found, paths, metadata_dir, node_id, cluster_id, rng)
    for path in start.rewritten:
        write_meta(path, start.metas[path])
    log_dirs = tuple(DirectoryAt(os.path.abspath(path), _id_in(start, path)) for path in start.live)
    offline = {os.path.abspath(path): reason for path, reason in start.offline.items()}
    ours = next(meta.cluster_id for meta in start.metas.values() if meta.cluster_id is not None)
    return OpenedDirs(log_dirs, offline, _id_in(start, metadata_dir), ours)


def decide(
    found: Sequence[DirFound],
    paths: Sequence[str],
    metadata_log_dir: str,
    node_id: int,
    cluster_id: str | None,
    rng: random.Random,
) -> Start:
    """Decide on the start of a broker with these directories in Kafka's order of checks; `found` comes from `look`.

    Raises LogDirsError when it does not start. A directory that cannot be read is offline, and the broker starts
    without it, unless it is the one with the metadata log.
    """
    if not any(each.is_formatted for each in found):
        raise _none_readable(found)
    verify(found, cluster_id, node_id, metadata_log_dir)
    _check_metadata_log(found, metadata_log_dir)
    metas = _check_formatted(found)
    rewritten = []
    for path, meta in list(metas.items()):
        if meta.directory_id is None:
            metas[path] = meta.with_directory_id(draw_directory_id(rng, metas))
            rewritten.append(path)
    fault = next((each.bootstrap_fault for each in found if each.path == metadata_log_dir), None)
    if fault is not None:
        raise LogDirsError(Refusal.BOOTSTRAP, f"{fault}. A broker has no need of it: remove the file.")
    live, offline = _sort_out(found, paths)
    return Start(metas, tuple(rewritten), tuple(live), offline)


def _none_readable(found: Sequence[DirFound]) -> LogDirsError:
    reasons = "; ".join(each.error or f"{each.path} has none" for each in found)
    text = f"No readable {META_PROPERTIES} files found. ({reasons})"
    if any(each.is_empty for each in found):
        return LogDirsError(Refusal.NOT_FORMATTED, f"{text} Format the directories first: mockraft format.")
    return LogDirsError(
        Refusal.NONE_READABLE, f"{text} Restore the files, or empty the directories and format them anew."
    )


def _check_metadata_log(found: Sequence[DirFound], metadata_log_dir: str) -> None:
    for each in found:
        if each.is_formatted and each.has_metadata_log and each.path != metadata_log_dir:
            raise LogDirsError(
                Refusal.METADATA_ELSEWHERE,
                f"Found unexpected metadata location in data directory `{each.path}{os.sep}{METADATA_PARTITION_DIR}`"
                f" (the configured metadata directory is {metadata_log_dir}). Name the directory that has the metadata "
                "log first, or as the metadata log dir.",
            )


def _check_formatted(found: Sequence[DirFound]) -> dict[str, MetaProperties]:
    for each in found:
        if each.is_empty:
            raise LogDirsError(
                Refusal.NOT_FORMATTED,
                f"No `{META_PROPERTIES}` found in {each.path} (have you run `kafka-storage.sh` to format the "
                "directory?) mockraft format --ignore-formatted formats those that are not yet.",
            )
    metas = {each.path: each.meta for each in found if each.meta is not None}
    for path, meta in metas.items():
        file = os.path.join(path, META_PROPERTIES)
        advice = f"{file} is empty, cut off or no such file. Restore it, or empty the directory and format it anew."
        if meta.node_id is None:
            raise LogDirsError(Refusal.NO_NODE_ID, f"Error: node ID not found in {path}. {advice}")
        if meta.cluster_id is None:
            raise LogDirsError(Refusal.NO_CLUSTER_ID, f"Error: cluster ID not found in {path}. {advice}")
    return metas


def _sort_out(found: Sequence[DirFound], paths: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Return the live and the offline directories, as LogManager does; a path given twice counts once."""
    by_path = {each.path: each for each in found}
    paths = list(dict.fromkeys(paths))
    live: dict[str, str] = {}
    offline: dict[str, str] = {}
    for path in paths:
        each = by_path[path]
        if each.error is not None:
            offline[path] = each.error
        elif not each.usable:
            offline[path] = f"{path} is not a readable log directory."
        elif each.canonical in live:
            raise LogDirsError(
                Refusal.DUPLICATE_PATH,
                f"Duplicate log directory found: {', '.join(paths)}. {path} and {live[each.canonical]} are one.",
            )
        else:
            live[each.canonical] = path
    if not live:
        reasons = "; ".join(offline.values())
        raise LogDirsError(
            Refusal.NONE_LIVE,
            f"Shutdown broker because none of the specified log dirs from {', '.join(paths)} can be created or "
            f"validated ({reasons})",
        )
    return list(live.values()), offline


def _id_in(start: Start, path: str) -> bytes:
    directory_id = start.metas[path].directory_id
    assert directory_id is not None
    return directory_id
