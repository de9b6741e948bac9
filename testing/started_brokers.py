"""The simulated brokers that a controller or quorum in a test has started.

They run by the controller's clock, and many share one log.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, Literal, TypeVar

from mockraft.brokers.config import BrokerConfig
from mockraft.brokers.disks.memory_disk import MemoryDisk
from mockraft.brokers.fleet.shared_log import SharedLog, shared_log
from mockraft.brokers.lifecycle import BrokerState
from mockraft.brokers.listener.client_listener import ClientListener
from mockraft.brokers.shell.shell import Shell
from mockraft.kafka_api.clock import VirtualClock
from mockraft.server.config import ControllerConfig
from mockraft.server.double import Double
from mockraft.testing.broker import SimulatedBroker
from mockraft.testing.memory_network import MemoryNetwork
from mockraft.testing.options import BrokerOptions
from mockraft.wire import messages

T = TypeVar("T")

VIRTUAL_STEP_MS: Final = 10
"""Step of a virtual clock while brokers start and leave."""

BROKER_PATIENCE_S: Final = 30.0
"""Time that `start_broker` waits for a broker; of many brokers each adds PATIENCE_OF_EACH_S."""

PATIENCE_OF_EACH_S: Final = 0.1

Wait = Literal["registered", "running"] | None


class Brokers(dict[int, SimulatedBroker]):
    """The brokers by id; the error for an unknown id names those that there are."""

    def __missing__(self, broker_id: int) -> SimulatedBroker:
        raise KeyError(f"no broker {broker_id}: there are {sorted(self)}")


class StartedBrokers:
    """Brokers of a controller or quorum by id; `rng` is for their ids.

    They log in to the controller, and clients and other brokers to them, as `config` says.
    """

    def __init__(self, double: Double, rng: random.Random, config: ControllerConfig) -> None:
        self.by_id = Brokers()
        self.double = double
        self.rng = rng
        self.cluster_id = config.cluster_id
        self._is_kept = config.data_dir is not None
        security = config.listener_security
        self.security: BrokerOptions = {
            "security": security.client_security,
            "listener_security": security,
            "authorizer": config.authorizer_of(),
        }
        self._network: MemoryNetwork | None = None
        self._log: SharedLog | None = None

    @property
    def addresses(self) -> tuple[tuple[str, int], ...]:
        """Host and port of every controller that runs."""
        nodes = self.double.nodes().values()
        return tuple((each.config.voter_host, each.config.voter_port) for each in nodes)

    async def start(
        self,
        configs: Sequence[BrokerConfig],
        others: Iterable[int] = (),
        before: Callable[[Iterable[SimulatedBroker]], object] = list,
    ) -> None:
        """Start brokers together and wait until they run; `others` may start later. `before` is called with them."""
        if self._log is None and (log := shared_log(configs, others)) is not None:
            self._log = log
            if not _needs_sockets(configs[0]):
                self._share_time_with(log.shell)
            log.start()
        with _collector_paused(self._log is not None):
            brokers = [self.made(config) for config in configs]
            before(brokers)
            for broker in brokers:
                self._begin(broker)
            timeout_ms = round((BROKER_PATIENCE_S + PATIENCE_OF_EACH_S * len(brokers)) * 1000)
            waits = [broker.wait_until(BrokerState.RUNNING, timeout_ms) for broker in brokers]
            await self._let_time_pass(asyncio.gather(*waits))

    def made(self, config: BrokerConfig) -> SimulatedBroker:
        """Return a broker with this config, not started, that shares the log if it was started with many."""
        shares = self._log is not None and self._log.takes(config)
        broker = SimulatedBroker(config, self._log if shares else None)
        broker.observe(self.double.observe_broker(config.broker_id))
        return broker

    async def run(self, config: BrokerConfig, wait: Wait, timeout_s: float = BROKER_PATIENCE_S) -> SimulatedBroker:
        """Start a broker; return it once it is registered, or runs. RuntimeError if one of this id runs already."""
        before = self.by_id.get(config.broker_id)
        if before is not None and not before.stopped.is_set():
            raise RuntimeError(f"broker {config.broker_id} runs already")
        broker = self.made(config)
        self._begin(broker)
        timeout_ms = round(timeout_s * 1000)
        if wait == "registered":
            await self._let_time_pass(asyncio.ensure_future(broker.wait_until_registered(timeout_ms)))
        elif wait == "running":
            await self._let_time_pass(asyncio.ensure_future(broker.wait_until(BrokerState.RUNNING, timeout_ms)))
        return broker

    def _begin(self, broker: SimulatedBroker) -> None:
        self.by_id[broker.config.broker_id] = broker
        if not _needs_sockets(broker.config):
            self._share_time_with(broker.shell, broker.listener)
        broker.start()
        if self._network is not None:
            self._network.listen(broker)

    async def leave(self, *, is_orderly: bool = True) -> None:
        """End all: in order if files stay, else killed, which waits for no leader to move and no timer."""
        brokers = [*self.by_id.values()]
        on_disk = any(each.config.open_disk is not MemoryDisk for each in brokers)
        leaves_files = on_disk or self._is_kept
        try:
            if self._log is not None or not is_orderly or not leaves_files:
                await asyncio.gather(*(each.kill() for each in brokers))
                if self._log is not None:
                    await self._log.close()
                    gc.unfreeze()
            else:
                leaving = asyncio.gather(*(each.shut_down(self._patience_ms(each)) for each in brokers))
                await self._let_time_pass(leaving)
        finally:
            self.by_id.clear()
            self._log = None

    def _patience_ms(self, broker: SimulatedBroker) -> int:
        """Return the time to wait for a broker's controlled shutdown: 0 for one that is not registered any more."""
        running = self.double.leading
        registered = running.controller.image.cluster.brokers.get(broker.config.broker_id)
        known = registered is not None and registered.broker_epoch == broker.life.broker_epoch
        return running.config.session_timeout_ms if known else 0

    def _share_time_with(self, shell: Shell, listener: ClientListener | None = None) -> None:
        """Move a shell and a listener by the controller's virtual clock, if it has one, and connect it in memory."""
        if (clock := self._shared_clock) is not None:
            running = self.double.leading
            self._network = self._network or MemoryNetwork()
            self._network.listeners[running.config.voter_host, running.config.voter_port] = running.listener.accept
            shell.move(clock, self._network.links)
            if listener is not None:
                listener.move(clock)

    @property
    def _shared_clock(self) -> VirtualClock | None:
        """The virtual clock of the controller, if it has one."""
        clock = self.double.clock
        return clock if isinstance(clock, VirtualClock) else None

    async def _let_time_pass(self, work: asyncio.Future[T]) -> T:
        """Wait for brokers; a virtual clock moves meanwhile, as nobody else can move it."""
        clock = self._shared_clock
        try:
            while clock is not None and not work.done():
                clock.advance(VIRTUAL_STEP_MS)
                await asyncio.sleep(0)
            return await work
        finally:
            work.cancel()  # where the caller does not wait any longer


@contextlib.contextmanager
def _collector_paused(is_worth_it: bool) -> Iterator[None]:
    """Keep the garbage collector from looking at a million objects, all of which stay, now and until they leave."""
    pauses = is_worth_it and gc.isenabled()
    if pauses:
        gc.disable()
    try:
        yield
    finally:
        if pauses:
            gc.freeze()
            gc.enable()


def _needs_sockets(config: BrokerConfig) -> bool:
    """Return True for a broker with TLS, SASL or the messages of a proposal; then it has the machine's time, too."""
    return config.security is not None or config.messages is not messages
