"""A twin of a real cluster's control plane: its metadata, copied, as a running controller.

A *history* is what a source has of a metadata log: one snapshot, or none, and the batches that follow it without a gap.
`sources` reads it from a controller's data directory, a snapshot or segment file; `captured` from captured Fetch and
FetchSnapshot responses. Sources are opened for reading only, never locked and never written, so that they may belong to
a running controller; what is damaged ends the history there, and a note says so.

Records define the state. `History.moment(point)` applies those up to a point, an offset or a time, and returns the
image with the id that a snapshot of it would have; `twin_state` makes a saved state of that, with which a mockraft
controller begins. The twin is the only voter of its own quorum and has a node id that no node of the source has. The
registrations of the source's controllers stay, because Kafka asks them before it upgrades a feature.

`changes` lists the differences between two images, in Kafka's words; `each_change` those that each batch made.
"""

from mockraft.twin.changes import Change, changes, each_change
from mockraft.twin.history import History, Moment, SourceError
from mockraft.twin.sources import read_history
from mockraft.twin.state import TwinState, twin_state, write_twin

__all__ = [
    "Change",
    "History",
    "Moment",
    "SourceError",
    "TwinState",
    "changes",
    "each_change",
    "read_history",
    "twin_state",
    "write_twin",
]
