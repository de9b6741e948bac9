"""Options of a controller that is a twin of a real one."""

from __future__ import annotations

import atexit
import dataclasses
import shutil
import tempfile
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mockraft.brokers.config import BrokerConfig, draw_config
from mockraft.brokers.log_dirs.placement import DirectoryAt
from mockraft.kafka_api.clock import VIRTUAL_START_MS, VirtualClock
from mockraft.releases import release
from mockraft.server.controller.log.snapshot import Snapshot, SnapshotId
from mockraft.twin import History, read_history, twin_state, write_twin
from mockraft.twin.brokers import continued, controller_release, registered_brokers, with_failed
from mockraft.twin.history import Point, last_contained_ms
from mockraft.wire import uuids
from mockraft.wire.directory_ids import draw_uuid
from mockraft.wire.records.register_broker_record import RegisterBrokerRecord

if TYPE_CHECKING:
    from mockraft.server.controller.image import Image
    from mockraft.testing.broker import SimulatedBroker
    from mockraft.testing.options import BrokerOptions
    from mockraft.testing.plan.steps import Step
    from mockraft.testing.started_brokers import StartedBrokers
    from mockraft.twin.brokers import Which

Source = str | Path | History

_OF_REGISTRATIONS = ("start", "unregister")


def twin_options(source: Source, at: Point, *, has_brokers: bool) -> dict[str, Any]:
    """Return the options with which a controller is the twin of a source at a point: its state, release and node id.

    SourceError, a ValueError, if there is no such state.
    """
    history = source if isinstance(source, History) else read_history(source)
    moment = history.moment(at)
    twin = twin_state(history, moment)
    folder = Path(tempfile.mkdtemp(prefix="mockraft-twin-"))
    # As long as the process: `reset(state=True)` reads the file again.
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    own = {"cluster_id": history.cluster_id} if history.cluster_id else {}
    return {
        **own,
        "state": write_twin(folder / "twin.checkpoint", twin, moment.timestamp_ms),
        "node_id": twin.node_id,
        "release": controller_release(twin.release) if has_brokers else twin.release,
        "metadata_version": moment.image.metadata_version,
    }


def virtual_clock(state: Path) -> VirtualClock:
    """Return a virtual clock that begins when the source of a twin's state ends."""
    return VirtualClock(last_contained_ms(Snapshot(SnapshotId(0, 0), state)) or VIRTUAL_START_MS)


def registered_config(started: StartedBrokers, broker_id: int) -> BrokerConfig | None:
    """Return the config of a simulated broker that continues a registered one, or None."""
    return next((each for each in _registered_configs(started, "all") if each.broker_id == broker_id), None)


def drawn_config(started: StartedBrokers, broker_id: int) -> BrokerConfig:
    """Return the config of a new broker for a controller."""
    return draw_config(
        broker_id, started.cluster_id, started.addresses, started.rng, serve_clients=True, **started.security
    )


def next_config(started: StartedBrokers, before: SimulatedBroker) -> BrokerConfig:
    """Return the config with which a broker starts again: directories that failed stay so."""
    config = with_failed(before.config, before.node.directories.offline)
    # Kafka reads the epoch of a clean shutdown only when every directory is available.
    is_clean = before.life.shutdown_answered and not config.offline_log_dirs
    return dataclasses.replace(
        config,
        incarnation_id=draw_uuid(started.rng),
        previous_broker_epoch=before.life.broker_epoch if is_clean else -1,
        listeners=tuple(each._replace(port=0) for each in config.listeners),
    )


def continuing_config(
    started: StartedBrokers, broker_id: int, source: Source, at: Point, own: BrokerOptions
) -> BrokerConfig | None:
    """Return the config of a twin's broker that starts again, registered or once in the log, with `own` options.

    None for a new broker, and for one that is given directories or a port.
    """
    if own.keys() - {each.name for each in dataclasses.fields(BrokerConfig)}:
        return None
    config = _continuing(started, broker_id, source, at)
    return None if config is None else dataclasses.replace(config, **own)  # type: ignore[arg-type,misc]  # fields of BrokerConfig


def _continuing(started: StartedBrokers, broker_id: int, source: Source, at: Point) -> BrokerConfig | None:
    before = started.by_id.get(broker_id)
    if before is not None and before.stopped.is_set():
        return next_config(started, before)
    if (registered := registered_config(started, broker_id)) is not None:
        return registered
    options = _last_registrations({broker_id}, source, at).get(broker_id)
    return None if options is None else started_with(drawn_config(started, broker_id), options)


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


def with_registrations(steps: list[Step], image: Image, source: Source, at: Point) -> list[Step]:
    """Return the steps in which brokers that are not registered start with the last registration in the log up to `at`.

    It gives directories, rack and features, as the option `each`, where the step does not. WireError for a record of a
    newer Kafka.
    """
    found = [(each.kind, broker_id) for each in steps if each.kind in _OF_REGISTRATIONS for broker_id in _ids(each)]
    started, removed = ({broker_id for kind, broker_id in found if kind == each} for each in _OF_REGISTRATIONS)
    missing = started - (image.cluster.brokers.keys() - removed)
    if not missing:
        return steps
    last = _last_registrations(missing, source, at)
    return [_completed(each, last) for each in steps]


def _last_registrations(broker_ids: Collection[int], source: Source, at: Point) -> dict[int, dict[str, Any]]:
    """Return what the last registrations in the log up to `at` have, as options of the step `start`."""
    history = source if isinstance(source, History) else read_history(source)
    end_offset = history.end_of(at)
    last: dict[int, dict[str, Any]] = {}
    for logged in history.records():
        if logged.offset >= end_offset:
            break
        if isinstance(logged.record, RegisterBrokerRecord) and logged.record.broker_id in broker_ids:
            last[logged.record.broker_id] = _options_of(logged.record)
    return last


def _completed(step: Step, last: Mapping[int, Mapping[str, Any]]) -> Step:
    found = (
        {broker_id: last[broker_id] for broker_id in _ids(step) if broker_id in last} if step.kind == "start" else {}
    )
    if not found:
        return step
    given: Mapping[str, Any] = {"brokers": step.argument} if isinstance(step.argument, list) else step.argument
    each = {**found, **given.get("each", {})}
    return step._replace(argument={**given, "each": each})


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


async def start_registered(started: StartedBrokers, which: Which, options: BrokerOptions) -> None:
    """Start simulated brokers that continue those registered with a controller, and wait until they run."""
    image = started.double.leading.controller.image
    configs = _registered_configs(started, which, **options)
    await started.start(configs, image.cluster.brokers, lambda brokers: continued(brokers, image))


def _registered_configs(started: StartedBrokers, which: Which, **options: Any) -> list[BrokerConfig]:
    image = started.double.leading.controller.image
    own = {"serve_clients": True, **started.security, **options}
    return registered_brokers(image, which, started.cluster_id, started.addresses, started.rng, **own)
