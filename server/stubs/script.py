"""Everything that a test put in a controller's way, as one thing that several nodes may share."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from mockraft.server.controller.releases import Offer
from mockraft.server.stubs.errors import StubError
from mockraft.server.stubs.faults.registry import Faults
from mockraft.server.stubs.rack import Rack

if TYPE_CHECKING:
    from mockraft.server.stubs.stub_file import StubFile


class Script:
    """The stubs and faults of a controller, or of every node of a quorum; a node that restarts keeps them."""

    def __init__(self) -> None:
        self.rack = Rack()
        self.faults = Faults()
        self.offer: Offer | None = None
        """What the nodes offer in place of what their options say."""
        self.entry_ids = itertools.count(1)
        """Ids of the entries of all nodes' journals, so that they order what happened in a quorum."""

    def load(self, file: StubFile) -> None:
        """Put what a file says in the way: all of it, or nothing. Raises StubError that names the field."""
        placed: list[str] = []
        faults: list[str] = []
        try:
            for index, each in enumerate(file.stubs):
                field = f"stubs[{index}]"
                placed.append(self.rack.add(each).id)
            for index, tree in enumerate(file.faults):
                field = f"faults[{index}]"
                faults.append(self.faults.add_json(tree).id)
            field = "plan"
            if file.plan:
                self.faults.run(file.plan)
        except ValueError as wrong:
            for stub_id in placed:
                self.rack.remove(stub_id)
            for fault_id in faults:
                self.faults.remove(fault_id)
            raise (wrong if isinstance(wrong, StubError) else StubError(str(wrong))).within(field) from None
