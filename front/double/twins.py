"""Options of a controller that is a twin of a real one."""

from __future__ import annotations

import atexit
import random
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mockraft.twin import History, read_history, twin_state, write_twin
from mockraft.twin.brokers import controller_release

if TYPE_CHECKING:
    from mockraft.double.broker import SimulatedBroker
    from mockraft.double.controller import Controller
    from mockraft.double.options import BrokerOptions
    from mockraft.twin.brokers import Which


def twin_options(
    source: str | Path | History, at: str | int | None = None, *, has_brokers: bool = False
) -> dict[str, Any]:
    """Return the options with which a controller is the twin of a source at a point: its state, release and node id.

    SourceError, a ValueError, if there is no such state.
    """
    history = source if isinstance(source, History) else read_history(source)
    moment = history.moment(at)
    twin = twin_state(history, moment)
    folder = Path(tempfile.mkdtemp(prefix="mockraft-twin-"))
    # As long as the process: `reset(state=True)` reads the file again.
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return {
        "state": write_twin(folder / "twin.checkpoint", twin, moment.timestamp_ms),
        "node_id": twin.node_id,
        "release": controller_release(twin.release) if has_brokers else twin.release,
        "metadata_version": moment.image.metadata_version,
    }


def registered_brokers(
    controller: Controller, which: Which, rng: random.Random, options: BrokerOptions
) -> list[SimulatedBroker]:
    """Return simulated brokers, not started, that continue those registered with a controller."""
    from mockraft.double.broker import SimulatedBroker
    from mockraft.twin import brokers

    image, address = controller.running.controller.image, (controller.host, controller.port)
    own: dict[str, Any] = {"serve_clients": True, **options}
    configs = brokers.registered_brokers(image, which, controller.cluster_id, (address,), rng, **own)
    return brokers.continued(map(SimulatedBroker, configs), image)
