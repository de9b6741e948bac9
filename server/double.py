"""Operations of a test on a running controller or quorum; the front's controller and quorum classes build on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from mockraft.kafka_api.clock import Clock, VirtualClock
from mockraft.kafka_api.journal import Journal
from mockraft.releases import DEFAULT, release
from mockraft.server.controller.controller import STANDBY
from mockraft.server.controller.settings.offers import Offer, read_ranges
from mockraft.server.running import NothingRunsError, RunningController
from mockraft.server.stubs.script import Script

if TYPE_CHECKING:
    from mockraft.server.state.state import State


class Double:
    """A running controller or quorum as a test double. Use it in the thread of its event loop.

    `nodes` returns the running nodes by node id; `journals` also has those of stopped nodes.
    """

    def __init__(
        self,
        nodes: Callable[[], Mapping[int, RunningController]],
        script: Script,
        journals: Callable[[], Mapping[int, Journal]] | None = None,
    ) -> None:
        self.nodes = nodes
        self.script = script
        self._journals = journals
        self._known_clock: Clock | None = None
        script.faults.double = self

    @cached_property
    def state(self) -> State:
        """State of the controller, and commands that change it."""
        from mockraft.server.state.state import State

        return State(self.nodes)

    @property
    def journals(self) -> dict[int, Journal]:
        """Journal of all nodes, including killed ones."""
        if self._journals is not None:
            return dict(self._journals())
        return {node_id: running.node.journal for node_id, running in self.nodes().items()}

    @property
    def now_ms(self) -> int:
        """Time of the controller's clock in milliseconds since the epoch."""
        return self.clock.now_ms()

    @property
    def failure(self) -> str | None:
        """Reason why nothing can be committed now: no majority works, or no leader is known. None if it can."""
        if (failure := self.quorum_failure) is not None:
            return failure
        controllers = [each.controller for each in self.nodes().values()]
        has_leader = any(each.epoch != STANDBY or each.raft.leader_endpoint is not None for each in controllers)
        return None if has_leader else "no controller is active"

    @property
    def node_failures(self) -> list[str]:
        """Nodes that cannot continue, each with the reason (`Controller.failure`)."""
        found = ((node_id, each.controller.failure) for node_id, each in self.nodes().items())
        return [f"node {node_id}: {failure}" for node_id, failure in found if failure is not None]

    @property
    def quorum_failure(self) -> str | None:
        """Reasons of the nodes that cannot continue if the others are no majority, else None."""
        failures = self.node_failures
        return "; ".join(failures) if 2 * len(failures) >= max(len(self.nodes()), 1) else None

    def advance(self, ms: int) -> None:
        """Advance the clock; sessions expire, periodic work runs and parked requests are answered, each at its time.

        TypeError if `ms` is no integer, ValueError if it is negative, and if the clock is the machine's: give the
        controller `clock=VirtualClock()`.
        """
        clock = self.clock
        if not isinstance(clock, VirtualClock):
            raise ValueError(
                "the controller runs on the machine's clock, which nobody can move:"
                " start it with clock=VirtualClock() (`mockraft serve --virtual-clock`)"
            )
        clock.advance(ms)

    def as_version(
        self, version: str | None, api_versions: Mapping[str, object] | Mapping[int, object] | None = None
    ) -> None:
        """Offer the APIs and features of another Kafka release ("3.9"; None: the default release).

        `api_versions` are the versions of single APIs by name or key: `(0, 1)`, "0-1" or "off". Connected clients
        notice when they send ApiVersions again, which most do on a new connection. ValueError for an unknown release
        or API.
        """
        own = next((each.config.release for each in self.nodes().values()), DEFAULT)
        offer = Offer(release(version or own), read_ranges(api_versions or {}))
        self.script.offer = offer
        for running in self.nodes().values():
            running.offer(offer)

    def restart(self) -> None:
        """Restart the controller in place: `RunningController.restart`. ValueError for a quorum."""
        self._alone("its nodes are restarted one by one, with `Quorum.restart`").restart()

    def load(self, path: str | Path) -> None:
        """Load a state that `State.save` wrote, or a snapshot of Kafka's; all connections are closed.

        OSError if the file cannot be read, ValueError if it is not a snapshot, for a controller with a data directory
        and for a quorum.
        """
        self._alone("no state can be loaded into it while it runs").reset_log(Path(path))

    def reset(self, *, state: bool = False) -> None:
        """Remove stubs, scenarios, faults and their plan, `as_version`, and the journal's entries; the port stays.

        With `state` the controller's log restarts too, and connections are closed: brokers that know its log cannot
        continue with another (a real one exits), so stop them before. ValueError then for a data directory and for a
        quorum.
        """
        if state:
            self._alone("its log cannot begin anew while it runs: reset it without its state").reset_log()
        try:
            self.script.faults.reset()
        finally:
            self.script.stubs.reset()
            if self.script.offer is not None:
                self.script.offer = None
                for running in self.nodes().values():
                    running.offer(None)
            for journal in self.journals.values():
                journal.reset()

    @property
    def clock(self) -> Clock:
        """The clock shared by all nodes; it keeps running when all nodes are killed."""
        for running in self.nodes().values():
            self._known_clock = running.clock
        if self._known_clock is None:
            raise NothingRunsError
        return self._known_clock

    def _alone(self, otherwise: str) -> RunningController:
        """Return the only controller; ValueError for a quorum, even if one node is left."""
        nodes = self.nodes()
        if not nodes:
            raise NothingRunsError
        running = next(iter(nodes.values()))
        if not running.config.is_alone:
            raise ValueError(f"this is a quorum (nodes {sorted(self.journals)}): {otherwise}")
        return running
