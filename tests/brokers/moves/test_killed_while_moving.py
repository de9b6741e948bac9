"""A broker process with real directories is killed at each step of a move; started again it makes good of it."""

from __future__ import annotations

import asyncio
import runpy
import signal
import sys
from pathlib import Path

import pytest
from mockraft import BrokerState, Controller, SimulatedBroker
from mockraft.brokers.disks.real_disk import RealDisk

from ...topics import assigned, create_topics
from ...waiting import until

SCRIPT = Path(__file__).with_name("dying_broker.py")
_DYING = runpy.run_path(str(SCRIPT))
RECORDS, STEPS, TOPIC = _DYING["RECORDS"], _DYING["STEPS"], _DYING["TOPIC"]
LEFT = {
    "future log created": (["moved-0"], ["moved-0-future"]),
    "in the midst of copying": (["moved-0"], ["moved-0-future"]),
    "caught up": (["moved-0"], ["moved-0-future"]),
    "assignment sent": (["moved-0"], ["moved-0-future"]),
    "assignment acknowledged": (["moved-0"], ["moved-0-future"]),
    "between the renames": (["moved-0"], ["moved-0"]),
    "old log not removed": (["moved-0-delete"], ["moved-0"]),
}
"""Files left by the kill in d0, where the replica was, and in d1."""
TOLD = ("assignment sent", "assignment acknowledged", "between the renames", "old log not removed")
"""The steps at which the controller has the new directory already."""


def logs_below(folder: Path) -> list[str]:
    """The directories of logs, without the unique part of their names."""
    names = [path.name for path in folder.iterdir() if path.is_dir()]
    return [name.split(".")[0] + ("-" + name.rpartition("-")[2]) * ("." in name) for name in names]


def directory_at(controller: Controller) -> bytes:
    """The replica's directory by the controller's image."""
    topics = controller.running.controller.image.topics
    (topic,) = topics.by_id.values()
    return bytes(topic.partitions[0].directories[0])


@pytest.mark.parametrize("step", STEPS)
async def test_broker_killed_during_a_move_loses_no_record(tmp_path: Path, step: str) -> None:
    async with Controller() as controller:
        for name in ("d0", "d1"):
            (tmp_path / name).mkdir()
        arguments = (str(SCRIPT), controller.bootstrap, controller.cluster_id, str(tmp_path), step)
        process = await asyncio.create_subprocess_exec(sys.executable, *arguments)
        waiting = asyncio.create_task(process.wait())
        brokers = controller.running.controller.image.cluster.brokers
        await until(lambda: waiting.done() or (1 in brokers and not brokers[1].fenced))
        await create_topics(controller.bootstrap, assigned(TOPIC, [1]))
        assert await waiting == -signal.SIGKILL
        assert (logs_below(tmp_path / "d0"), logs_below(tmp_path / "d1")) == LEFT[step]
        before = directory_at(controller)

        again = SimulatedBroker.joining(
            controller.bootstrap,
            controller.cluster_id,
            1,
            seed=1,
            log_dir_paths=(str(tmp_path / "d0"), str(tmp_path / "d1")),
            open_disk=RealDisk,
            serve_clients=True,
        )
        async with again:
            await again.wait_until(BrokerState.RUNNING)
            await until(lambda: not again.moves and not again.directories.assignments.queued)
            d0, d1 = (log_dir.directory_id for log_dir in again.config.log_dirs)
            assert before == (d1 if step in TOLD else d0)
            assert (logs_below(tmp_path / "d0"), logs_below(tmp_path / "d1")) == ([], ["moved-0"])
            (held,) = again.logs.held()
            assert (held.log_dir.directory_id, held.log.end_offset) == (d1, RECORDS)
            assert directory_at(controller) == d1
