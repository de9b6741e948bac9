"""Members that controllers and quorums in a test share: their options, their simulated brokers, the admin API."""

from __future__ import annotations

import abc
import dataclasses
import random
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, NoReturn, Self, Unpack

from mockraft.brokers.config import BrokerConfig
from mockraft.brokers.fleet.limits import OWN_REPLICATION_BROKERS_MAX
from mockraft.kafka_api.clock import Clock, VirtualClock
from mockraft.kafka_api.options import check_option
from mockraft.releases import DEFAULT, release
from mockraft.server.complaints import complain
from mockraft.server.config import ControllerConfig
from mockraft.server.controller.log.data_dir import cluster_id_of
from mockraft.server.controller.log.state_file import read_state
from mockraft.server.controller.settings.features import levels_for_simulated_brokers, metadata_version_level
from mockraft.server.controller.settings.offers import read_ranges
from mockraft.server.double import Double
from mockraft.server.running import RunningController
from mockraft.server.stubs.script import Script
from mockraft.server.stubs.stub import Stub
from mockraft.server.stubs.stub_file import read_stub_file
from mockraft.testing.broker import SimulatedBroker
from mockraft.testing.faults import ControllerFaults
from mockraft.testing.options import TEST_HEARTBEAT_INTERVAL_MS, BrokerOptions, ControllerOptions, StartOptions
from mockraft.testing.proposals import overlay_of, proposals_of
from mockraft.testing.started_brokers import BROKER_PATIENCE_S, StartedBrokers
from mockraft.testing.twins import continuing_config, start_registered, twin_options, virtual_clock
from mockraft.wire.directory_ids import draw_cluster_id
from mockraft.wire.names import did_you_mean

if TYPE_CHECKING:
    from mockraft.server.admin.serving import AdminServer
    from mockraft.server.stubs.faults.fault import ConnectionMatch
    from mockraft.server.stubs.match import Match
    from mockraft.wire.message import MessageLookup


class StartedDouble(Double, abc.ABC):
    """A controller or quorum that a test starts, with simulated brokers and, with `admin_port`, the admin API."""

    def __init__(
        self,
        nodes: Callable[[], Mapping[int, RunningController]],
        config: ControllerConfig | None,
        options: ControllerOptions,
    ) -> None:
        self._rng = random.Random(options.get("seed"))
        self._twin_of = options.get("twin_of"), options.get("twin_at")
        self._twin_brokers = options.get("twin_brokers")
        self._broker_count, clock = options.get("brokers", 0), options.get("clock")
        check_option("brokers", self._broker_count, int, 0)
        check_option("strict", options.get("strict", False), bool)
        self._assert_all_used = options.get("assert_all_used", True)
        check_option("assert_all_used", self._assert_all_used, bool)
        self._brokers_port = options.get("brokers_port", 0)
        check_option("brokers_port", self._brokers_port, int, 0, 65_535)
        if self._brokers_port and self._twin_of[0] is not None:
            raise ValueError(f"brokers_port={self._brokers_port}: the brokers of a twin take free ports")
        self._broker_defaults: BrokerOptions = {}
        interval_ms = options.get("broker_heartbeat_interval_ms")
        self._is_interval_given = interval_ms is not None
        if interval_ms is not None:
            check_option("broker_heartbeat_interval_ms", interval_ms, int)
            self._broker_defaults["heartbeat_interval_ms"] = interval_ms
        elif clock is None:
            self._broker_defaults["heartbeat_interval_ms"] = TEST_HEARTBEAT_INTERVAL_MS
        if clock is None:
            self._broker_defaults["recovery_ms"] = 0  # a test waits for no timer that stands for work
        super().__init__(nodes, script_of(strict=options.get("strict", False), stubs=options.get("stubs", ())))
        self._config = configured(config, self._rng, options)
        self._clock = clock_of(clock, self._config.initial_state if self._twin_of[0] is not None else None)
        self._has_ended = False
        self.is_judged = False
        """True if a fixture fails the test for `complaints`."""
        self._admin_port = options.get("admin_port")
        self._admin: AdminServer | None = None
        self.started = StartedBrokers(self, self._rng, self._config)

    def __enter__(self) -> NoReturn:
        kind = type(self).__name__
        raise TypeError(f"{kind} needs asyncio: use `with {kind}.sync(…)`, or `async with` in an async function")

    def __exit__(self, *_: object) -> None:
        pass

    async def __aenter__(self) -> Self:
        self._has_ended = False
        await self._start()
        try:
            await self._start_admin()
            await self._start_first_brokers()
        except BaseException:
            await self._stop()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End everything. Raises AssertionError for `complaints` if the block ends without error.

        A fixture asserts that there are none before, as the test ends.
        """
        __tracebackhide__ = True
        try:
            if error is None and not self.is_judged:
                complain(self.complaints(unused=self._assert_all_used))
        finally:
            await self._stop()

    @abc.abstractmethod
    async def _start(self) -> None:
        """Start the controllers, or none."""

    def _check_reach(self, match: Match | ConnectionMatch) -> None:
        if self._has_ended:
            self.nodes()  # raises
        super()._check_reach(match)

    async def _stop(self) -> None:
        if self.brokers:
            # What was put in their way would keep them from leaving.
            self.script.faults.reset()
            self.script.stubs.reset()
        try:
            await self.started.leave(is_orderly=self._lets_brokers_leave())
        finally:
            server, self._admin = self._admin, None
            if server is not None:
                await server.stop()
            await self._stop_controllers()
            self._has_ended = True

    def _lets_brokers_leave(self) -> bool:
        """Return True if the controllers can answer brokers that shut down."""
        return True

    @abc.abstractmethod
    async def _stop_controllers(self) -> None:
        """Stop the controllers that run."""

    @property
    @abc.abstractmethod
    def bootstrap(self) -> str:
        """Value of `controller.quorum.bootstrap.servers` for brokers: every controller's host:port."""

    @property
    def cluster_id(self) -> str:
        """The cluster's id; brokers are formatted with it."""
        return self._config.cluster_id

    @property
    def messages(self) -> MessageLookup:
        """The message classes in use, by name and key: `mockraft.wire.messages`, or those of an Overlay."""
        messages: MessageLookup = self.leading.node.messages
        return messages

    @property
    def faults(self) -> ControllerFaults:
        """Faults by name, each also for the length of a block: `with controller.faults.latency(latency_ms=100):`."""
        return ControllerFaults(self.script.faults)

    @property
    def admin_url(self) -> str:
        """URL of the admin API and the live page, without a slash at the end. RuntimeError without `admin_port`."""
        if self._admin is None:
            raise RuntimeError("there is no admin API: set admin_port=0, and use it inside the `with` block")
        return self._admin.url

    async def _start_admin(self) -> None:
        """Listen if there is a port. OSError when the port is in use, RuntimeError without the packages it needs."""
        if self._admin_port is None:
            return
        try:  # needs optional packages
            from mockraft.server.admin.serving import AdminServer
            from mockraft.server.admin.settings import AdminSettings
            from mockraft.testing.recorder import LocalRecorder
        except ImportError as error:
            raise RuntimeError(f"the admin API needs pip install 'mockraft[admin]': {error}") from None
        recorder = LocalRecorder(show_secrets=self.state.show_secrets)
        self._admin = await AdminServer.start(self, AdminSettings(port=self._admin_port), recorder)

    @property
    def brokers(self) -> dict[int, SimulatedBroker]:
        """The brokers that were started here, by id."""
        return self.started.by_id

    @property
    def bootstrap_servers(self) -> str:
        """Addresses of the clients' listeners of the brokers started here: host:port, separated by commas.

        Raises RuntimeError if there is none.
        """
        running = [broker for broker in self.brokers.values() if not broker.stopped.is_set()]
        if not running:
            raise RuntimeError("clients need a broker, and none runs: brokers=1, or start_broker(1)")
        return ",".join(broker.bootstrap_servers for broker in running)

    async def start_broker(self, broker_id: int, **options: Unpack[StartOptions]) -> SimulatedBroker:
        """Start a simulated broker that runs until the block ends; return it once it runs, or earlier.

        In a twin a broker that was registered once continues with its directories, rack and features.
        `wait="registered"` returns it once the controller has accepted its registration, `wait=None` at once, and
        `timeout_s` is 30 unless given. Other options are those of `SimulatedBroker.joining`. A stopped broker with this
        id is replaced. Raises RuntimeError for one that stops at once, TimeoutError when `timeout_s` has passed.
        """
        wait, timeout_s = options.pop("wait", "running"), options.pop("timeout_s", BROKER_PATIENCE_S)
        if wait not in ("registered", "running", None):
            raise ValueError(f"wait={wait!r}: it must be 'registered', 'running' or None")
        return await self.started.run(self._broker_config(broker_id, options), wait, timeout_s)

    def _listener_names(self) -> set[str]:
        """Return them also while all nodes are killed."""
        return {self._config.controller_listener_name}

    def _broker_config(self, broker_id: int, options: BrokerOptions) -> BrokerConfig:
        own: BrokerOptions = {**self._broker_defaults, **options}
        if broker_id in self._controllers_journals():
            raise ValueError(f"broker_id={broker_id}: that is the id of a controller")
        source, at = self._twin_of
        if source is not None and (config := continuing_config(self.started, broker_id, source, at, own)) is not None:
            return config
        if self._brokers_port:
            own.setdefault("port", self._brokers_port + broker_id - 1)
        own.setdefault("seed", self._rng.getrandbits(32))
        if "security" not in own and self._config.needs_login:
            protocol = self._config.security_protocol
            how = "give plain_users, scram_users, or client_security=ClientSecurity(…), of an enabled mechanism"
            raise ValueError(
                f"security_protocol={protocol}: simulated brokers have to log in, and there is no user: {how}"
            )
        own = {**self.started.security, **own}
        self._config.listener_security.check_client("security", own.get("security"))
        own.setdefault("messages", self.messages)
        return SimulatedBroker.configured(self.bootstrap, self.cluster_id, broker_id, **own)

    async def _start_first_brokers(self) -> None:
        """Start those of `brokers` and `twin_brokers`; large numbers of them use Kafka's heartbeat interval."""
        registered = self.leading.controller.image.cluster.brokers if self._twin_brokers is not None else ()
        count = max(self._broker_count, len(registered))
        if count > OWN_REPLICATION_BROKERS_MAX and not self._is_interval_given:
            self._broker_defaults.pop("heartbeat_interval_ms", None)
        if self._broker_count:
            ids = range(1, self._broker_count + 1)
            await self.started.start([self._broker_config(broker_id, {}) for broker_id in ids])
        if self._twin_brokers is not None:
            await start_registered(self.started, self._twin_brokers, self._broker_defaults)


_OF_THE_TEST = (
    "clock",
    "brokers",
    "brokers_port",
    "twin_brokers",
    "broker_heartbeat_interval_ms",
    "strict",
    "assert_all_used",
    "stubs",
    "admin_port",
)


def configured(config: ControllerConfig | None, rng: random.Random, given: ControllerOptions) -> ControllerConfig:
    """Return the config of a controller in a test, from the options of `Controller`. ValueError, DataDirError."""
    options: dict[str, Any] = {name: value for name, value in given.items() if name not in _OF_THE_TEST}
    profile, schemas = options.pop("profile", ()), options.pop("schemas", ())
    state, twin_of, twin_at = (options.pop(name, None) for name in ("state", "twin_of", "twin_at"))
    if twin_of is not None:
        if state is not None:
            raise ValueError("a controller begins with a state or as a twin: give state or twin_of")
        has_brokers = given.get("twin_brokers") is not None
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
    for name in ("data_dir", "ssl_certificate_file", "ssl_key_file", "ssl_truststore_file"):
        if isinstance(options.get(name), str):
            options[name] = Path(options[name])
    if isinstance(mechanism := options.get("sasl_enabled_mechanisms"), str):
        options["sasl_enabled_mechanisms"] = (mechanism,)
    if state is not None:
        options["initial_state"] = Path(state)
    if config is None:
        found = cluster_id_of(options["data_dir"]) if options.get("data_dir") else None
        if state is not None and "cluster_id" not in options:
            found = found or read_state(Path(state)).cluster_id
        config = ControllerConfig(port=0, cluster_id=found or draw_cluster_id(rng))
    levels = options.get("features", config.features)
    if given.get("brokers") and isinstance(levels, Mapping):
        of, level = release(options.get("release", config.release)), options.get("metadata_version", 0)
        options["features"] = levels_for_simulated_brokers(of, levels, level)
    known = ControllerOptions.__annotations__
    if unknown := next((name for name in options if name not in known), None):
        raise TypeError(f"{unknown}: a controller has no such option; {did_you_mean(unknown, known)}")
    return dataclasses.replace(config, **options)


def clock_of(clock: Clock | Literal["virtual"] | None, twin: Path | None = None) -> Clock | None:
    """The clock that a test named; that of a twin goes on from its state. ValueError."""
    if isinstance(clock, str):
        if clock != "virtual":
            raise ValueError(f"clock={clock!r}: say 'virtual', or give a Clock")
        return VirtualClock() if twin is None else virtual_clock(twin)
    return clock


def script_of(*, strict: bool, stubs: str | Path | Iterable[Stub]) -> Script:
    """Return the script that a double begins with, from stubs or a stub file. StubError, GivenFileError."""
    script = Script()
    script.stubs.strict = strict
    if isinstance(stubs, str | Path):
        script.load(read_stub_file(Path(stubs)))
    else:
        for each in stubs:
            script.stubs.add(each)
    return script
