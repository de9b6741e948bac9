"""Several simulated brokers in this process, and the lookup of the cluster id that is needed to start them."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Mapping, Sequence
from typing import Any

from mockraft.brokers import lifecycle
from mockraft.brokers.broker import SimulatedBroker
from mockraft.brokers.config import BrokerConfig, draw_config
from mockraft.brokers.fleet.shared_log import shared_log
from mockraft.brokers.lifecycle import BrokerState
from mockraft.wire import client, error_codes
from mockraft.wire.client_security import ClientSecurity
from mockraft.wire.connection import CONTROLLER_ENDPOINTS
from mockraft.wire.messages.describe_cluster_request import DescribeClusterRequest

_TIMEOUT_MS = 5_000
_LOG_DIRS = 2
_STARTED_AT_ONCE = 16
"""Then the event loop goes on, in which a quorum may be that loses its leader when nothing is sent for two seconds."""


class Fleet:
    """Brokers that were started together, in the order of their ids. Many share one replica of the metadata log."""

    def __init__(self, configs: Sequence[BrokerConfig]) -> None:
        self._log = shared_log(configs)
        self.brokers = [SimulatedBroker(config, self._log) for config in configs]

    async def start(self) -> None:
        """Start all; registration continues in the background. Raises ListenerError when a port is not available."""
        if self._log is not None:
            self._log.start()
        try:
            for number, broker in enumerate(self.brokers, 1):
                broker.start()
                if number % _STARTED_AT_ONCE == 0:
                    await asyncio.sleep(0)
        except BaseException:
            await asyncio.gather(*(broker.kill() for broker in self.brokers))
            await self._close()
            raise

    @property
    def bootstrap_servers(self) -> str:
        """The address list for clients, host:port,host:port. Raises RuntimeError when no broker serves any."""
        return ",".join(broker.bootstrap_servers for broker in self.brokers)

    async def wait_until(self, state: BrokerState, timeout_ms: int = 30_000) -> None:
        """Wait until all are in `state`. Raises TimeoutError, or RuntimeError when one stopped before."""
        await asyncio.gather(*(broker.wait_until(state, timeout_ms) for broker in self.brokers))

    async def shut_down(self, timeout_ms: int = 10_000) -> None:
        """Shut all down in a controlled way; a broker without permission after `timeout_ms` stops without it."""
        await asyncio.gather(*(broker.shut_down(timeout_ms) for broker in self.brokers))
        await self._close()

    async def _close(self) -> None:
        if self._log is not None:
            await self._log.close()

    async def leave(self, timeout_ms: int) -> None:
        """Shut all down as `shut_down`, but close nothing: the process ends, and takes the sockets along."""
        for broker in self.brokers:
            broker.happen(lifecycle.ShutdownWanted())
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_ms / 1000):
                for broker in self.brokers:
                    await broker.stopped.wait()
        for broker in self.brokers:
            if not broker.stopped.is_set():
                broker.happen(lifecycle.Stopped(lifecycle.End.IMPATIENT))
        if self._log is not None:
            self._log.kernel.stop()


async def start_brokers(
    bootstrap: Sequence[tuple[str, int]],
    cluster_id: str,
    racks: Mapping[int, str | None],
    *,
    rng: random.Random | None = None,
    client_port: int | None = None,
    **options: Any,
) -> Fleet:
    """Start a simulated broker for each id of `racks`; registration continues in the background.

    `bootstrap` are the controllers' (host, port). Ids are drawn from `rng`: the same seed gives the same brokers again.
    `client_port` is the client port of the first broker, the others use the following ports; 0 takes any free ports,
    None serves no clients. `options` are fields of `BrokerConfig`, and the number `log_dirs` of directories of each
    broker. Raises ListenerError when a port is not available.
    """
    drawn_from, log_dirs = rng or random.Random(), options.pop("log_dirs", _LOG_DIRS)
    configs = []
    for number, (broker_id, rack) in enumerate(racks.items()):
        config = draw_config(
            broker_id,
            cluster_id,
            tuple(bootstrap),
            drawn_from,
            log_dir_paths=tuple(f"/simulated/broker-{broker_id}/d{n}" for n in range(log_dirs)),
            rack=rack,
            serve_clients=client_port is not None,
            port=client_port + number if client_port else None,
            **options,
        )
        configs.append(config)
    fleet = Fleet(configs)
    await fleet.start()
    return fleet


async def fetch_cluster_id(bootstrap: tuple[str, int], security: ClientSecurity | None = None) -> str:
    """Request the cluster id from a controller (DescribeCluster with endpoint type 2, metadata.version 15 and above).

    Raises ConnectionError when no controller answers, LookupError when the controller refuses.
    """
    connection = await client.connect(*bootstrap, client_id="mockraft", security=security)
    try:
        response = await connection.send(
            DescribeClusterRequest(endpoint_type=CONTROLLER_ENDPOINTS), timeout_ms=_TIMEOUT_MS
        )
    finally:
        await connection.close()
    if response.error_code != error_codes.NONE:
        raise LookupError(f"the controller did not return its cluster id: {error_codes.name(response.error_code)}")
    return str(response.cluster_id)
