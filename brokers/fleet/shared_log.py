"""A shared replication on sockets, or over the connections that a test moves it to; and which brokers share one."""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable

from mockraft.brokers.config import BrokerConfig
from mockraft.brokers.disks.memory_disk import MemoryDisk
from mockraft.brokers.fleet.limits import OWN_REPLICATION_BROKERS_MAX
from mockraft.brokers.metadata.shared_replication import SharedReplication
from mockraft.brokers.metadata.shared_view import RegistrationChanged
from mockraft.brokers.shell.shell import Shell
from mockraft.brokers.shell.socket_links import Outage, SocketLinks


class SharedLog(SharedReplication):
    """A shared replication with its shell. `config` is that of any of the brokers."""

    def __init__(
        self,
        config: BrokerConfig,
        broker_ids: Iterable[int],
        on_change: RegistrationChanged | None = None,
        outage: Outage | None = None,
    ) -> None:
        super().__init__(config, broker_ids, on_change)
        self._config = config
        links = functools.partial(SocketLinks, security=config.security, messages=config.messages, outage=outage)
        self.shell = Shell(self.kernel, links)

    def start(self) -> None:
        """Begin to fetch. Needs a running event loop."""
        self.kernel.enter(self.replication.start)

    async def close(self) -> None:
        """Stop, and close every connection."""
        self.kernel.stop()
        await self.shell.close()

    def takes(self, config: BrokerConfig) -> bool:
        """Return True if a broker may share it: one of its ids, with empty disks, that connects as the others do.

        One that may not is no neighbour of the others any more.
        """
        own = self._config
        is_alike = (config.security, config.messages) == (own.security, own.messages)
        if config.broker_id in self.view.views and is_alike and config.open_disk is MemoryDisk:
            return True
        self.neighbours.broker_ids.discard(config.broker_id)
        return False


def shared_log(configs: Collection[BrokerConfig], others: Iterable[int] = ()) -> SharedLog | None:
    """Return the log that so many brokers share, and `others` that may start later; None for a few brokers."""
    if len(configs) <= OWN_REPLICATION_BROKERS_MAX:
        return None
    return SharedLog(next(iter(configs)), {*(each.broker_id for each in configs), *others})
