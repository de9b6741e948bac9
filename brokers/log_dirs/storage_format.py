"""Formatting of log directories as `kafka-storage format` does for a broker (Kafka's `Formatter`, KIP-858).

Each directory without meta.properties gets one with an id of its own. Kafka before 4.4 also writes a
bootstrap.checkpoint, which no broker needs.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from mockraft.brokers.log_dirs.ensemble import (
    LogDirsError,
    MetaProperties,
    Refusal,
    draw_directory_id,
    look,
    not_written,
    verify,
    write_meta,
)
from mockraft.brokers.log_dirs.placement import in_map_order
from mockraft.releases import release

_METADATA_VERSION_NAME = max(release().metadata_versions.values()).name


class Formatted(NamedTuple):
    """The result of formatting: the files written, by path, and that of the metadata directory.

    `unreadable` has the reasons by path.
    """

    metas: Mapping[str, MetaProperties]
    metadata_dir: str
    unreadable: Mapping[str, str]

    def lines(self, bootstrap: str = "", metadata_version: str = _METADATA_VERSION_NAME) -> list[str]:
        """Return what kafka-storage prints; `bootstrap` is its line about the first records of a log."""
        lines = [
            f"I/O error trying to read log directory {at}. Ignoring... ({why})" for at, why in self.unreadable.items()
        ]
        if not self.metas:
            return [*lines, "All of the log directories are already formatted."]
        if bootstrap:
            lines.append(bootstrap)
        for path in self.metas:
            kind = "metadata directory" if path == self.metadata_dir else "data directory"
            lines.append(f"Formatting {kind} {path} with metadata.version {metadata_version}.")
        return lines


def format_log_dirs(
    paths: Sequence[str],
    node_id: int,
    cluster_id: str,
    rng: random.Random,
    *,
    metadata_log_dir: str | None = None,
    ignore_formatted: bool = False,
) -> Formatted:
    """Format every directory that is not formatted yet; missing ones are created.

    `metadata_log_dir` None is the first of `paths`, as in Kafka. A directory that cannot be read is left alone and
    reported, as long as there is another. Raises LogDirsError, and writes nothing, when the ids are invalid, a
    directory belongs to another node or cluster, or is formatted already and `ignore_formatted` is off; also when
    writing fails.
    """
    _check_ids(node_id, cluster_id)
    if not paths:
        raise LogDirsError(Refusal.NO_DIRECTORY, "You must specify at least one directory to format")
    metadata_dir = paths[0] if metadata_log_dir is None else metadata_log_dir
    found = look([metadata_dir, *paths])
    verify(found, cluster_id, node_id)
    formatted = {each.path: each.meta for each in found if each.meta is not None}
    if formatted and not ignore_formatted:
        raise LogDirsError(
            Refusal.ALREADY_FORMATTED,
            f"Log directory {in_map_order([*formatted])[0]} is already formatted. Use --ignore-formatted to ignore "
            "this directory and format the others.",
        )
    errors = {each.path: each.error for each in found if each.error is not None}
    unformatted = in_map_order([each.path for each in found if each.is_empty])
    if not unformatted and not formatted:
        raise LogDirsError(Refusal.NONE_LIVE, f"No available log directories to format. ({'; '.join(errors.values())})")
    for path in unformatted:
        directory_id = draw_directory_id(rng, formatted)
        formatted[path] = MetaProperties(1, cluster_id, node_id, directory_id)
    for path in unformatted:
        _write(path, formatted[path])
    return Formatted({path: formatted[path] for path in unformatted}, metadata_dir, errors)


def _check_ids(node_id: int, cluster_id: str) -> None:
    if not 0 <= node_id < 2**31:
        raise LogDirsError(
            Refusal.BAD_ID, f"node id {node_id}: You must specify a valid non-negative node ID, at most {2**31 - 1}."
        )
    if not cluster_id.strip() or not cluster_id.isprintable():
        raise LogDirsError(
            Refusal.BAD_ID,
            f"cluster id {cluster_id!r}: You must specify the cluster id (mockraft random-uuid draws one).",
        )


def _write(path: str, meta: MetaProperties) -> None:
    try:
        Path(path).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise not_written(path, error) from error
    write_meta(path, meta)
