"""Everything that a test put in a controller's way, as one thing that several nodes may share."""

from __future__ import annotations

import itertools

from mockraft.server.controller.releases import Offer
from mockraft.server.stubs.faults.registry import Faults
from mockraft.server.stubs.rack import Rack
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
        """Put what a file says in the way."""
        for each in file.stubs:
            self.rack.add(each)
