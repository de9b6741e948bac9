"""All that a test may ask of a running controller, or quorum, in one place: what the three doors stand on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mockraft.server.clock import Clock, VirtualClock
from mockraft.server.controller.releases import Offer, read_ranges, release_of
from mockraft.server.journal import Journal
from mockraft.server.running import NothingRunsError, RunningController
from mockraft.server.stubs.script import Script

if TYPE_CHECKING:
    from mockraft.server.state.state import State


class Double:
    """A running controller, or quorum, as a test double. Use it in the thread of its event loop.

    `nodes` gives what runs now, by node id, and `journals` those of nodes that do not run any more, too.
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
        """What the controller knows, and commands that change it."""
        from mockraft.server.state.state import State

        return State(self.nodes)

    @property
    def journals(self) -> dict[int, Journal]:
        """The journal of every node, of those that were killed too."""
        if self._journals is not None:
            return dict(self._journals())
        return {node_id: running.node.journal for node_id, running in self.nodes().items()}

    @property
    def now_ms(self) -> int:
        """The time of the controller's clock, milliseconds since the epoch."""
        return self.clock.now_ms()

    def advance(self, ms: int) -> None:
        """Move the clock on: sessions end, periodic work runs and parked requests are answered, each at its time.

        ValueError where the clock is the machine's: give the controller `clock=VirtualClock()`.
        """
        clock = self.clock
        if not isinstance(clock, VirtualClock):
            raise ValueError(
                "the controller runs on the machine's clock, which nobody can move:"
                " start it with clock=VirtualClock() (`mockraft serve --virtual-clock`)"
            )
        if ms < 0:
            raise ValueError(f"ms={ms}: time goes forward only")
        clock.advance(ms)

    def as_version(self, version: str | None, api_versions: Mapping[int | str, Any] | None = None) -> None:
        """Pass for a controller of another Kafka release ("3.9"; None for the one that this is made after).

        `api_versions` are the versions of single APIs by name or key: `(0, 1)`, "0-1" or "off". Clients that are
        connected learn it when they ask again, which most do on a new connection. ValueError for what is not there.
        """
        offer = Offer(None if version is None else release_of(version), read_ranges(api_versions or {}))
        self.script.offer = offer
        for running in self.nodes().values():
            running.offer(offer)

    def restart(self) -> None:
        """Restart the controller in place: `RunningController.restart`. ValueError for a quorum."""
        self._alone("its nodes are restarted one by one, with `Quorum.restart`").restart()

    def load(self, path: str | Path) -> None:
        """Put the controller into a state that `State.save` wrote, or a snapshot of Kafka's; connections break.

        OSError when the file cannot be read, ValueError when it is none, for a controller with a data directory and
        for a quorum.
        """
        self._alone("no state can be loaded into it while it runs").begin_anew(Path(path))

    def reset(self, *, state: bool = False) -> None:
        """Take away stubs, scenarios, faults and their plan, `as_version`, what the journals hold and what was
        changed of them; the port stays.

        With `state` the controller begins anew too, and connections break: brokers that know its log can not go on
        with another (a real one exits), so end them before. ValueError then for a data directory and for a quorum.
        """
        if state:
            self._alone("its log cannot begin anew while it runs: reset it without its state").begin_anew()
        try:
            self.script.faults.reset()
        finally:
            self.script.rack.reset()
            if self.script.offer is not None:
                self.script.offer = None
                for running in self.nodes().values():
                    running.offer(None)
            for journal in self.journals.values():
                journal.reset()

    @property
    def clock(self) -> Clock:
        """What all nodes go by; it goes on when all are killed."""
        for running in self.nodes().values():
            self._known_clock = running.clock
        if self._known_clock is None:
            raise NothingRunsError
        return self._known_clock

    def _alone(self, otherwise: str) -> RunningController:
        """The one controller; ValueError says what holds for a quorum, of which one node may be left."""
        nodes = self.nodes()
        if not nodes:
            raise NothingRunsError
        running = next(iter(nodes.values()))
        if not running.config.is_alone:
            raise ValueError(f"this is a quorum (nodes {sorted(self.journals)}): {otherwise}")
        return running
