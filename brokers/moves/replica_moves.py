"""Moves between log directories as the user of a simulated broker has them."""

from __future__ import annotations

import os

from mockraft.brokers.moves.asking import ask_to_move
from mockraft.brokers.moves.errors import MoveEndedError
from mockraft.brokers.moves.move import Stage
from mockraft.brokers.moves.movers import Movers
from mockraft.brokers.moves.progress import MoveProgress


class ReplicaMoves:
    """What a broker offers about the moves of its replicas."""

    movers: Movers

    @property
    def moves(self) -> tuple[MoveProgress, ...]:
        """The moves under way, by topic name and partition, with lag, bytes left and an estimate of the time left."""
        return self.movers.progress()

    async def move_replica(self, topic: str, partition: int, path: str | os.PathLike[str]) -> None:
        """Move a replica to the log directory with this path, and return when it serves from there.

        As AlterReplicaLogDirs does it, so another move of the replica is cancelled; nothing to do when it lies there.
        Raises MoveRefusedError when the move does not begin, MoveEndedError when it ends early.
        """
        move = ask_to_move(self.movers, topic, partition, os.fspath(path))
        if move is None:
            return
        await move.ended.wait()
        if move.stage is not Stage.DONE:
            raise MoveEndedError(f"{topic}-{partition} was not moved to {path}: {move.why}")
