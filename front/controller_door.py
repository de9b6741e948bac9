"""A controller inside the test's own process."""

from __future__ import annotations

import asyncio
import dataclasses
import difflib
import random
from collections.abc import Coroutine, Iterable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self

from mockraft.admin_door import AdminDoor
from mockraft.double_door import AwaitingDoor, BlockingDoor, ControllerDoor, script_of
from mockraft.loop_thread import InLoopThread, T
from mockraft.proposals import overlay_of, rules_of
from mockraft.server.clock import Clock, VirtualClock
from mockraft.server.config import ControllerConfig
from mockraft.server.controller.data_dir import cluster_id_of
from mockraft.server.controller.features import METADATA_VERSION, metadata_version_level
from mockraft.server.controller.releases import feature_ranges, read_ranges, release_of
from mockraft.server.controller.state_file import read_state
from mockraft.server.double import Double
from mockraft.server.journal import Journal
from mockraft.server.running import RunningController, random_cluster_id
from mockraft.server.stubs.stub import Stub

if TYPE_CHECKING:
    from mockraft.broker_door import SimulatedBroker, SyncSimulatedBroker


def configured(
    config: ControllerConfig | None,
    chance: random.Random,
    *,
    profile: str | Iterable[str] = (),
    schemas: str | Path | Iterable[str | Path] = (),
    state: str | Path | None = None,
    **options: Any,
) -> ControllerConfig:
    """The options of a controller in a test, as `Controller` says them. ValueError, DataDirError."""
    if isinstance(options.get("metadata_version"), str):
        options["metadata_version"] = metadata_version_level(options["metadata_version"])
    if options.get("as_version") is not None and config is None and "metadata_version" not in options:
        options["metadata_version"] = feature_ranges(release_of(options["as_version"]))[METADATA_VERSION][1]
    if options.get("api_versions"):
        options["api_versions"] = read_ranges(options["api_versions"])
    if profile or schemas:
        profiles = (profile,) if isinstance(profile, str) else tuple(profile)
        folders = (schemas,) if isinstance(schemas, str | Path) else tuple(schemas)
        options |= {"rules": rules_of(profiles), "overlay": overlay_of(profiles, folders)}
    if options.get("data_dir"):
        options["data_dir"] = Path(options["data_dir"])
    if state is not None:
        options["initial_state"] = Path(state)
    if config is None:
        found = cluster_id_of(options["data_dir"]) if options.get("data_dir") else None
        if state is not None:
            found = found or read_state(Path(state)).cluster_id
        config = ControllerConfig(port=0, cluster_id=found or random_cluster_id(chance))
    known = [field.name for field in dataclasses.fields(ControllerConfig)]
    for name in options.keys() - known:
        near = difflib.get_close_matches(name, known, 1) or ["an option of ControllerConfig"]
        raise TypeError(f"{name}: a controller has no such option; did you mean {near[0]}?")
    return dataclasses.replace(config, **options)


def clock_of(clock: Clock | Literal["virtual"] | None) -> Clock | None:
    """The clock that a test named. ValueError."""
    if isinstance(clock, str):
        if clock != "virtual":
            raise ValueError(f"clock={clock!r}: say 'virtual', or give a Clock")
        return VirtualClock()
    return clock


class Controller(AwaitingDoor, ControllerDoor):
    """A KRaft controller on a free port of the loopback, for as long as the `async with` block lasts.

    Options are those of `ControllerConfig` by name; `metadata_version` may be a name (4.1-IV1) or release (4.1) too.
    `as_version="3.9"` passes for a controller of that Kafka release; `api_versions={"Fetch": "4-16"}` offers others.
    `profile` names proposals (`"kip-858"`, or several) and `schemas` folders of message specs that it speaks too.
    `state` is a file of `double.state.save`, or a snapshot of Kafka's, that its log begins with.
    Without a `cluster_id` it takes the data directory's or the state's, else a new one each time. Raises ValueError for
    a metadata version that is not there and a file that is no state, DataDirError for a data directory that cannot be
    used, OSError for a port that is taken.
    With `brokers=3` simulated brokers 1 to 3 run with it, and the block begins when they do. `clock="virtual"` is time
    that stands still until `advance`. `stubs` are those that it begins with, or a stub file; `strict` marks requests
    that no stub is about (`assert_all_expected`). With `admin_port` (0: any free one) the admin API and the live page
    are at `admin_url`.

        async with Controller(session_timeout_ms=2000) as controller:
            properties["controller.quorum.bootstrap.servers"] = controller.bootstrap
    """

    def __init__(
        self,
        config: ControllerConfig | None = None,
        *,
        clock: Clock | Literal["virtual"] | None = None,
        profile: str | Iterable[str] = (),
        schemas: str | Path | Iterable[str | Path] = (),
        brokers: int = 0,
        strict: bool = False,
        stubs: str | Path | Iterable[Stub] = (),
        admin_port: int | None = None,
        **options: Any,
    ) -> None:
        self.brokers: dict[int, SimulatedBroker] = {}
        """The brokers that were started here, by id."""
        self._broker_count = brokers
        self._chance = random.Random(options.get("seed"))
        self._config = configured(config, self._chance, profile=profile, schemas=schemas, **options)
        self._clock = clock_of(clock)
        self._running: RunningController | None = None
        self._script = script_of(strict, stubs)
        self.double = Double(lambda: {self.node_id: self.running}, self._script)
        self._admin = AdminDoor(self.double, admin_port)

    @classmethod
    def sync(
        cls, config: ControllerConfig | None = None, *, clock: Clock | Literal["virtual"] | None = None, **options: Any
    ) -> SyncController:
        """The same for a test without asyncio: `with Controller.sync() as controller`; it runs in its own thread."""
        return SyncController(cls(config, clock=clock, **options))

    async def __aenter__(self) -> Self:
        self._running = await RunningController.start(self._config, self._clock, self._chance, script=self._script)
        try:
            await self._admin.start()
            await asyncio.gather(*(self.start_broker(broker_id) for broker_id in range(1, self._broker_count + 1)))
        except BaseException:
            await self._stop()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stop()

    async def _stop(self) -> None:
        if self.brokers:
            # What was put in their way would keep them from leaving.
            self._script.faults.reset()
            self._script.rack.reset()
        try:
            await asyncio.gather(*(broker.shut_down(self._patience_ms(broker)) for broker in self.brokers.values()))
        finally:
            self.brokers.clear()
            await self._admin.stop()
            await self.running.stop()
            self._running = None

    def _patience_ms(self, broker: SimulatedBroker) -> int:
        """How long to wait for its controlled shutdown: a broker that is not registered any more is given no leave."""
        registered = self.running.controller.image.cluster.brokers.get(broker.config.broker_id)
        known = registered is not None and registered.broker_epoch == broker.life.broker_epoch
        return self.running.config.session_timeout_ms if known else 0

    @property
    def bootstrap_servers(self) -> str:
        """Where clients find the brokers that were started here, host:port with commas between."""
        return ",".join(broker.bootstrap_servers for broker in self.brokers.values() if not broker.stopped.is_set())

    async def start_broker(self, broker_id: int, **options: Any) -> SimulatedBroker:
        """Run one more simulated broker until the block ends, and give it when it runs.

        Options are those of `SimulatedBroker.joining`. One with this id that was killed or left is replaced.
        Raises RuntimeError for one that stops at once, TimeoutError when it does not come to run.
        """
        from mockraft.broker_door import SimulatedBroker
        from mockraft.brokers.lifecycle import BrokerState

        own = {"security": self._config.own_client_security, "messages": self.messages}
        seed = self._chance.getrandbits(32)
        broker = SimulatedBroker.joining(self.bootstrap, self.cluster_id, broker_id, **{"seed": seed} | own | options)
        before = self.brokers.get(broker_id)
        if before is not None and not before.stopped.is_set():
            raise RuntimeError(f"broker {broker_id} runs already")
        self.brokers[broker_id] = broker
        broker.start()
        await broker.wait_until(BrokerState.RUNNING)
        return broker

    @property
    def admin_url(self) -> str:
        """Where the admin API and the live page are. RuntimeError without `admin_port`."""
        return self._admin.url

    @property
    def running(self) -> RunningController:
        """What runs: node, controller, listener, clock. RuntimeError outside the `with` block."""
        if self._running is None:
            raise RuntimeError("the controller does not run: use it inside its `with` block")
        return self._running

    @property
    def bootstrap(self) -> str:
        """What brokers need as `controller.quorum.bootstrap.servers`: host:port."""
        return self.running.bootstrap

    @property
    def host(self) -> str:
        """Host that brokers connect to."""
        return self.running.config.voter_host

    @property
    def port(self) -> int:
        """Port that brokers connect to."""
        return self.running.config.voter_port

    @property
    def cluster_id(self) -> str:
        """The cluster's id; brokers are formatted with it."""
        return self._config.cluster_id

    @property
    def node_id(self) -> int:
        """The controller's node id."""
        return self._config.node_id

    @property
    def journal(self) -> Journal:
        """Every exchange and every closed connection so far."""
        return self.running.node.journal

    @property
    def messages(self) -> Any:
        """The messages that it speaks, by name and by key: `mockraft.wire.messages`, or an Overlay's over them."""
        return self.running.node.messages


class ThreadedController(InLoopThread, ControllerDoor):
    """A controller in a thread of its own, as long as the `with` block lasts."""

    def __init__(self, controller: Controller) -> None:
        super().__init__("mockraft-controller", controller)
        self._controller = controller
        self.double = controller.double
        """All that a test may ask of it; touch it through `call` only."""

    @property
    def brokers(self) -> dict[int, SyncSimulatedBroker]:
        """The brokers that were started here, by id."""
        from mockraft.broker_door import SyncSimulatedBroker

        return {n: SyncSimulatedBroker(broker, self._thread) for n, broker in self._controller.brokers.items()}

    @property
    def bootstrap_servers(self) -> str:
        """Where clients find the brokers that were started here, host:port with commas between."""
        return self.call(lambda: self._controller.bootstrap_servers)

    @property
    def admin_url(self) -> str:
        """Where the admin API and the live page are. RuntimeError without `admin_port`."""
        return self._controller.admin_url

    @property
    def running(self) -> RunningController:
        """What runs; touch it through `call` only."""
        return self._controller.running

    @property
    def bootstrap(self) -> str:
        """What brokers need as `controller.quorum.bootstrap.servers`: host:port."""
        return self._controller.bootstrap

    @property
    def host(self) -> str:
        """Host that brokers connect to."""
        return self._controller.host

    @property
    def port(self) -> int:
        """Port that brokers connect to."""
        return self._controller.port

    @property
    def cluster_id(self) -> str:
        """The cluster's id; brokers are formatted with it."""
        return self._controller.cluster_id

    @property
    def node_id(self) -> int:
        """The controller's node id."""
        return self._controller.node_id

    @property
    def journal(self) -> Journal:
        """Every exchange and every closed connection so far."""
        return self._controller.journal

    @property
    def messages(self) -> Any:
        """The messages that it speaks, by name and by key: `mockraft.wire.messages`, or an Overlay's over them."""
        return self._controller.messages


class SyncController(ThreadedController, BlockingDoor):
    """A controller in a thread of its own, for tests without asyncio; made by `Controller.sync`."""

    def start_broker(self, broker_id: int, **options: Any) -> SyncSimulatedBroker:
        """Run one more simulated broker until the block ends, and give it when it runs; see `Controller`."""
        from mockraft.broker_door import SyncSimulatedBroker

        return SyncSimulatedBroker(self._thread.run(self._controller.start_broker(broker_id, **options)), self._thread)


class AwaitedController(ThreadedController, AwaitingDoor):
    """A controller in a thread of its own, for tests with asyncio that do not want it in their event loop.

    Its `with` block and whatever answers at once are as `SyncController`'s; what waits for something is awaited.
    """

    async def _run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return await self._thread.soon(coroutine)

    async def start_broker(self, broker_id: int, **options: Any) -> SyncSimulatedBroker:
        """Run one more simulated broker until the block ends, and give it when it runs; see `Controller`."""
        from mockraft.broker_door import SyncSimulatedBroker

        started = self._thread.soon(self._controller.start_broker(broker_id, **options))
        return SyncSimulatedBroker(await started, self._thread)
