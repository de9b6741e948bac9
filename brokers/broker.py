"""One simulated broker on sockets, as its user sees it: a node, its shell and its listener.

The rules are in `brokers.node` and the components below it; the client side is in `listener` and `apis`.
"""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import random
from collections import Counter
from collections.abc import Callable
from types import TracebackType
from typing import Any, Final, Self

from mockraft.brokers import lifecycle
from mockraft.brokers.config import BrokerConfig, draw_config
from mockraft.brokers.lifecycle import BrokerState, End
from mockraft.brokers.listener.client_listener import ClientListener
from mockraft.brokers.listener.clients import Limits
from mockraft.brokers.log_dir_access import LogDirAccess
from mockraft.brokers.log_dirs.logs import Logs
from mockraft.brokers.metadata.shared_replication import SharedReplication
from mockraft.brokers.node import BrokerNode
from mockraft.brokers.shell.shell import Shell
from mockraft.brokers.shell.socket_links import Outage, SocketLinks
from mockraft.kafka_api.listener import Observed
from mockraft.wire.connection import endpoint_of

_SPELLED: Final = {"NotSentError": "no answer of a controller"}
DENIALS_MAX: Final = 3
"""Failed logins, or new connections closed at once, in a row that end a wait; the broker goes on, as Kafka's do."""


class SimulatedBroker(LogDirAccess):
    """A broker that registers, replicates the metadata log, sends heartbeats and shuts down; see `BrokerConfig`.

    It replicates the log itself, or shares it with other brokers when a `shared` replication is given. `node` is the
    broker without its sockets. `changed` is set after each of its steps, `stopped` at its end.
    """

    def __init__(
        self, config: BrokerConfig, shared: SharedReplication | None = None, *, outage: Outage | None = None
    ) -> None:
        self.node = BrokerNode(config, shared)
        links = functools.partial(
            SocketLinks,
            security=config.security,
            messages=config.messages,
            outage=outage,
            peer_security=config.listener_security.client_security,
        )
        self.shell = Shell(self.node.kernel, links)
        node = self.node
        self.view, self.image, self.observer, self.replication = node.view, node.image, node.observer, node.replication
        self.directories, self.replicas, self.movers = node.directories, node.replicas, node.movers
        self.listener: ClientListener | None = None
        if config.serve_clients:
            limits, security = Limits.of(config.properties), config.listener_security
            feed = self.shell.feed
            self.listener = ClientListener(config.listeners, feed, limits, security, lambda: node.clients)
            self.shell.on_state = self.listener.state_changed
            self.shell.on_client = self.listener.carry_out
        self.changed = self.shell.changed
        self.stopped = self.shell.stopped
        self._closing = asyncio.Lock()

    def observe(self, observed: Observed) -> None:
        """Let a test see and script what clients ask, and break their connections; before it starts."""
        self.node.observed = observed
        if self.listener is not None and observed.links is not None:
            self.listener.disturb(observed.links)

    @classmethod
    def joining(
        cls, bootstrap: str, cluster_id: str, broker_id: int, *, seed: int | None = None, **options: Any
    ) -> Self:
        """A broker for the controllers at `bootstrap`; options are those of `draw_config`.

        `bootstrap` is host:port, or several with commas between, else ValueError.

        async with SimulatedBroker.joining(controller.bootstrap, controller.cluster_id, 1) as broker:
            await broker.wait_until(BrokerState.RUNNING)
        """
        addresses = tuple(map(endpoint_of, bootstrap.split(",")))
        return cls(draw_config(broker_id, cluster_id, addresses, random.Random(seed), **options))

    async def __aenter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.shut_down(self.config.session_timeout_ms)

    @property
    def config(self) -> BrokerConfig:
        """The broker's configuration, with the bound ports once it has started."""
        return self.node.config

    @property
    def bootstrap_servers(self) -> str:
        """The address for clients, host:port. Raises RuntimeError for a broker that serves no clients."""
        if self.listener is None:
            raise RuntimeError(
                f"broker {self.config.broker_id} does not serve clients: start it with serve_clients=True"
            )
        return self.listener.bootstrap

    @property
    def logs(self) -> Logs:
        """The logs of its replicas."""
        self.node.directories.make_logs()
        return self.node.logs

    @property
    def life(self) -> lifecycle.Lifecycle:
        """Its life towards the controller: broker epoch, failed directories, …"""
        return self.node.life

    @property
    def state(self) -> BrokerState:
        """The current state of the broker's lifecycle."""
        return self.node.life.state

    @property
    def heartbeats(self) -> int:
        """Number of heartbeats that were answered with error 0."""
        return self.node.heart.answered

    @property
    def refusals(self) -> Counter[str]:
        """Number of refused requests by error name."""
        return self.node.refusals

    @property
    def end(self) -> End | None:
        """Why it is over; None while it is not."""
        return self.node.end

    @property
    def end_reason(self) -> str:
        """Why it is over, for people; empty while it is not."""
        return self.node.end_reason

    @property
    def fault(self) -> str | None:
        """The fatal answer that ended it, if any."""
        return self.node.fault

    def start(self) -> None:
        """Start: find the controller, fetch, register. Needs a running event loop."""
        if self.listener is not None:
            self.listener.bind()
            self.node.config = dataclasses.replace(self.config, listeners=self.listener.listeners)
        self.shell.perform(self.node.start(self.shell.now_ms()))

    async def wait_until(self, state: BrokerState, timeout_ms: int = 30_000) -> None:
        """Wait until the broker is in `state`. Raises TimeoutError, RuntimeError when it stopped or cannot log in.

        RUNNING is complete once the broker's own metadata has it unfenced: before, clients find no broker there.
        """
        if not isinstance(state, BrokerState):
            raise TypeError(f"state={state!r}: it must be a BrokerState, such as BrokerState.RUNNING")
        await self._wait(lambda: self._is_in(state), state.name, timeout_ms)

    async def wait_until_registered(self, timeout_ms: int = 30_000) -> None:
        """Wait until the controller has accepted a registration. Raises as `wait_until`."""
        await self._wait(lambda: self.life.registered, "registered", timeout_ms)

    async def _wait(self, condition: Callable[[], bool], wanted: str, timeout_ms: int) -> None:
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await self.shell.until(lambda: condition() or self.stopped.is_set() or self._is_denied())
        except TimeoutError:
            refused = {_SPELLED.get(name, name): count for name, count in self.refusals.items()}
            problems = [self.node.replication.note, *(f"{count}x {name}" for name, count in refused.items())]
            raise TimeoutError(
                f"broker {self.config.broker_id} is {self.state.name}, not {wanted}, after {timeout_ms} ms; "
                f"problems: {', '.join(filter(None, problems)) or 'none'}"
            ) from None
        if condition():
            return
        if self._is_denied():
            about = "give it security=, or client_security= to its controller"
            raise RuntimeError(
                f"broker {self.config.broker_id} cannot log in to its controller: {self.node.replication.note}; {about}"
            )
        raise RuntimeError(f"broker {self.config.broker_id} stopped: {self.end_reason}")

    def _is_denied(self) -> bool:
        replication = self.node.replication
        # A test may itself close the connections of the brokers it observes, which have their controller's security.
        is_mismatch = self.node.observed is None and replication.mismatches >= DENIALS_MAX
        return replication.denials >= DENIALS_MAX or is_mismatch

    def _is_in(self, state: BrokerState) -> bool:
        image = self.node.image
        if self.state is not state or state is not BrokerState.RUNNING or image is None:
            return self.state is state
        registered = image.brokers.get(self.config.broker_id)
        return registered is not None and not registered.fenced

    async def shut_down(self, timeout_ms: int = 300_000) -> None:
        """Shut down in a controlled way: wait for the controller's permission, at most `timeout_ms`, then stop."""
        self.happen(lifecycle.ShutdownWanted())
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await self.stopped.wait()
        except TimeoutError:
            self.happen(lifecycle.Stopped(End.IMPATIENT))
        await self.close()

    async def kill(self) -> None:
        """Stop at once without notifying the controller, as kill -9 does."""
        self.happen(lifecycle.Stopped())
        await self.close()

    async def close(self) -> None:
        """Close every connection and the logs. The broker must have been stopped."""
        async with self._closing:
            if self.listener is not None:
                await self.listener.close()
            self.node.close()
            await self.shell.close()

    async def wait_stopped(self) -> None:
        """Wait until the broker has stopped, then release its resources."""
        await self.stopped.wait()
        await self.close()

    def freeze(self) -> None:
        """Send no registration and no heartbeat until :meth:`thaw`, as a hanging process; connections stay open."""
        self.node.heart.freeze()

    def thaw(self) -> None:
        """Resume after :meth:`freeze` and send what was due meanwhile."""
        self.node.heart.thaw()
        self.shell.flush()

    def disconnect(self) -> None:
        """Cut the connection to the controller, as a network failure does; the next request opens a new one."""
        self.node.heart.channel.break_off()
        self.shell.flush()

    def happen(self, event: lifecycle.Event) -> None:
        """Feed one event to the lifecycle and carry out its orders."""
        self.node.happen(event)
        self.shell.flush()
