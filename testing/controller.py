"""A controller inside the test's own process."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias, Unpack

from mockraft.kafka_api.journal import Journal
from mockraft.server.config import ControllerConfig
from mockraft.server.running import RunningController
from mockraft.testing.double import StartedDouble
from mockraft.testing.facades import facade
from mockraft.testing.options import ControllerOptions
from mockraft.testing.plan.outcome import PlanOutcome
from mockraft.testing.plan.runner import run_plan
from mockraft.testing.plan.steps import Step, steps_of
from mockraft.testing.twins import with_registrations

if TYPE_CHECKING:
    from mockraft.testing.sync_types import SyncController

__all__ = ["AwaitedController", "Controller", "SyncController"]


class Controller(StartedDouble):
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

    `brokers=3` runs simulated brokers 1 to 3 with it; the block begins when they run. Clients find broker 1 on
    `brokers_port`, broker 2 on the next one, and so on; on any free ports unless given. They send a heartbeat, and
    try again after a refusal, each `broker_heartbeat_interval_ms`: 100 unless given, so that tests are quick, and
    Kafka's 2,000 with a virtual clock and for more than 100 brokers. `clock="virtual"` stops time until `advance`,
    which moves these brokers too; the time until they run passes at once. `stubs` are stubs to begin with, or a
    stub file; `strict` marks requests that match no stub (`assert_all_expected`). A block that ends without an error
    raises AssertionError for those, for stubs and faults that were never used unless `assert_all_used` is False, and
    for what a function of the test raised. `admin_port` (0: any free one) opens the admin API and the live page at
    `admin_url`.

    Raises ValueError for an unknown metadata version and a file that is no state, DataDirError for an unusable data
    directory, OSError for a port in use.

        async with Controller(session_timeout_ms=2000) as controller:
            properties["controller.quorum.bootstrap.servers"] = controller.bootstrap
    """

    def __init__(self, config: ControllerConfig | None = None, **options: Unpack[ControllerOptions]) -> None:
        self._running: RunningController | None = None
        super().__init__(lambda: {self.node_id: self.running}, config, options)

    @classmethod
    def sync(cls, config: ControllerConfig | None = None, **options: Unpack[ControllerOptions]) -> SyncController:
        """The same for a test without asyncio: `with Controller.sync() as controller`; it runs in its own thread."""
        return SyncController(cls(config, **options))

    def __repr__(self) -> str:
        where = "not running" if self._running is None else f"at {self.bootstrap}, {len(self.brokers)} brokers"
        return f"<{type(self).__name__} {self.node_id}, {where}>"

    async def _start(self) -> None:
        self._running = await RunningController.start(self._config, self._clock, self._rng, script=self.script)

    async def _stop_controllers(self) -> None:
        await self.running.stop()
        self._running = None

    def restart(self) -> None:
        """Restart it in place, with its log, port and journal: connections break, a broker notices a new epoch."""
        self.restart_in_place()

    async def plan(self, steps: Iterable[Step | Mapping[str, Any]]) -> PlanOutcome:
        """Do the steps of a plan in virtual time and return what each did: `[{"restart": "all"}]`; PlanError."""
        found, (source, at) = steps_of(list(steps)), self._twin_of
        if source is not None:
            found = with_registrations(found, self.running.controller.image, source, at)
        return await run_plan(self.started, found)

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


if TYPE_CHECKING:
    AwaitedController: TypeAlias = Controller
else:
    SyncController = facade(Controller, "SyncController", blocks=True)
    AwaitedController = facade(Controller, "AwaitedController", blocks=False)
