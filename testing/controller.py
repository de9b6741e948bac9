"""A controller inside the test's own process."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Coroutine, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, Unpack

from mockraft.kafka_api.clock import Clock, VirtualClock
from mockraft.kafka_api.directory_ids import draw_cluster_id
from mockraft.kafka_api.journal import Journal
from mockraft.kafka_api.option_types import check_option
from mockraft.releases import DEFAULT, release
from mockraft.server.config import ControllerConfig
from mockraft.server.controller.log.data_dir import cluster_id_of
from mockraft.server.controller.log.state_file import read_state
from mockraft.server.controller.settings.features import metadata_version_level
from mockraft.server.controller.settings.offers import read_ranges
from mockraft.server.double import Double
from mockraft.server.running import RunningController
from mockraft.server.stubs.stub import Stub
from mockraft.testing.blocking import InLoopThread, T, blocking, constant, reads
from mockraft.testing.double import AsyncDoubleApi, BlockingDoubleApi, ControllerApi, script_of
from mockraft.testing.in_loop import DoubleInLoop
from mockraft.testing.options import BrokerOptions, ConfigOptions, OneControllerOptions, StartOptions
from mockraft.testing.proposals import overlay_of, proposals_of
from mockraft.testing.started_brokers import BROKER_PATIENCE_S, StartedBrokers
from mockraft.testing.twins import twin_options, virtual_clock
from mockraft.wire.names import did_you_mean

if TYPE_CHECKING:
    from mockraft.brokers.config import BrokerConfig
    from mockraft.testing.broker import SimulatedBroker, SyncSimulatedBroker
    from mockraft.testing.plan import PlanOutcome, Step
    from mockraft.twin.brokers import Which
    from mockraft.twin.history import History, Point
    from mockraft.wire.message import MessageLookup


TEST_HEARTBEAT_INTERVAL_MS = 100
"""Heartbeat interval of simulated brokers in real time; they wait as long after a refused request (Kafka: 2,000)."""


def configured(
    config: ControllerConfig | None,
    rng: random.Random,
    *,
    profile: str | Iterable[str] = (),
    schemas: str | Path | Iterable[str | Path] = (),
    state: str | Path | None = None,
    twin_of: str | Path | History | None = None,
    twin_at: Point = None,
    has_brokers: bool = False,
    **options: Any,
) -> ControllerConfig:
    """Return the config of a controller in a test, from the options of `Controller`. ValueError, DataDirError."""
    if twin_of is not None:
        if state is not None:
            raise ValueError("a controller begins with a state or as a twin: give state or twin_of")
        options = {**twin_options(twin_of, twin_at, has_brokers=has_brokers), **options}
        state = options.pop("state")
    if (as_version := options.pop("as_version", None)) is not None:
        options["release"] = as_version
    if "release" in options:
        options["release"] = release(options["release"]).name
        options.setdefault("metadata_version", 0)
    if isinstance(options.get("metadata_version"), str):
        chosen = options.get("release", DEFAULT if config is None else config.release)
        is_unstable = bool(options.get("unstable_feature_versions_enable"))
        level = metadata_version_level(options["metadata_version"], release(chosen), unstable=is_unstable)
        options["metadata_version"] = level
    if options.get("api_versions"):
        options["api_versions"] = read_ranges(options["api_versions"])
    if profile or schemas:
        profiles = (profile,) if isinstance(profile, str) else tuple(profile)
        folders = (schemas,) if isinstance(schemas, str | Path) else tuple(schemas)
        options |= {"proposals": proposals_of(profiles), "overlay": overlay_of(profiles, folders)}
    if options.get("data_dir"):
        options["data_dir"] = Path(options["data_dir"])
    if state is not None:
        options["initial_state"] = Path(state)
    if config is None:
        found = cluster_id_of(options["data_dir"]) if options.get("data_dir") else None
        if state is not None and "cluster_id" not in options:
            found = found or read_state(Path(state)).cluster_id
        config = ControllerConfig(port=0, cluster_id=found or draw_cluster_id(rng))
    known = [field.name for field in dataclasses.fields(ControllerConfig)]
    for name in options.keys() - known:
        raise TypeError(f"{name}: a controller has no such option; {did_you_mean(name, known)}")
    return dataclasses.replace(config, **options)


def clock_of(clock: Clock | Literal["virtual"] | None, twin: Path | None = None) -> Clock | None:
    """The clock that a test named; that of a twin goes on from its state. ValueError."""
    if isinstance(clock, str):
        if clock != "virtual":
            raise ValueError(f"clock={clock!r}: say 'virtual', or give a Clock")
        return VirtualClock() if twin is None else virtual_clock(twin)
    return clock


class Controller(DoubleInLoop, ControllerApi):
    """A KRaft controller on a free port of the loopback interface, for as long as the `async with` block lasts.

    Options are the fields of `ControllerConfig`; `metadata_version` may be a name (4.1-IV1) or release (4.1) too.
    `release="3.9"` makes it a controller of that Kafka release (`as_version` is the same); `api_versions={"Fetch":
    "4-16"}` changes single APIs, `features={"group.version": 0}` levels that a new log begins with. `profile` names
    proposals (`"kip-858"`, or several), `schemas` folders of message specs to add.
    `state` is a file of `state.save`, or a snapshot of Kafka's, that its log begins with. `twin_of` is a real
    controller's data directory, a snapshot, or a capture, of which it becomes a twin, as of the offset or time
    `twin_at`; the source is only read. The cluster id is `cluster_id`, else the data directory's, the state's or the
    source's, else a new one each time. `twin_brokers="live"` runs simulated brokers in place of those of the source
    that were not fenced, "all" in place of all.

    `brokers=3` runs simulated brokers 1 to 3 with it; the block begins when they run. They send a heartbeat, and
    try again after a refusal, each `broker_heartbeat_interval_ms`: 100 unless given, so that tests are quick, and
    Kafka's 2,000 with a virtual clock and for more than 100 brokers. `clock="virtual"` stops time until `advance`,
    which moves these brokers too; the time until they run passes at once. `stubs` are stubs to begin with, or a
    stub file; `strict` marks requests that match no stub (`assert_all_expected`). `admin_port` (0: any free one) opens
    the admin API and the live page at `admin_url`.

    Raises ValueError for an unknown metadata version and a file that is no state, DataDirError for an unusable data
    directory, OSError for a port in use.

        async with Controller(session_timeout_ms=2000) as controller:
            properties["controller.quorum.bootstrap.servers"] = controller.bootstrap
    """

    def __init__(
        self,
        config: ControllerConfig | None = None,
        *,
        clock: Clock | Literal["virtual"] | None = None,
        brokers: int = 0,
        twin_brokers: Which | None = None,
        broker_heartbeat_interval_ms: int | None = None,
        strict: bool = False,
        stubs: str | Path | Iterable[Stub] = (),
        admin_port: int | None = None,
        **options: Unpack[ConfigOptions],
    ) -> None:
        self.started = StartedBrokers(lambda: self.running)
        self.brokers: dict[int, SimulatedBroker] = self.started.by_id
        """The brokers that were started here, by id."""
        check_option("brokers", brokers, int, 0)
        self._broker_count, self._twin_brokers = brokers, twin_brokers
        self._twin_of = options.get("twin_of"), options.get("twin_at")
        self._broker_defaults: BrokerOptions = {}
        self._is_interval_given = broker_heartbeat_interval_ms is not None
        if broker_heartbeat_interval_ms is not None:
            check_option("broker_heartbeat_interval_ms", broker_heartbeat_interval_ms, int)
            self._broker_defaults["heartbeat_interval_ms"] = broker_heartbeat_interval_ms
        elif clock is None:
            self._broker_defaults["heartbeat_interval_ms"] = TEST_HEARTBEAT_INTERVAL_MS
        self.rng = random.Random(options.get("seed"))
        self._running: RunningController | None = None
        self._script = script_of(strict, stubs)
        double = Double(lambda: {self.node_id: self.running}, self._script)
        configured_as = configured(config, self.rng, has_brokers=twin_brokers is not None, **options)
        self._clock = clock_of(clock, configured_as.initial_state if self._twin_of[0] is not None else None)
        super().__init__(configured_as, double, admin_port)

    @classmethod
    def sync(cls, config: ControllerConfig | None = None, **options: Unpack[OneControllerOptions]) -> SyncController:
        """The same for a test without asyncio: `with Controller.sync() as controller`; it runs in its own thread."""
        return SyncController(cls(config, **options))

    def __repr__(self) -> str:
        where = "not running" if self._running is None else f"at {self.bootstrap}, {len(self.brokers)} brokers"
        return f"<{type(self).__name__} {self.node_id}, {where}>"

    async def __aenter__(self) -> Self:
        self._running = await RunningController.start(self._config, self._clock, self.rng, script=self._script)
        try:
            await self._start_admin()
            await self._start_first_brokers()
        except BaseException:
            await self._stop()
            raise
        return self

    async def _stop(self) -> None:
        if self.brokers:
            # What was put in their way would keep them from leaving.
            self._script.faults.reset()
            self._script.stubs.reset()
        try:
            await self.started.leave()
        finally:
            await self._stop_admin()
            await self.running.stop()
            self._running = None

    @property
    def bootstrap_servers(self) -> str:
        """Addresses of the clients' listeners of the brokers started here: host:port, separated by commas.

        Raises RuntimeError if there is none.
        """
        running = [broker for broker in self.brokers.values() if not broker.stopped.is_set()]
        if not running:
            raise RuntimeError("clients need a broker, and none runs: brokers=1, or start_broker(1)")
        return ",".join(broker.bootstrap_servers for broker in running)

    async def start_broker(
        self,
        broker_id: int,
        *,
        wait: Literal["registered", "running"] | None = "running",
        timeout_s: float = BROKER_PATIENCE_S,
        **options: Unpack[BrokerOptions],
    ) -> SimulatedBroker:
        """Start a simulated broker that runs until the block ends; return it once it runs, or earlier.

        In a twin a broker that was registered once continues with its directories, rack and features.
        `wait="registered"` returns it once the controller has accepted its registration, `wait=None` at once. Other
        options are those of `SimulatedBroker.joining`. A stopped broker with this id is replaced.
        Raises RuntimeError for one that stops at once, TimeoutError when `timeout_s` has passed.
        """
        if wait not in ("registered", "running", None):
            raise ValueError(f"wait={wait!r}: it must be 'registered', 'running' or None")
        return await self.started.run(self._broker_config(broker_id, options), wait, timeout_s)

    def _broker_config(self, broker_id: int, options: BrokerOptions) -> BrokerConfig:
        from mockraft.testing.broker import SimulatedBroker

        options = {**self._broker_defaults, **options}
        source, at = self._twin_of
        if source is not None:
            from mockraft.testing.twins import continuing_config

            if (config := continuing_config(self, broker_id, source, at, options)) is not None:
                return config
        options.setdefault("seed", self.rng.getrandbits(32))
        options.setdefault("security", self._config.own_client_security)
        options.setdefault("messages", self.messages)
        return SimulatedBroker.configured(self.bootstrap, self.cluster_id, broker_id, **options)

    async def _start_first_brokers(self) -> None:
        """Start those of `brokers` and `twin_brokers`; large numbers of them use Kafka's heartbeat interval."""
        registered = self.running.controller.image.cluster.brokers if self._twin_brokers is not None else ()
        if (count := max(self._broker_count, len(registered))) and not self._is_interval_given:
            from mockraft.brokers.fleet.shared_log import OWN_REPLICATION_BROKERS_MAX

            if count > OWN_REPLICATION_BROKERS_MAX:
                self._broker_defaults.pop("heartbeat_interval_ms", None)
        if self._broker_count:
            ids = range(1, self._broker_count + 1)
            await self.started.start([self._broker_config(broker_id, {}) for broker_id in ids])
        if self._twin_brokers is not None:
            from mockraft.testing.twins import start_registered

            await start_registered(self, self._twin_brokers, self._broker_defaults)

    async def plan(self, steps: Iterable[Step | Mapping[str, Any]]) -> PlanOutcome:
        """Do the steps of a plan in virtual time and return what each did: `[{"restart": "all"}]`; PlanError."""
        from mockraft.testing.plan import run_plan, steps_of

        found, (source, at) = steps_of(list(steps)), self._twin_of
        if source is not None:
            from mockraft.testing.twins import with_registrations

            found = with_registrations(found, self.running.controller.image, source, at)
        return await run_plan(self, found)

    @property
    def running(self) -> RunningController:
        """The running node, with its controller, listener and clock. RuntimeError outside the `with` block."""
        if self._running is None:
            raise RuntimeError("the controller does not run: use it inside its `with` block")
        return self._running

    @property
    def bootstrap(self) -> str:
        """Value of `controller.quorum.bootstrap.servers` for brokers: host:port."""
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
    def node_id(self) -> int:
        """`node.id` of the configuration: 3000 unless given."""
        return self._config.node_id

    @property
    def journal(self) -> Journal:
        """Every exchange and every closed connection so far."""
        return self.running.node.journal

    @property
    def messages(self) -> MessageLookup:
        """The message classes in use, by name and key: `mockraft.wire.messages`, or those of an Overlay."""
        messages: MessageLookup = self.running.node.messages
        return messages


class ThreadedController(InLoopThread[Controller], ControllerApi):
    """A controller in a thread of its own, as long as the `with` block lasts."""

    def __init__(self, controller: Controller) -> None:
        super().__init__("controller", controller)
        self._controller = controller
        self.double = controller.double
        """All that a test may ask of it; touch it through `call` only."""

    @property
    def brokers(self) -> dict[int, SyncSimulatedBroker]:
        """The brokers that were started here, by id."""
        from mockraft.testing.broker import SyncSimulatedBroker

        return {n: SyncSimulatedBroker(broker, self._thread) for n, broker in self._controller.brokers.items()}

    bootstrap_servers = reads(Controller.bootstrap_servers)
    admin_url = constant(Controller.admin_url)
    running = constant(Controller.running)
    bootstrap = constant(Controller.bootstrap)
    host = constant(Controller.host)
    port = constant(Controller.port)
    cluster_id = constant(Controller.cluster_id)
    node_id = constant(Controller.node_id)
    journal = constant(Controller.journal)
    messages = constant(Controller.messages)


class SyncController(ThreadedController, BlockingDoubleApi[Controller]):
    """A controller in a thread of its own, for tests without asyncio; made by `Controller.sync`."""

    def start_broker(self, broker_id: int, **options: Unpack[StartOptions]) -> SyncSimulatedBroker:
        """Start a simulated broker that runs until the block ends; see `Controller`."""
        from mockraft.testing.broker import SyncSimulatedBroker

        return SyncSimulatedBroker(self._thread.run(self._controller.start_broker(broker_id, **options)), self._thread)

    plan = blocking(Controller.plan)


class AwaitedController(ThreadedController, AsyncDoubleApi):
    """A controller in a thread of its own, for asyncio tests that keep their event loop to themselves.

    Its `with` block and plain methods are those of `SyncController`; methods that wait are coroutines.
    """

    async def _run(self, coroutine: Coroutine[object, object, T]) -> T:
        return await self._thread.soon(coroutine)

    async def start_broker(self, broker_id: int, **options: Unpack[StartOptions]) -> SyncSimulatedBroker:
        """Start a simulated broker that runs until the block ends; see `Controller`."""
        from mockraft.testing.broker import SyncSimulatedBroker

        started = self._thread.soon(self._controller.start_broker(broker_id, **options))
        return SyncSimulatedBroker(await started, self._thread)
