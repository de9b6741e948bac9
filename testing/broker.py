"""A simulated broker inside the test's own process, with asyncio or without."""

from __future__ import annotations

import os
import random
from typing import TYPE_CHECKING, Self, Unpack

from mockraft.brokers import broker
from mockraft.brokers.config import BrokerConfig, draw_config
from mockraft.brokers.config_on_disk import LogDirPaths, draw_config_on_disk
from mockraft.testing.facades import facade
from mockraft.testing.options import BrokerOptions
from mockraft.wire.connection import endpoint_of

if TYPE_CHECKING:
    from mockraft.testing.sync_types import SyncSimulatedBroker

__all__ = ["SimulatedBroker", "SyncSimulatedBroker"]


class SimulatedBroker(broker.SimulatedBroker):
    """A broker that registers, replicates the metadata log, heartbeats and shuts down; see `joining`.

    async with SimulatedBroker.joining(controller.bootstrap, controller.cluster_id, 1) as broker:
        await broker.wait_until(BrokerState.RUNNING)
    """

    @classmethod
    def joining(  # type: ignore[override]  # the keywords of BrokerOptions only, so that wrong ones are refused
        cls, bootstrap: str, cluster_id: str, broker_id: int, **options: Unpack[BrokerOptions]
    ) -> Self:
        """A broker for the controllers at `bootstrap`: host:port, or several with commas between, else ValueError.

        `log_dirs` are directories on the file system, each formatted unless it is already; with `format_missing` off
        they must be, as Kafka wants it. LogDirsError when they cannot be used. Without any it is all in memory.
        `metadata_log_dir` is the one without which it cannot live, the first unless given. Clients are served on
        `host` and `port`, any free one unless given; `serve_clients=False` for a broker that only its controller
        sees. Other options are those of `BrokerConfig` by name: `rack`, `session_timeout_ms`, …
        """
        return cls(cls.configured(bootstrap, cluster_id, broker_id, **options))

    @staticmethod
    def configured(bootstrap: str, cluster_id: str, broker_id: int, **options: Unpack[BrokerOptions]) -> BrokerConfig:
        """Return the config of `joining`."""
        options.setdefault("serve_clients", True)
        addresses = tuple(map(endpoint_of, bootstrap.split(",")))
        rng = random.Random(options.pop("seed", None))
        metadata_dir = options.pop("metadata_log_dir", None)
        paths = LogDirPaths(
            [os.fspath(path) for path in options.pop("log_dirs", ())],
            None if metadata_dir is None else os.fspath(metadata_dir),
            options.pop("format_missing", True),
        )
        if not paths.paths:
            return draw_config(
                broker_id, cluster_id, addresses, rng, metadata_log_dir=paths.metadata_log_dir, **options
            )
        return draw_config_on_disk(broker_id, cluster_id, addresses, rng, paths, **options)

    @property
    def broker_id(self) -> int:
        """Its node id."""
        return self.config.broker_id

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.config.broker_id}, {self.state.name}>"

    @classmethod
    def sync(
        cls, bootstrap: str, cluster_id: str, broker_id: int, **options: Unpack[BrokerOptions]
    ) -> SyncSimulatedBroker:
        """The same for a test without asyncio: `with SimulatedBroker.sync(…) as broker`; options as of `joining`."""
        return SyncSimulatedBroker(cls.joining(bootstrap, cluster_id, broker_id, **options))


if not TYPE_CHECKING:
    SyncSimulatedBroker = facade(SimulatedBroker, "SyncSimulatedBroker", blocks=True)
    facade(SimulatedBroker, "AwaitedSimulatedBroker", blocks=False)
