"""Moves between log directories as the user of a simulated broker sees them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from mockraft.brokers.moves.move import MoveEndedError, Stage
from mockraft.brokers.moves.movers import MoveProgress
from mockraft.brokers.moves.requests import start_move

if TYPE_CHECKING:
    from mockraft.brokers.node import BrokerNode
    from mockraft.brokers.shell.shell import Shell


class ReplicaMoves:
    """Access to the moves of a broker's replicas."""

    node: BrokerNode
    shell: Shell

    @property
    def moves(self) -> tuple[MoveProgress, ...]:
        """The active moves, by topic name and partition, with lag, bytes left and an estimate of the time left."""
        return self.node.movers.progress()

    async def move_replica(self, topic: str, partition: int, path: str | os.PathLike[str]) -> None:
        """Move a replica to the log directory with this path, and wait until it is served from there.

        Works as AlterReplicaLogDirs, so another move of the replica is cancelled; does nothing when it is there
        already. Raises MoveRefusedError when the move does not start, MoveEndedError when it ends early.
        """
        move = start_move(self.node.movers, topic, partition, os.fspath(path))
        if move is None:
            return
        await self.shell.until(lambda: move.is_ended)
        if move.stage is not Stage.DONE:
            raise MoveEndedError(f"{topic}-{partition} was not moved to {path}: {move.why}")
