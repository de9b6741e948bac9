"""Configs for brokers with log directories on a file system: ids and cluster id are read from them."""

from __future__ import annotations

import dataclasses
import os
import random
from collections.abc import Sequence
from typing import Any, NamedTuple

from mockraft.brokers.config import BrokerConfig, draw_config
from mockraft.brokers.disks.real_disk import RealDisk
from mockraft.brokers.log_dirs.startup_rules import open_log_dirs
from mockraft.brokers.log_dirs.storage_format import format_log_dirs


class LogDirPaths(NamedTuple):
    """Log directories, the one with the metadata (None: the first), and whether to format the unformatted ones."""

    paths: Sequence[str]
    metadata_log_dir: str | None = None
    format_missing: bool = False


def draw_config_on_disk(
    broker_id: int,
    cluster_id: str | None,
    bootstrap: tuple[tuple[str, int], ...],
    rng: random.Random,
    dirs: LogDirPaths,
    **options: Any,
) -> BrokerConfig:
    """Return a config like `draw_config` with directories on a file system.

    To format some requires the cluster id; otherwise None takes that of the directories. Raises LogDirsError when a
    broker must not start on them.
    """
    paths, metadata_log_dir, format_missing = dirs
    if format_missing and cluster_id is not None:
        format_log_dirs(paths, broker_id, cluster_id, rng, metadata_log_dir=metadata_log_dir, ignore_formatted=True)
    absolute = {"log.dirs": ",".join(map(os.path.abspath, paths))}
    if metadata_log_dir is not None:
        absolute["metadata.log.dir"] = os.path.abspath(metadata_log_dir)
    options["properties"] = {**options.get("properties", {}), **absolute}
    opened = open_log_dirs(paths, broker_id, cluster_id, rng, metadata_log_dir=metadata_log_dir)
    config = draw_config(broker_id, opened.cluster_id, bootstrap, rng, **options)
    return dataclasses.replace(
        config,
        log_dirs=opened.log_dirs,
        offline_log_dirs=opened.offline,
        metadata_directory_id=opened.metadata_directory_id,
        open_disk=RealDisk,
    )
