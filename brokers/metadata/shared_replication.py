"""One replica of the metadata log that many simulated brokers of a process read together.

Each of N real brokers fetches every record of the others: 2·N·N records for a starting fleet, 2·10⁸ for ten thousand.
Sharing one observer leaves N registrations and heartbeats, which is the load of a large cluster on a controller. This
differs from Kafka: the controller sees one reader without a replica id (-1) instead of N observers.

Brokers that serve clients share one image, too. Records that concern a broker reach it at once. The others are told a
moment later, all together: a little of their work, such as markers of transactions, waits for changes elsewhere.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from mockraft.brokers.config import BrokerConfig
from mockraft.brokers.image import ClusterImage
from mockraft.brokers.kernel import Kernel
from mockraft.brokers.metadata.observer import Endpoint, Observer
from mockraft.brokers.metadata.replication import Replication, decoder
from mockraft.brokers.metadata.shared_view import RegistrationChanged, SharedView
from mockraft.brokers.partitions.replicas import Neighbours

NOBODY = -1
"""The replica id of a reader that is no replica (Kafka's LeaderState ignores its fetches)."""

NOTIFY_ALL_AFTER_MS = 200
"""Rare enough that a thousand brokers take a tenth of the time."""

_log = logging.getLogger(__name__)


class SharedReplication:
    """Replicates for the brokers with these ids; a shell runs its `kernel`, and then calls `replication.start`.

    `config` gives the controllers, and if the brokers serve clients; its ids are unused. `on_change` is notified of
    changed registrations. An error that would end a real broker's process ends all sharing brokers: `fault` is that
    error.
    """

    def __init__(
        self, config: BrokerConfig, broker_ids: Iterable[int], on_change: RegistrationChanged | None = None
    ) -> None:
        self.view = SharedView(broker_ids, on_change)
        self.image = ClusterImage() if config.serve_clients else None
        self.neighbours = Neighbours(self.view.views)
        self.observer = Observer(
            NOBODY,
            config.cluster_id,
            config.metadata_directory_id,
            self.view,
            config.controller_listener_name,
            decoder(config),
        )
        self.observer.image = self.image
        self.fault: Exception | None = None
        self.kernel = Kernel(self._failed)
        self.replication = Replication(self.kernel, config, self.observer, self._advanced, "fleet")
        self._members: dict[int, Membership] = {}
        self._controller: tuple[Endpoint | None, int] = (None, -1)
        self._notified_version = 0
        self._will_notify_all = False

    def member(self, broker_id: int, advanced: Callable[[], None], failed: Callable[[Exception], None]) -> Membership:
        """Return the replication of one broker, which is notified of its records as if it fetched for itself."""
        return Membership(self, broker_id, advanced, failed)

    def _failed(self, error: Exception) -> None:
        _log.error("the shared metadata log: fatal: %s", error)
        self.fault = error
        self.kernel.stop()
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
        if self.image is not None and self.image.version != self._notified_version and not self._will_notify_all:
            self._will_notify_all = True
            self.kernel.after("notify all", NOTIFY_ALL_AFTER_MS, self._notify_all)

    def _notify_all(self) -> None:
        assert self.image is not None
        self._will_notify_all, self._notified_version = False, self.image.version
        for member in list(self._members.values()):
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
        """Number of responses that the shared replication processed."""
        return self._shared.replication.fetches

    @property
    def denials(self) -> int:
        """Number of failed logins since the last response."""
        return self._shared.replication.denials

    @property
    def mismatches(self) -> int:
        """Number of new connections that were closed at once, before any response."""
        return self._shared.replication.mismatches

    @property
    def note(self) -> str:
        """The reason why the last response was not useful, empty when it was."""
        return self._shared.replication.note

    def start(self) -> None:
        """Subscribe to the log, including what is in it already. Raises the error that ended the shared replication."""
        if self._shared.fault is not None:
            raise self._shared.fault
        self._shared._members[self.broker_id] = self
        self.advanced()

    def close(self) -> None:
        """Unsubscribe."""
        if self._shared._members.get(self.broker_id) is self:
            del self._shared._members[self.broker_id]
