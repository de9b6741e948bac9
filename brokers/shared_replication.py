"""One replica of the metadata log that many simulated brokers of a process read together.

Each of N real brokers fetches every record of the others: 2·N·N records for a fleet that starts, 2·10⁸ for ten
thousand. Sharing one observer leaves N registrations and heartbeats, which is what a large cluster costs a controller.
Not as Kafka has it: the controller sees one reader that is nobody's replica (id -1) where it would see N observers.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable

from mockraft.brokers.config import BrokerConfig
from mockraft.brokers.observer import Endpoint, FatalError, Observer
from mockraft.brokers.outage import Outage
from mockraft.brokers.replication import Replication, decoder
from mockraft.brokers.shared_view import Heard, SharedView
from mockraft.wire.errors import WireError

NOBODY = -1
"""The replica id of a reader that is no replica (Kafka's LeaderState passes over its fetches)."""

_log = logging.getLogger(__name__)


class SharedReplication:
    """Replicates for the brokers with these ids, from :meth:`start` to :meth:`close`.

    `config` says where the controllers are; its ids are of no account. `heard` is told of changed registrations.
    What would end a real broker's process ends all that share it: `fault` says what it was. Their channels share its
    `outage`.
    """

    def __init__(self, config: BrokerConfig, broker_ids: Iterable[int], heard: Heard | None = None) -> None:
        self.view = SharedView(broker_ids, heard)
        self.observer = Observer(
            NOBODY,
            config.cluster_id,
            config.metadata_directory_id,
            self.view,
            config.controller_listener_name,
            decoder(config),
        )
        self.fault: Exception | None = None
        self.replication = Replication(config, self.observer, self._advanced, "fleet")
        self.outage = Outage()
        self._members: dict[int, Membership] = {}
        self._controller: tuple[Endpoint | None, int] = (None, -1)
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to fetch. Needs a running loop."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def close(self) -> None:
        """Stop fetching and close every connection."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        await self.replication.close()

    def member(self, broker_id: int, advanced: Callable[[], None], failed: Callable[[Exception], None]) -> Membership:
        """The replication of one broker: it hears of what concerns it as if it fetched for itself."""
        return Membership(self, broker_id, advanced, failed)

    async def _run(self) -> None:
        try:
            await self.replication.run()
        except (FatalError, WireError) as error:
            _log.error("the shared metadata log: fatal: %s", error)
            self.fault = error
            for member in list(self._members.values()):
                member.failed(error)

    def _advanced(self) -> None:
        leader = self.observer.leader
        controller = (leader.endpoint if leader else None, len(self.observer.voters))
        concerned = self.view.take_concerned()
        if controller != self._controller:
            self._controller = controller
            concerned = tuple(self._members)
        for broker_id in concerned:
            if member := self._members.get(broker_id):
                member.advanced()


class Membership:
    """One broker's part of a shared replication, in the place of a `Replication` of its own."""

    __slots__ = ("_shared", "advanced", "broker_id", "failed")

    def __init__(
        self,
        shared: SharedReplication,
        broker_id: int,
        advanced: Callable[[], None],
        failed: Callable[[Exception], None],
    ) -> None:
        self._shared = shared
        self.broker_id = broker_id
        self.advanced = advanced
        self.failed = failed

    @property
    def fetches(self) -> int:
        """Answers that the shared replication took in."""
        return self._shared.replication.fetches

    @property
    def note(self) -> str:
        """Why the last answer was of no use, empty when it was."""
        return self._shared.replication.note

    async def run(self) -> None:
        """Hear of the log from now on, and of what is in it already. Raises what ended the shared one."""
        if self._shared.fault is not None:
            raise self._shared.fault
        self._shared._members[self.broker_id] = self
        self.advanced()

    async def close(self) -> None:
        """Hear no more."""
        if self._shared._members.get(self.broker_id) is self:
            del self._shared._members[self.broker_id]
