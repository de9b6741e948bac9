"""One simulated broker: the asyncio side around lifecycle, observer and assignments.

To a controller it looks like a Kafka 4.3.1 broker: the same connections with the same client ids, the same requests in
the same order and at the same intervals. The client side is in `listener` and `apis`.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any, Self

from mockraft.brokers import lifecycle
from mockraft.brokers.channel import ControllerChannel, NotSentError
from mockraft.brokers.client_view import view_of
from mockraft.brokers.component import Component
from mockraft.brokers.config import BrokerConfig, draw_config, endpoint_of, registration_of
from mockraft.brokers.directories import DIRECTORIES_FROM, Directories
from mockraft.brokers.directory_view import DirectoryViews
from mockraft.brokers.disk_faults import DiskFaults
from mockraft.brokers.forwarding import Forwarding
from mockraft.brokers.heartbeats import Heartbeats
from mockraft.brokers.image import ClusterImage
from mockraft.brokers.lifecycle import BrokerState, End, Event, Lifecycle, Orders, Send
from mockraft.brokers.listener.client_listener import ClientListener
from mockraft.brokers.metadata.metadata_view import MetadataView
from mockraft.brokers.metadata.observer import Endpoint, FatalError, Observer
from mockraft.brokers.metadata.replication import Replication, decoder
from mockraft.brokers.metadata.shared_replication import Membership, SharedReplication
from mockraft.brokers.moves.movers import Movers
from mockraft.brokers.moves.replica_moves import ReplicaMoves
from mockraft.brokers.partitions.replicas import Replicas
from mockraft.brokers.storage import Storage, logs_of
from mockraft.serving.directory_ids import in_java_order
from mockraft.wire import client, error_codes
from mockraft.wire.errors import WireError
from mockraft.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from mockraft.wire.messages.broker_registration_request import BrokerRegistrationRequest

CORDONED_FROM = 30

_log = logging.getLogger(__name__)


class SimulatedBroker(DirectoryViews, DiskFaults, ReplicaMoves):
    """A broker that registers, replicates the metadata log, sends heartbeats and shuts down; see `BrokerConfig`.

    It replicates the log itself, or shares it with other brokers when a `shared` replication is given. `end` and
    `fault` give the reason for its end and the fatal answer, if any. `refusals` counts refused requests by error name,
    `heartbeats` the successful heartbeats.
    """

    def __init__(self, config: BrokerConfig, shared: SharedReplication | None = None) -> None:
        self.config = config
        self.image = ClusterImage() if config.serve_clients else None
        self.view: MetadataView
        self.replication: Replication | Membership
        if shared is not None:
            assert self.image is None, "a broker that serves clients replicates for itself"
            self.view, self.observer = shared.view.views[config.broker_id], shared.observer
            self.replication = shared.member(config.broker_id, self._metadata_advanced, self.failed)
        else:
            self.view = MetadataView(config.broker_id)
            self.observer = Observer(
                config.broker_id,
                config.cluster_id,
                config.metadata_directory_id,
                self.view,
                config.controller_listener_name,
                decoder(config),
                self.image,
            )
            self.replication = Replication(config, self.observer, self._metadata_advanced)
        self.life = Lifecycle(heartbeat_interval_ms=config.heartbeat_interval_ms)
        self.fault: str | None = None
        self.end: End | None = None
        self.refusals: Counter[str] = Counter()
        client_id = str(config.broker_id)
        speaks = (config.security, config.messages, None if shared is None else shared.outage)
        # Half a session, so that there is time to switch from a stuck controller to another (KAFKA-14392).
        self._channel = ControllerChannel(client_id, self.controller, config.session_timeout_ms // 2, *speaks)
        self.heart = Heartbeats(self, self._channel)
        self._frozen = False
        self._held_back: Send | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self.changed = asyncio.Event()
        self.stopped = asyncio.Event()
        self._closing = asyncio.Lock()
        self.logs = logs_of(config)
        self.storage = Storage(self)
        self.directories = Directories(self)
        self.replicas = Replicas(self, self.image) if self.image else None
        self.movers = Movers(self)
        serves = config.serve_clients
        forwarding = Forwarding(config, self.controller, self.start_task, self.clients_changed) if serves else None
        self.forwarding = forwarding
        self.listener = ClientListener(self, lambda: view_of(self)) if serves else None
        components = (self.storage, self.directories, self.replicas, self.movers, self.forwarding, self.listener)
        self.components: list[Component] = [component for component in components if component is not None]

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
    def bootstrap_servers(self) -> str:
        """The address for clients, host:port. Raises RuntimeError for a broker that serves no clients."""
        if self.listener is None:
            raise RuntimeError(
                f"broker {self.config.broker_id} does not serve clients: start it with serve_clients=True"
            )
        return self.listener.bootstrap

    @property
    def state(self) -> BrokerState:
        """The current state of the broker's lifecycle."""
        return self.life.state

    @property
    def heartbeats(self) -> int:
        """Number of heartbeats that were answered with error 0."""
        return self.heart.answered

    @property
    def end_reason(self) -> str:
        """Why it is over, for people; empty while it is not."""
        return "" if self.end is None else self.fault or self.end.value

    def controller(self) -> Endpoint | None:
        """The endpoint for heartbeats: the leader's, looked up in the voter set as Kafka's RaftControllerNodeProvider
        does.

        Without voters in the log (kraft.version 0) it is the endpoint that the leader reports, as if
        controller.quorum.voters were configured.
        """
        leader = self.observer.leader
        if leader is None:
            return None
        if not self.observer.voters:
            return leader.endpoint if self.observer.high_watermark > 0 else None
        return self.observer.voters.get(leader.node_id, {}).get(self.config.controller_listener_name)

    def start(self) -> None:
        """Start: find the controller, fetch, register. Needs a running event loop."""
        for component in self.components:
            component.start()
        self.start_task(self.replication.run)
        timeout_ms = self.config.registration_timeout_ms
        self.set_timer("registration", timeout_ms, self.happen, lifecycle.RegistrationTimedOut())
        self.happen(lifecycle.Started())

    async def wait_until(self, state: BrokerState, timeout_ms: int = 30_000) -> None:
        """Wait until the broker is in `state`. Raises TimeoutError, RuntimeError when it stopped before."""
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                while self.state is not state:
                    if self.stopped.is_set():
                        raise RuntimeError(f"broker {self.config.broker_id} stopped: {self.end_reason}")
                    self.changed.clear()
                    await self.changed.wait()
        except TimeoutError:
            problems = [self.replication.note, *(f"{count}x {name}" for name, count in self.refusals.items())]
            raise TimeoutError(
                f"broker {self.config.broker_id} is {self.state.name}, not {state.name}, after {timeout_ms} ms; "
                f"problems: {', '.join(filter(None, problems)) or 'none'}"
            ) from None

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
        """Wait for every task and close every connection. The broker must have been stopped."""
        async with self._closing:
            current = asyncio.current_task()
            tasks = [task for task in self._tasks if task is not current]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            # Only once: later the directories may belong to a successor of this broker.
            components, self.components = self.components, []
            # The logs are closed last, as in Kafka: the other components may still write.
            for component in reversed(components):
                await component.close()
            await self._channel.close()
            await self.replication.close()

    async def wait_stopped(self) -> None:
        """Wait until the broker has stopped, then release its resources."""
        await self.stopped.wait()
        await self.close()

    def freeze(self) -> None:
        """Send no registration and no heartbeat until :meth:`thaw`, as a hanging process; connections stay open."""
        self._frozen = True

    def thaw(self) -> None:
        """Resume after :meth:`freeze` and send what was due meanwhile."""
        self._frozen = False
        held, self._held_back = self._held_back, None
        self._carry_out(Orders(send=held))

    def disconnect(self) -> None:
        """Cut the connection to the controller, as a network failure does; the next request opens a new one."""
        self._channel.break_off()

    def happen(self, event: Event) -> None:
        """Feed one event to the lifecycle and carry out its orders."""
        before = self.life.state
        self.life, orders = lifecycle.step(self.life, event)
        if self.life.state is not before:
            _log.info("broker %d: %s -> %s", self.config.broker_id, before.name, self.life.state.name)
            for component in self.components:
                component.state_changed(self.life.state)
            if self.life.state is BrokerState.RECOVERY:
                self.start_task(self._recover)
        self._carry_out(orders)
        self.changed.set()

    def _carry_out(self, orders: Orders) -> None:
        if self._frozen:
            self._held_back = orders.send or self._held_back
        elif orders.send is Send.REGISTRATION:
            self.start_task(self._register)
        elif orders.send is Send.HEARTBEAT:
            self.heart.send()
        if orders.wait_ms is not None:
            self.set_timer("communication", orders.wait_ms, self.happen, lifecycle.Due())
        if orders.stop is not None:
            self.end = orders.stop
            for timer in self._timers.values():
                timer.cancel()
            self.stopped.set()
            current = asyncio.current_task()
            for task in self._tasks:
                if task is not current:
                    task.cancel()

    def clients_changed(self) -> None:
        """Retry the parked requests of clients: something that they may wait for has changed."""
        if self.listener is not None:
            self.listener.changed()

    def set_timer(self, name: str, wait_ms: float, call: Callable[..., None], argument: object) -> None:
        """Set a timer; it replaces the earlier timer with this name."""
        if name in self._timers:
            self._timers[name].cancel()
        self._timers[name] = asyncio.get_running_loop().call_later(wait_ms / 1000, call, argument)

    def start_task(self, work: Callable[[], Awaitable[None]]) -> None:
        """Run a task of this broker until it finishes or the broker stops."""
        task = asyncio.get_running_loop().create_task(self._guarded(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _guarded(self, work: Callable[[], Awaitable[None]]) -> None:
        """Run a task; an error that would end a real broker's process ends this broker only."""
        try:
            await work()
        except (FatalError, WireError) as error:
            self.failed(error)
        except Exception as defect:
            # A broker that continued without one of its tasks would make test results meaningless.
            _log.exception("broker %d: a defect of mockraft", self.config.broker_id)
            self.failed(FatalError(f"a defect of mockraft: {defect!r}"))

    def failed(self, error: Exception) -> None:
        """Stop as a real broker's process would on this error."""
        self.fault = str(error)
        if isinstance(error, WireError):
            addresses = ", ".join(f"{host}:{port}" for host, port in self.config.bootstrap)
            self.fault = f"a response that no Kafka controller sends: {error}; is a KRaft controller at {addresses}?"
        _log.error("broker %d: fatal: %s", self.config.broker_id, self.fault)
        self.happen(lifecycle.Stopped(End.FATAL))

    # Registration and heartbeats.

    async def _register(self) -> None:
        def make(connection: client.KafkaConnection) -> BrokerRegistrationRequest:
            version = connection.version_for(BrokerRegistrationRequest)
            return registration_of(self.config, version, self.life.cordoned_dirs)

        response = await self.send_lifecycle(self._channel, make)
        if response is not None:
            self.happen(lifecycle.Registered(response.broker_epoch))

    def heartbeat(self) -> BrokerHeartbeatRequest:
        """Return the heartbeat for the current state."""
        life = self.life
        tells_cordoned = life.caught_up and self.view.metadata_version >= CORDONED_FROM
        return BrokerHeartbeatRequest(
            broker_id=self.config.broker_id,
            broker_epoch=life.broker_epoch,
            current_metadata_offset=self.observer.applied_offset,
            want_fence=life.want_fence,
            want_shut_down=life.want_shut_down,
            offline_log_dirs=list(life.offline_dirs),
            cordoned_log_dirs=in_java_order(life.cordoned_dirs) if tells_cordoned else None,
        )

    async def send_lifecycle(self, channel: ControllerChannel, make: Any) -> Any | None:
        """Send one lifecycle request; return None when it was refused or not answered (the lifecycle is
        informed then).
        """
        try:
            response = await channel.send(make)
        except (NotSentError, client.UnsupportedVersionError) as error:
            self.not_answered(error)
            return None
        return self.accepted(response)

    def not_answered(self, error: Exception) -> None:
        """Give up a lifecycle request."""
        self.refusals[type(error).__name__] += 1
        self.happen(lifecycle.NotAnswered(str(error)))

    def accepted(self, response: Any) -> Any | None:
        """Return the response to a lifecycle request; None when it is a refusal (the lifecycle is informed then)."""
        if response.error_code == error_codes.NONE:
            return response
        name = error_codes.name(response.error_code)
        self.refusals[name] += 1
        _log.warning("broker %d: %s: %s", self.config.broker_id, type(response).__name__, name)
        self.happen(lifecycle.Refused(response.error_code))
        return None

    async def _recover(self) -> None:
        """Continue once the replicas are placed; with KIP-858's text, once the controller knows their directories."""
        await asyncio.sleep(self.config.recovery_ms / 1000)
        while self.directories.waiting or (self.config.fenced_until_assigned and self.directories.assignments.queued):
            self.changed.clear()
            await self.changed.wait()
        self.happen(lifecycle.ReadyToUnfence())

    def _metadata_advanced(self) -> None:
        self._channel.controller_moved()
        for component in self.components:
            component.metadata_advanced()
        registration = self.view.registration
        if (
            registration is not None
            and registration.broker_epoch == self.life.broker_epoch
            and not registration.log_dirs
            and self.view.metadata_version >= DIRECTORIES_FROM
        ):
            # Kafka's BrokerRegistrationTracker: the registration was made before directories were known.
            self.happen(lifecycle.RegisterAgain())
        self.changed.set()
