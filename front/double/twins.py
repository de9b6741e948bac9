"""Options of a controller that is a twin of a real one."""

from __future__ import annotations

import atexit
import dataclasses
import random
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mockraft.brokers.config import BrokerConfig, draw_config
from mockraft.brokers.log_dirs.placement import DirectoryAt
from mockraft.releases import release
from mockraft.server.clock import VIRTUAL_START_MS, VirtualClock
from mockraft.server.controller.log.snapshot import Snapshot, SnapshotId
from mockraft.twin import History, read_history, twin_state, write_twin
from mockraft.twin.brokers import controller_release
from mockraft.twin.history import last_contained_ms
from mockraft.wire import uuids
from mockraft.wire.records.register_broker_record import RegisterBrokerRecord

if TYPE_CHECKING:
    from mockraft.double.broker import SimulatedBroker
    from mockraft.double.controller import Controller
    from mockraft.double.options import BrokerOptions
    from mockraft.double.plan.steps import Step
    from mockraft.server.controller.image import Image
    from mockraft.twin.brokers import Which

_OF_REGISTRATIONS = ("start", "unregister")


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


def virtual_clock(state: Path) -> VirtualClock:
    """Return a virtual clock that begins when the source of a twin's state ends."""
    return VirtualClock(last_contained_ms(Snapshot(SnapshotId(0, 0), state)) or VIRTUAL_START_MS)


def registered_config(controller: Controller, broker_id: int) -> BrokerConfig | None:
    """Return the config of a simulated broker that continues a registered one, or None."""
    brokers = registered_brokers(controller, "all", controller.rng, {})
    return next((each.config for each in brokers if each.config.broker_id == broker_id), None)


def drawn_config(controller: Controller, broker_id: int) -> BrokerConfig:
    """Return the config of a new broker for a controller."""
    address = (controller.host, controller.port)
    return draw_config(broker_id, controller.cluster_id, (address,), controller.rng, serve_clients=True)


def started_with(config: BrokerConfig, options: Mapping[str, Any]) -> BrokerConfig:
    """Return a broker's config with the options of the step `start` of a plan."""
    own: dict[str, Any] = {}
    if "release" in options:
        own["features"] = release(options["release"]).feature_ranges()
    if "features" in options:
        own["features"] = {name: (low, high) for name, (low, high) in options["features"].items()}
    if "rack" in options:
        own["rack"] = options["rack"]
    if "directories" in options:
        ids = map(uuids.read_text, options["directories"])
        own["offline_log_dirs"] = {}
        own["log_dirs"] = tuple(
            DirectoryAt(f"/twin/broker-{config.broker_id}/d{n}", each) for n, each in enumerate(ids)
        )
    return dataclasses.replace(config, **own)


def with_registrations(
    steps: list[Step], image: Image, source: str | Path | History, at: str | int | None
) -> list[Step]:
    """Return the steps in which brokers that are not registered start with the last registration in the log up to `at`.

    It gives directories, rack and features where the step does not. WireError for a record of a newer Kafka.
    """
    found = [(each.kind, broker_id) for each in steps if each.kind in _OF_REGISTRATIONS for broker_id in _ids(each)]
    started, removed = ({broker_id for kind, broker_id in found if kind == each} for each in _OF_REGISTRATIONS)
    missing = started - (image.cluster.brokers.keys() - removed)
    if not missing:
        return steps
    history = source if isinstance(source, History) else read_history(source)
    end_offset = history.end_of(at)
    last: dict[int, dict[str, Any]] = {}
    for logged in history.records():
        if logged.offset >= end_offset:
            break
        if isinstance(logged.record, RegisterBrokerRecord) and logged.record.broker_id in missing:
            last[logged.record.broker_id] = _options_of(logged.record)
    return [part for each in steps for part in _completed(each, last)]


def _completed(step: Step, last: Mapping[int, Mapping[str, Any]]) -> list[Step]:
    if step.kind != "start" or not last.keys() & {*_ids(step)}:
        return [step]
    given = {} if isinstance(step.argument, list) else {**step.argument}
    hidden = {"features"} if "release" in given else set()
    parts = []
    for broker_id in _ids(step):
        known = {name: value for name, value in last.get(broker_id, {}).items() if name not in hidden}
        options = {**known, **given}
        parts.append(step._replace(argument={**options, "brokers": [broker_id]} if options else [broker_id]))
    return parts


def _options_of(record: RegisterBrokerRecord) -> dict[str, Any]:
    options = {
        "directories": [uuids.text_of(each) for each in record.log_dirs],
        "rack": record.rack,
        "features": {each.name: [each.min_supported_version, each.max_supported_version] for each in record.features},
    }
    return {name: value for name, value in options.items() if value}


def _ids(step: Step) -> list[int]:
    found: list[int] = step.argument if isinstance(step.argument, list) else step.argument["brokers"]
    return found


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
