"""Configs for brokers with log directories on a file system: ids and cluster id are read from them."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Sequence
from typing import Any

from mockraft.brokers.config import BrokerConfig, draw_config
from mockraft.brokers.disks.real_disk import RealDisk
from mockraft.brokers.log_dirs.startup_rules import open_log_dirs
from mockraft.brokers.log_dirs.storage_format import format_log_dirs


def draw_config_on_disk(
    broker_id: int,
    cluster_id: str | None,
    bootstrap: tuple[tuple[str, int], ...],
    rng: random.Random,
    paths: Sequence[str],
    *,
    metadata_log_dir: str | None = None,
    format_missing: bool = False,
    **options: Any,
) -> BrokerConfig:
    """Return a config like `draw_config` with the formatted directories at `paths`.

    `format_missing` formats the unformatted ones and requires the cluster id; otherwise None takes that of the
    directories. `metadata_log_dir` None is the first of `paths`. Raises LogDirsError when a broker must not start on
    them.
    """
    if format_missing and cluster_id is not None:
        format_log_dirs(paths, broker_id, cluster_id, rng, metadata_log_dir=metadata_log_dir, ignore_formatted=True)
    opened = open_log_dirs(paths, broker_id, cluster_id, rng, metadata_log_dir=metadata_log_dir)
    config = draw_config(broker_id, opened.cluster_id, bootstrap, rng, **options)
    return dataclasses.replace(
        config,
        log_dirs=opened.log_dirs,
        offline_log_dirs=opened.offline,
        metadata_directory_id=opened.metadata_directory_id,
        open_disk=RealDisk,
    )
