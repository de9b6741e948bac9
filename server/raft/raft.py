"""One node's view of its quorum (Kafka's KafkaRaftClient), without sockets: time is an argument."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mockraft.server.config import ControllerConfig
from mockraft.server.controller.data_dir import DataDirError, StorageError
from mockraft.server.controller.metadata_log import MetadataLog
from mockraft.server.raft.outgoing import Listener, NodeEndpoint, Outgoing
from mockraft.wire.errors import WireError

if TYPE_CHECKING:
    import random

NEVER_MS = 1 << 62


class Raft:
    """A voter of a quorum of one: it leads from the start.

    `log` is the metadata log, whose high watermark this moves. `automatic` False: no timeout starts an election.
    `listener` is told of what becomes of this node.
    """

    def __init__(self, config: ControllerConfig, log: MetadataLog) -> None:
        """Over an opened log; use `open`."""
        self.config = config
        self.log = log
        self.automatic = True
        self.listener: Listener | None = None
        self.leader_id: int | None = None

    @classmethod
    def open(cls, config: ControllerConfig, now_ms: int, chance: random.Random) -> Raft:
        """Recover the log from `config.data_dir`, or start one in memory; the only voter leads a new epoch at once.

        `config` must name the port that brokers connect to, for it goes into the log. DataDirError when the data dir
        cannot be used.
        """
        log = MetadataLog.open(config, now_ms, chance)
        raft = cls(config, log)
        try:
            log.begin_epoch(now_ms)
        except (OSError, StorageError, WireError) as error:
            log.close()
            raise DataDirError(f"data dir {config.data_dir}: cannot be used: {error}") from error
        raft.leader_id = config.node_id
        return raft

    @property
    def leader_epoch(self) -> int:
        """The newest epoch this node knows of."""
        return self.log.leader_epoch

    @property
    def is_leader(self) -> bool:
        """Whether this node leads `leader_epoch`."""
        return self.leader_id == self.config.node_id

    @property
    def leader_endpoint(self) -> NodeEndpoint | None:
        """Where the leader listens; None while none is known, and where it is this node."""
        return None

    def poll(self, now_ms: int) -> list[Outgoing]:
        """Do what is due and give the requests to send; one at a time is in flight to each node."""
        return []

    def received(self, outgoing_id: int, response: Any, now_ms: int) -> None:
        """Take the answer to a request; None where there was none."""

    def next_poll_ms(self, now_ms: int) -> int:
        """When `poll` has something to do, in milliseconds since the epoch."""
        return NEVER_MS
