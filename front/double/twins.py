"""Options of a controller that is a twin of a real one."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from pathlib import Path
from typing import Any

from mockraft.twin import read_history, twin_state, write_twin


def twin_options(source: str | Path, at: str | int | None = None) -> dict[str, Any]:
    """Return the options with which a controller is the twin of a source at a point: its state, release and node id.

    SourceError, a ValueError, if there is no such state.
    """
    history = read_history(source)
    moment = history.moment(at)
    twin = twin_state(history, moment)
    folder = Path(tempfile.mkdtemp(prefix="mockraft-twin-"))
    # As long as the process: `reset(state=True)` reads the file again.
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return {
        "state": write_twin(folder / "twin.checkpoint", twin, moment.timestamp_ms),
        "node_id": twin.node_id,
        "release": twin.release,
        "metadata_version": moment.image.metadata_version,
    }
