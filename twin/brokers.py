"""Simulated brokers for the brokers that are registered in a state, so that its twin lives.

A broker continues the registered one: its id, incarnation, directories, rack and features, so that the controller takes
it for the same process, which has moved to another address. A fenced broker was gone; as a simulated one it comes back
as a new incarnation after a clean shutdown. A directory that partitions assign to a broker, and that its registration
lacks, has failed: the broker has it as an offline one, and so does not create its replicas elsewhere, as in Kafka.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Any, Literal, TypeVar

from mockraft.brokers.broker import SimulatedBroker
from mockraft.brokers.config import BrokerConfig, draw_config
from mockraft.brokers.fleet.fleet import Fleet
from mockraft.brokers.lifecycle import ReadyToUnfence
from mockraft.brokers.log_dirs.placement import ALL, CORDONED_LOG_DIRS, DirectoryAt
from mockraft.kafka_configs.config_keys import BROKER
from mockraft.releases import release
from mockraft.server.controller.image import BrokerRegistration, Image
from mockraft.wire import uuids
from mockraft.wire.directory_ids import LOST, MIGRATING, UNASSIGNED

B = TypeVar("B", bound=SimulatedBroker)

RELEASE_MIN = "3.9"
"""Oldest release whose controllers tell simulated brokers where the leader is; older ones need static voters."""

_FAILED = "failed directory "

Addresses = tuple[tuple[str, int], ...]
Which = Literal["live", "all"]
"""The brokers that were not fenced, or all registered ones."""


def registered_brokers(
    image: Image, which: Which, cluster_id: str, bootstrap: Addresses, rng: random.Random, **options: Any
) -> list[BrokerConfig]:
    """Return configs for the registered brokers, by id; `options` are those of `draw_config`."""
    failed = _failed_directories(image)
    return [
        _continuing(
            draw_config(broker_id, cluster_id, bootstrap, rng, **options),
            registration,
            _cordoned_value(image, broker_id),
            failed.get(broker_id, ()),
        )
        for broker_id, registration in sorted(image.cluster.brokers.items())
        if which == "all" or not registration.fenced
    ]


def continued(brokers: Iterable[B], image: Image) -> list[B]:
    """Return the brokers, not started yet, as ones that run already if they were not fenced.

    A broker that asks to be fenced while it starts would leave its ISRs.
    """
    found = [*brokers]
    for broker in found:
        if not image.cluster.brokers[broker.config.broker_id].fenced:
            broker.happen(ReadyToUnfence())
    return found


def registered_fleet(image: Image, which: Which, cluster_id: str, bootstrap: Addresses, rng: random.Random) -> Fleet:
    """Return a fleet of the registered brokers that serves clients, not started."""
    fleet = Fleet(registered_brokers(image, which, cluster_id, bootstrap, rng, serve_clients=True))
    continued(fleet.brokers, image)
    return fleet


def _listed(value: str) -> list[str]:
    return [each.strip() for each in value.split(",") if each.strip() not in ("", ALL)]


def _cordoned_value(image: Image, broker_id: int) -> str:
    """Return the dynamic cordoned.log.dirs of a broker: its own, else the cluster's default."""
    values = [image.configs.get((BROKER, name), {}).get(CORDONED_LOG_DIRS) for name in (str(broker_id), "")]
    return next((each for each in values if each is not None), "")


def _failed_directories(image: Image) -> dict[int, list[bytes]]:
    """Return the directories that partitions assign to each registered broker and that its registration lacks."""
    found: dict[int, set[bytes]] = {}
    for topic in image.topics.by_id.values():
        for partition in topic.partitions.values():
            for broker_id, directory_id in zip(partition.replicas, partition.directories, strict=False):
                found.setdefault(broker_id, set()).add(directory_id)
    return {
        broker_id: sorted(found.get(broker_id, set()) - {*registration.log_dirs, UNASSIGNED, LOST, MIGRATING})
        for broker_id, registration in image.cluster.brokers.items()
    }


def _reason(directory_id: bytes) -> str:
    return _FAILED + uuids.text_of(directory_id)


def with_failed(config: BrokerConfig, directory_ids: Collection[bytes]) -> BrokerConfig:
    """Return the config of a broker that finds these of its directories unreadable when it starts."""
    failed = {each.path: _reason(each.directory_id) for each in config.log_dirs if each.directory_id in directory_ids}
    left = tuple(each for each in config.log_dirs if each.path not in failed)
    return replace(config, log_dirs=left, offline_log_dirs={**config.offline_log_dirs, **failed})


def with_restored(config: BrokerConfig, wanted: int | str) -> BrokerConfig:
    """Return the config with a failed directory, by id or its number among them, that is back. LookupError."""
    for number, (path, reason) in enumerate(config.offline_log_dirs.items()):
        directory_id = reason.removeprefix(_FAILED)
        if wanted in (number, directory_id):
            left = {each: why for each, why in config.offline_log_dirs.items() if each != path}
            back = DirectoryAt(path, uuids.read_text(directory_id))
            return replace(config, log_dirs=(*config.log_dirs, back), offline_log_dirs=left)
    raise LookupError(f"broker {config.broker_id} has no failed directory {wanted}")


def _continuing(
    drawn: BrokerConfig, registration: BrokerRegistration, cordoned_value: str, failed: Collection[bytes]
) -> BrokerConfig:
    ids = registration.log_dirs
    cordoned_ids = registration.cordoned_log_dirs or ()
    # The source's cordoned.log.dirs names its own paths: first of those that are cordoned, then of what soon will be.
    others = [each for each in ids if each not in cordoned_ids]
    paths = dict(zip([*cordoned_ids, *others], _listed(cordoned_value), strict=False))
    log_dirs = tuple(
        DirectoryAt(paths.get(each, f"/twin/broker-{drawn.broker_id}/d{n}"), each) for n, each in enumerate(ids)
    )
    cordoned = [each.path for each in log_dirs if each.directory_id in cordoned_ids]
    return replace(
        drawn,
        incarnation_id=drawn.incarnation_id if registration.fenced else registration.incarnation_id,
        # Kafka reads it only when every directory is available.
        previous_broker_epoch=-1 if failed else registration.broker_epoch,
        log_dirs=log_dirs or drawn.log_dirs,
        offline_log_dirs={f"/twin/broker-{drawn.broker_id}/failed-{n}": _reason(each) for n, each in enumerate(failed)},
        cordoned_log_dirs=",".join(cordoned),
        rack=registration.rack,
        features={name: (each.min_version, each.max_version) for name, each in registration.features.items()}
        or drawn.features,
    )


def controller_release(of: str) -> str:
    """Return the release of a twin with simulated brokers: this one, unless they could not find its leader."""
    return of if release(of).is_since(RELEASE_MIN) else RELEASE_MIN
