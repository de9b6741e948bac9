"""The move of one replica from one log directory to another as a state table (KIP-113, KIP-858).

Mirrors Kafka's `ReplicaAlterLogDirsThread` and its `PromotionState`: the future replica copies until it has caught up,
the new directory is reported to the controller, and only after its confirmation does the future replica replace the
current one. Sans-IO: :func:`step` returns the actions, :mod:`.movers` executes them.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto


class MoveRefusedError(Exception):
    """A broker refuses to start a move. `error_code` is the code in the AlterReplicaLogDirs response."""

    def __init__(self, error_code: int, message: str) -> None:
        super().__init__(message)
        self.error_code = error_code


class MoveEndedError(Exception):
    """A started move ended early; the replica is where it was. The message has the reason."""


class Stage(Enum):
    """The stage of a move; Kafka's `ReassignmentState` and the states around it."""

    UNASKED = auto()
    """There is no move."""
    COPYING = auto()
    """The future replica has not caught up yet; nothing was reported to the controller (Kafka's None)."""
    QUEUED = auto()
    """It caught up once and the directory is being reported; copying continues (Kafka's Queued)."""
    ACCEPTED = auto()
    """The controller has the new directory in its log; the swap waits for the last records (Kafka's Accepted)."""
    DONE = auto()
    """The future replica has become the current one (Kafka's Effective)."""
    OVER = auto()
    """The replica stays where it was."""

    @property
    def is_under_way(self) -> bool:
        """True if there is a future replica."""
        return self in (Stage.COPYING, Stage.QUEUED, Stage.ACCEPTED)


class Happened(Enum):
    """An event of a move."""

    ASKED = auto()
    """AlterReplicaLogDirs names another directory."""
    COPIED = auto()
    """A piece was copied and there is more."""
    CAUGHT_UP = auto()
    """The future replica ends where the current one does."""
    ACKNOWLEDGED = auto()
    """The controller answered AssignReplicasToDirs for the target with NONE."""
    REFUSED = auto()
    """It answered with an error, or not at all; the queue of assignments retries."""
    RENAMED = auto()
    """Both directories have been renamed."""
    CANCELLED = auto()
    """AlterReplicaLogDirs names the replica's current directory."""
    REPLACED = auto()
    """AlterReplicaLogDirs names a third directory."""
    SOURCE_LOST = auto()
    """The directory of the current replica is offline."""
    TARGET_LOST = auto()
    """The directory of the future replica is offline."""
    REPLICA_GONE = auto()
    """The topic was deleted, or the partition was reassigned to other brokers."""
    RESTARTED = auto()
    """The broker was restarted and found both logs, the metadata naming the current one's directory."""
    RESTARTED_ACKNOWLEDGED = auto()
    """The broker was restarted and found both logs, the metadata naming the future one's directory."""


class Order(Enum):
    """The actions, in the order given."""

    CREATE_FUTURE = auto()
    COPY = auto()
    ASSIGN_TARGET = auto()
    """Queue AssignReplicasToDirs for the target and report its acknowledgement."""
    SWAP = auto()
    """Rename the future replica to the replica and the old one to `-delete`."""
    DELETE_FUTURE = auto()
    FORGET_FUTURE = auto()
    """Drop the future replica from memory; its files are on a directory that is offline."""
    ASSIGN_SOURCE = auto()
    """Queue AssignReplicasToDirs for the directory of the current replica: it replaces the queued one."""


_ASKED = (Order.CREATE_FUTURE, Order.COPY)
_COPY = (Order.COPY,)
_REVERT = (Order.DELETE_FUTURE, Order.ASSIGN_SOURCE)

Row = tuple[Stage, tuple[Order, ...]]

TABLE: Mapping[tuple[Stage, Happened], Row] = {
    (Stage.UNASKED, Happened.ASKED): (Stage.COPYING, _ASKED),
    (Stage.UNASKED, Happened.RESTARTED): (Stage.COPYING, _COPY),
    (Stage.UNASKED, Happened.RESTARTED_ACKNOWLEDGED): (Stage.ACCEPTED, _COPY),
    (Stage.COPYING, Happened.COPIED): (Stage.COPYING, _COPY),
    (Stage.COPYING, Happened.CAUGHT_UP): (Stage.QUEUED, (Order.ASSIGN_TARGET, Order.COPY)),
    (Stage.COPYING, Happened.CANCELLED): (Stage.OVER, (Order.DELETE_FUTURE,)),
    (Stage.COPYING, Happened.REPLACED): (Stage.COPYING, (Order.DELETE_FUTURE, *_ASKED)),
    (Stage.COPYING, Happened.SOURCE_LOST): (Stage.OVER, ()),
    (Stage.COPYING, Happened.TARGET_LOST): (Stage.OVER, (Order.FORGET_FUTURE,)),
    (Stage.COPYING, Happened.REPLICA_GONE): (Stage.OVER, (Order.DELETE_FUTURE,)),
    (Stage.QUEUED, Happened.COPIED): (Stage.QUEUED, _COPY),
    (Stage.QUEUED, Happened.CAUGHT_UP): (Stage.QUEUED, _COPY),
    (Stage.QUEUED, Happened.ACKNOWLEDGED): (Stage.ACCEPTED, _COPY),
    (Stage.QUEUED, Happened.REFUSED): (Stage.QUEUED, ()),
    (Stage.QUEUED, Happened.CANCELLED): (Stage.OVER, _REVERT),
    (Stage.QUEUED, Happened.REPLACED): (Stage.COPYING, (*_REVERT, *_ASKED)),
    (Stage.QUEUED, Happened.SOURCE_LOST): (Stage.OVER, (Order.ASSIGN_SOURCE,)),
    (Stage.QUEUED, Happened.TARGET_LOST): (Stage.OVER, (Order.FORGET_FUTURE, Order.ASSIGN_SOURCE)),
    (Stage.QUEUED, Happened.REPLICA_GONE): (Stage.OVER, (Order.DELETE_FUTURE,)),
    (Stage.ACCEPTED, Happened.COPIED): (Stage.ACCEPTED, _COPY),
    (Stage.ACCEPTED, Happened.CAUGHT_UP): (Stage.ACCEPTED, (Order.SWAP,)),
    (Stage.ACCEPTED, Happened.RENAMED): (Stage.DONE, ()),
    (Stage.ACCEPTED, Happened.CANCELLED): (Stage.OVER, _REVERT),
    (Stage.ACCEPTED, Happened.REPLACED): (Stage.COPYING, (*_REVERT, *_ASKED)),
    (Stage.ACCEPTED, Happened.SOURCE_LOST): (Stage.OVER, (Order.ASSIGN_SOURCE,)),
    (Stage.ACCEPTED, Happened.TARGET_LOST): (Stage.OVER, (Order.FORGET_FUTURE, Order.ASSIGN_SOURCE)),
    (Stage.ACCEPTED, Happened.REPLICA_GONE): (Stage.OVER, (Order.DELETE_FUTURE,)),
}
"""Every event with an effect, by stage. Other events change nothing: a late response, a second cancel.

A lost source is assigned back to its own directory although that is offline, which removes this broker from the ISR:
Kafka does so. `DirectoryId.LOST`, which KIP-858's text specifies here, is never sent by it.
"""


def step(stage: Stage, happened: Happened) -> Row:
    """Return the stage after an event, and the actions."""
    return TABLE.get((stage, happened), (stage, ()))
