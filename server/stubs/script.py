"""All stubs and faults of a controller, in one object that several nodes may share."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from mockraft.server.controller.settings.offers import Offer
from mockraft.server.events import Events
from mockraft.server.stubs.errors import StubError
from mockraft.server.stubs.faults.registry import Faults
from mockraft.server.stubs.stub_list import StubList

if TYPE_CHECKING:
    from mockraft.server.stubs.stub_file import StubFile


class Script:
    """The stubs and faults of a controller, or of every node of a quorum; a node that restarts keeps them."""

    def __init__(self) -> None:
        self.stubs = StubList()
        self.events = Events()
        self.events.silence = self._silence
        self.faults = Faults(self.events)
        self.offer: Offer | None = None
        """Features and versions that the nodes offer instead of those in their options."""
        self.entry_ids = itertools.count(1)
        """Ids of the entries of all nodes' journals, so that they order the events of a quorum."""

    def _silence(self, broker_id: int, since_ms: int) -> str:
        """Return what a stub did to the broker's last heartbeat, and the faults of its connections."""
        at_ms, done = self.stubs.heartbeats.get(broker_id, (0, ""))
        stubbed = f"its last heartbeat was {done}" if done and at_ms > since_ms else ""
        faults = ", ".join(fault.title for fault in self.faults.toxics if fault.fired and fault.may_meet(broker_id))
        return "; ".join(filter(None, (stubbed, f"while {faults} is on" if faults else "")))

    def load(self, file: StubFile) -> None:
        """Add everything in a file, or nothing. Raise StubError that names the field."""
        placed: list[str] = []
        faults: list[str] = []
        try:
            for index, each in enumerate(file.stubs):
                field = f"stubs[{index}]"
                placed.append(self.stubs.add(each).id)
            for index, tree in enumerate(file.faults):
                field = f"faults[{index}]"
                faults.append(self.faults.add_json(tree).id)
            field = "plan"
            if file.plan:
                self.faults.run(file.plan)
        except ValueError as wrong:
            for stub_id in placed:
                self.stubs.remove(stub_id)
            for fault_id in faults:
                self.faults.remove(fault_id)
            raise (wrong if isinstance(wrong, StubError) else StubError(str(wrong))).within(field) from None
