"""A broker process with two real directories that moves a replica and kills itself at one step of the move.

`python dying_broker.py BOOTSTRAP CLUSTER_ID FOLDER STEP`, for test_moves_in_a_cluster.py.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mockraft.brokers.assignments import Assignments
from mockraft.brokers.broker import SimulatedBroker
from mockraft.brokers.disks.real_disk import RealDisk
from mockraft.brokers.lifecycle import BrokerState
from mockraft.brokers.log_dirs.logs import Logs
from mockraft.brokers.log_dirs.replica_log import ReplicaLog
from mockraft.brokers.moves import movers
from mockraft.brokers.moves.movers import Movers
from mockraft.wire import record_batch

RECORDS = 40
TOPIC = "moved"


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def dies(owner: Any, name: str, when: Callable[..., bool] = lambda *_: True, *, first: bool = False) -> None:
    """The process is killed as soon as this method has done its work (`first`: before), with arguments that matter."""
    method = getattr(owner, name)

    def deadly(self: Any, *args: Any, **kwargs: Any) -> Any:
        if first and when(self, *args):
            die()
        result = method(self, *args, **kwargs)
        if when(self, *args):
            die()
        return result

    setattr(owner, name, deadly)


def is_future(log: ReplicaLog, *_: Any) -> bool:
    return log.dir_name.endswith("-future")


STEPS: dict[str, Callable[[], None]] = {
    "future log created": lambda: dies(Movers, "_create_future"),
    "in the midst of copying": lambda: dies(ReplicaLog, "append_as_follower", is_future),
    "caught up": lambda: dies(Assignments, "take", first=True),
    "assignment sent": lambda: dies(Assignments, "answered", first=True),
    "assignment acknowledged": lambda: dies(Logs, "promote", first=True),
    "between the renames": lambda: dies(RealDisk, "rename", lambda _disk, old, _new: old.endswith("-future")),
    "old log not removed": lambda: dies(RealDisk, "remove", lambda _disk, name: name.endswith("-delete"), first=True),
}


async def main(bootstrap: str, cluster_id: str, folder: Path, step: str) -> None:
    paths = tuple(str(folder / name) for name in ("d0", "d1"))
    broker = SimulatedBroker.joining(
        bootstrap, cluster_id, 1, seed=1, log_dir_paths=paths, open_disk=RealDisk, serve_clients=True
    )
    movers.PIECE_BYTES_MAX = 1
    async with broker:
        await broker.wait_until(BrokerState.RUNNING)
        while not (held := broker.logs.held()) or broker.directories.assignments.queued:
            broker.changed.clear()
            await broker.changed.wait()
        for number in range(RECORDS):
            batch = record_batch.encode([b"%d" % number], base_offset=0, leader_epoch=0, timestamp_ms=1000)
            held[0].log.append_as_leader(batch, 0, 1000)
        STEPS[step]()
        target = next(path for path in paths if path != held[0].log_dir.path)
        await broker.move_replica(TOPIC, 0, target)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), sys.argv[4]))
