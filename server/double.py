"""All that a test may ask of a running controller, or quorum, in one place: what the three doors stand on."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mockraft.server.journal import Journal
from mockraft.server.running import RunningController
from mockraft.server.stubs.script import Script


class Double:
    """A running controller, or quorum, as a test double. Use it in the thread of its event loop.

    `nodes` gives what runs now, by node id.
    """

    def __init__(self, nodes: Callable[[], Mapping[int, RunningController]], script: Script) -> None:
        self.nodes = nodes
        self.script = script

    @property
    def journals(self) -> dict[int, Journal]:
        """The journal of every running node."""
        return {node_id: running.node.journal for node_id, running in self.nodes().items()}
