"""One simulated broker: the asyncio shell around lifecycle, observer and assignments.

Towards a controller it is a Kafka 4.3.1 broker: the same connections with the same client ids, the same requests in
the same order and rhythm. What it is towards its own clients is in `listener` and `apis`.
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
from mockraft.brokers.config import BrokerConfig, draw_config, endpoint_of, registration_of
from mockraft.brokers.consumer_groups import Groups
from mockraft.brokers.directories import DIRECTORIES_FROM, Directories
from mockraft.brokers.directory_view import DirectoryViews
from mockraft.brokers.disk_faults import DiskFaults
from mockraft.brokers.forwarding import Forwarding
from mockraft.brokers.heartbeats import Heartbeats
from mockraft.brokers.image import ClusterImage
from mockraft.brokers.lifecycle import BrokerState, End, Event, Lifecycle, Orders, Send
from mockraft.brokers.listener.client_listener import ClientListener
from mockraft.brokers.log_dirs.directory_ids import in_java_order
from mockraft.brokers.metadata_view import MetadataView
from mockraft.brokers.moves.movers import Movers
from mockraft.brokers.moves.replica_moves import ReplicaMoves
from mockraft.brokers.observer import Endpoint, FatalError, Observer
from mockraft.brokers.part import Part
from mockraft.brokers.partitions.replicas import Replicas
from mockraft.brokers.replication import Replication, decoder
from mockraft.brokers.shared_replication import Membership, SharedReplication
from mockraft.brokers.storage import Storage, logs_of
from mockraft.wire import client, error_codes
from mockraft.wire.errors import WireError
from mockraft.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from mockraft.wire.messages.broker_registration_request import BrokerRegistrationRequest

CORDONED_FROM = 30

_log = logging.getLogger(__name__)


class SimulatedBroker(DirectoryViews, DiskFaults, ReplicaMoves):
    """A broker that registers, replicates the metadata log, heartbeats and shuts down; see `BrokerConfig`.

    It replicates for itself, or with others when a `shared` replication is given.
    `end` says that and why it is over, `fault` which answer was fatal. `refusals` counts refused requests by error
    name, `heartbeats` the good answers to heartbeats.
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
        # Half a session, so that a stuck controller is left in time for another (KAFKA-14392).
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
        self.groups = Groups(config.properties) if self.image else None
        self.movers = Movers(self)
        self.forwarding = Forwarding(self) if config.serve_clients else None
        self.listener = ClientListener(self) if config.serve_clients else None
        parts = (self.storage, self.directories, self.replicas, self.movers, self.forwarding, self.listener)
        self.parts: list[Part] = [part for part in parts if part is not None]

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
        """Where clients find this broker, host:port. RuntimeError for a broker that serves none."""
        if self.listener is None:
            raise RuntimeError(f"broker {self.config.broker_id} serves no clients: start it with serve_clients=True")
        return self.listener.bootstrap

    @property
    def state(self) -> BrokerState:
        """Where the broker is in its life."""
        return self.life.state

    @property
    def heartbeats(self) -> int:
        """How many heartbeats were answered with error 0."""
        return self.heart.answered

    @property
    def epitaph(self) -> str:
        """Why it is over, for people; empty while it is not."""
        return "" if self.end is None else self.fault or self.end.value

    def controller(self) -> Endpoint | None:
        """Where heartbeats go: the leader, looked up in the voter set as Kafka's RaftControllerNodeProvider does.

        Without voters in the log (kraft.version 0) it is where the leader says it listens, as if
        controller.quorum.voters were configured.
        """
        leader = self.observer.leader
        if leader is None:
            return None
        if not self.observer.voters:
            return leader.endpoint if self.observer.high_watermark > 0 else None
        return self.observer.voters.get(leader.node_id, {}).get(self.config.controller_listener_name)

    def start(self) -> None:
        """Begin: find the controller, fetch, register. Needs a running loop."""
        for part in self.parts:
            part.start()
        self.start_task(self.replication.run)
        timeout_ms = self.config.registration_timeout_ms
        self.set_timer("registration", timeout_ms, self.happen, lifecycle.RegistrationTimedOut())
        self.happen(lifecycle.Started())

    async def wait_until(self, state: BrokerState, timeout_ms: int = 30_000) -> None:
        """Return once the broker is in `state`. Raises TimeoutError, RuntimeError when it stopped before."""
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                while self.state is not state:
                    if self.stopped.is_set():
                        raise RuntimeError(f"broker {self.config.broker_id} stopped: {self.epitaph}")
                    self.changed.clear()
                    await self.changed.wait()
        except TimeoutError:
            said = [self.replication.note, *(f"{count}x {name}" for name, count in self.refusals.items())]
            raise TimeoutError(
                f"broker {self.config.broker_id} is {self.state.name}, not {state.name}, after {timeout_ms} ms; "
                f"it heard: {', '.join(filter(None, said)) or 'nothing bad'}"
            ) from None

    async def shut_down(self, timeout_ms: int = 300_000) -> None:
        """Controlled shutdown: wait for the controller's leave, at most `timeout_ms`, then stop."""
        self.happen(lifecycle.ShutdownWanted())
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await self.stopped.wait()
        except TimeoutError:
            self.happen(lifecycle.Stopped(End.IMPATIENT))
        await self.close()

    async def kill(self) -> None:
        """Stop at once without a word, as kill -9 does."""
        self.happen(lifecycle.Stopped())
        await self.close()

    async def close(self) -> None:
        """Wait for every task and close every connection. The broker must have been told to stop."""
        async with self._closing:
            current = asyncio.current_task()
            tasks = [task for task in self._tasks if task is not current]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            # Once: by the second time the directories may be those of the broker that came after.
            parts, self.parts = self.parts, []
            # The logs are closed last, as in Kafka: the others may still write.
            for part in reversed(parts):
                await part.close()
            await self._channel.close()
            await self.replication.close()

    async def wait_stopped(self) -> None:
        """Return once the broker has stopped, and close what it held."""
        await self.stopped.wait()
        await self.close()

    def freeze(self) -> None:
        """Send no registration and no heartbeat until :meth:`thaw`, as a process that hangs; connections stay open."""
        self._frozen = True

    def thaw(self) -> None:
        """Go on after :meth:`freeze`, with what should have been said meanwhile."""
        self._frozen = False
        held, self._held_back = self._held_back, None
        self._carry_out(Orders(send=held))

    def disconnect(self) -> None:
        """Cut the connection to the controller, as a network does; the next request opens another."""
        self._channel.break_off()

    def happen(self, event: Event) -> None:
        """Take one event through the lifecycle and carry out its orders."""
        before = self.life.state
        self.life, orders = lifecycle.step(self.life, event)
        if self.life.state is not before:
            _log.info("broker %d: %s -> %s", self.config.broker_id, before.name, self.life.state.name)
            for part in self.parts:
                part.state_changed(self.life.state)
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

    def set_timer(self, name: str, wait_ms: float, call: Callable[..., None], argument: object) -> None:
        """Call later; the timer of this name that was set before is off."""
        if name in self._timers:
            self._timers[name].cancel()
        self._timers[name] = asyncio.get_running_loop().call_later(wait_ms / 1000, call, argument)

    def start_task(self, work: Callable[[], Awaitable[None]]) -> None:
        """Run work of this broker until it is done or the broker is over."""
        task = asyncio.get_running_loop().create_task(self._guarded(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _guarded(self, work: Callable[[], Awaitable[None]]) -> None:
        """Run a task; what would end a real broker's process ends this broker and no other."""
        try:
            await work()
        except (FatalError, WireError) as error:
            self.failed(error)
        except Exception as defect:
            # A broker that went on without one of its tasks would mislead whoever tests with it.
            _log.exception("broker %d: a defect of mockraft", self.config.broker_id)
            self.failed(FatalError(f"a defect of mockraft: {defect!r}"))

    def failed(self, error: Exception) -> None:
        """End as a real broker's process would over this."""
        self.fault = str(error)
        if isinstance(error, WireError):
            asked = ", ".join(f"{host}:{port}" for host, port in self.config.bootstrap)
            self.fault = f"an answer that is none of Kafka's: {error}; is a KRaft controller at {asked}?"
        _log.error("broker %d: fatal: %s", self.config.broker_id, self.fault)
        self.happen(lifecycle.Stopped(End.FATAL))

    # Registration and heartbeats.

    async def _register(self) -> None:
        def make(connection: client.KafkaConnection) -> BrokerRegistrationRequest:
            version = connection.version_for(BrokerRegistrationRequest)
            return registration_of(self.config, version, self.life.cordoned_dirs)

        response = await self.ask(self._channel, make)
        if response is not None:
            self.happen(lifecycle.Registered(response.broker_epoch))

    def heartbeat(self) -> BrokerHeartbeatRequest:
        """The heartbeat that says how it is now."""
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

    async def ask(self, channel: ControllerChannel, make: Any) -> Any | None:
        """Send one lifecycle request; None when it was refused or not answered (the lifecycle knows then)."""
        try:
            response = await channel.send(make)
        except (NotSentError, client.UnsupportedVersionError) as error:
            self.not_answered(error)
            return None
        return self.accepted(response)

    def not_answered(self, error: Exception) -> None:
        """A lifecycle request is given up."""
        self.refusals[type(error).__name__] += 1
        self.happen(lifecycle.NotAnswered(str(error)))

    def accepted(self, response: Any) -> Any | None:
        """The response to a lifecycle request; None when it is a refusal (the lifecycle knows then)."""
        if response.error_code == error_codes.NONE:
            return response
        name = error_codes.name(response.error_code)
        self.refusals[name] += 1
        _log.warning("broker %d: %s: %s", self.config.broker_id, type(response).__name__, name)
        self.happen(lifecycle.Refused(response.error_code))
        return None

    async def _recover(self) -> None:
        """Its replicas are placed; by KIP-858's text until the controller knows where they lie."""
        await asyncio.sleep(self.config.recovery_ms / 1000)
        while self.directories.waiting or (self.config.fenced_until_assigned and self.directories.assignments.queued):
            self.changed.clear()
            await self.changed.wait()
        self.happen(lifecycle.ReadyToUnfence())

    def _metadata_advanced(self) -> None:
        self._channel.controller_moved()
        for part in self.parts:
            part.metadata_advanced()
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
