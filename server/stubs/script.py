"""Everything that a test put in a controller's way, as one thing that several nodes may share."""

from __future__ import annotations


class Script:
    """The stubs and faults of a controller, or of every node of a quorum; a node that restarts keeps them."""
