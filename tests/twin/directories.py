"""Data directories of controllers, and what their files are."""

import hashlib
import shutil
from collections.abc import Mapping
from pathlib import Path

from mockraft import Controller
from mockraft.wire.records.config_record import ConfigRecord

CLUSTER_ID = "d2FzIGEgcmVhbCBvbmUgIQ"


def write_directory(path: Path, **options: object) -> Path:
    """Copy the directory of a running controller with two brokers and two topics, one broker of which was fenced."""
    own = {"data_dir": path.with_name("running"), "cluster_id": CLUSTER_ID, "node_id": 7, "brokers": 2, **options}
    with Controller.sync(clock="virtual", **own) as controller:  # type: ignore[arg-type]
        state = controller.state
        state.create_topic("orders", partitions=3, replicas=[[1, 2], [2, 1], [1, 2]])
        state.create_topic("payments", partitions=1, replicas=[[2]], configs={"retention.ms": "1000"})
        state.append([ConfigRecord(resource_type=4, resource_name="", name="log.retention.ms", value="60000")])
        state.fence(2)
        return shutil.copytree(path.with_name("running"), path)


def files_of(path: Path) -> Mapping[str, tuple[int, int, str]]:
    """Mode, time of the last change and hash of every file."""
    return {
        str(each.relative_to(path)): (
            each.stat().st_mode,
            each.stat().st_mtime_ns,
            hashlib.sha256(each.read_bytes()).hexdigest() if each.is_file() else "",
        )
        for each in [path, *path.rglob("*")]
    }
