"""Registered brokers and controllers (Kafka's ClusterControlManager, BrokerRegistration)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from operator import attrgetter
from typing import Any, NamedTuple, TypeAlias, TypeVar, TypeVarTuple

from mockraft.releases import Behaviour, MetadataVersion
from mockraft.wire import directory_ids
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.records.broker_registration_change_record import BrokerRegistrationChangeRecord
from mockraft.wire.records.fence_broker_record import FenceBrokerRecord
from mockraft.wire.records.register_broker_record import BrokerEndpoint, BrokerFeature, RegisterBrokerRecord
from mockraft.wire.records.register_controller_record import (
    ControllerEndpoint,
    ControllerFeature,
    RegisterControllerRecord,
)
from mockraft.wire.records.unfence_broker_record import UnfenceBrokerRecord
from mockraft.wire.records.unregister_broker_record import UnregisterBrokerRecord
from mockraft.wire.records.unregister_controller_record import UnregisterControllerRecord


class ReplayError(ValueError):
    """Raised for a record that no controller would have written at its place in the log."""


OthersT = TypeVarTuple("OthersT")
ResultT = TypeVar("ResultT")

NO_CHANGE = 0
FENCE = 1
UNFENCE = -1
IN_CONTROLLED_SHUTDOWN = 1


class Endpoint(NamedTuple):
    """One listener of a node; `security_protocol` is Kafka's number (0 is PLAINTEXT)."""

    name: str
    host: str
    port: int
    security_protocol: int


@dataclass(frozen=True, slots=True)
class VersionRange:
    """Supported levels of one feature of a node, inclusive."""

    min_version: int
    max_version: int


Levels: TypeAlias = tuple[tuple[str, int, int], ...]
"""The features of a node: name, lowest and highest level of each."""

FEATURES_KEPT, SETS_KEPT = 32, 16
"""Sizes of the caches for sets of features, which most nodes share: features in a set, and sets."""

_ENDPOINT = attrgetter(*Endpoint._fields)
_LEVELS = attrgetter("name", "min_supported_version", "max_supported_version")


def levels_of(features: Iterable[Any]) -> Levels:
    """Return the features of a request or record."""
    return tuple(map(_LEVELS, features))


def kept_by_features(function: Callable[[Levels, *OthersT], ResultT]) -> Callable[[Sequence[Any], *OthersT], ResultT]:
    """Decorate a function of levels: it takes a request's or record's features, and results for few are kept."""
    kept = lru_cache(SETS_KEPT)(function)

    def of_features(features: Sequence[Any], *others: *OthersT) -> ResultT:
        return (kept if len(features) <= FEATURES_KEPT else function)(levels_of(features), *others)

    return of_features


@kept_by_features
def _ranges(levels: Levels) -> Mapping[str, VersionRange]:
    return {name: VersionRange(low, high) for name, low, high in levels}


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerRegistration:
    """One broker. Directories are 16-byte ids, `log_dirs` in Java's order; `cordoned_log_dirs` None: unknown.

    `registration_offset` is that of the RegisterBrokerRecord (of the snapshot, if loaded from one). `offline_log_dirs`
    are those reported offline since.
    """

    broker_id: int
    broker_epoch: int
    incarnation_id: bytes
    endpoints: tuple[Endpoint, ...]
    features: Mapping[str, VersionRange]
    rack: str | None
    fenced: bool
    in_controlled_shutdown: bool
    is_migrating_zk_broker: bool = False
    log_dirs: tuple[bytes, ...] = ()
    cordoned_log_dirs: tuple[bytes, ...] | None = None
    registration_offset: int = field(default=-1, compare=False)
    offline_log_dirs: tuple[bytes, ...] = field(default=(), compare=False)

    @property
    def is_active(self) -> bool:
        """True if it may lead: neither fenced nor shutting down."""
        return not self.fenced and not self.in_controlled_shutdown

    @property
    def has_uncordoned_log_dirs(self) -> bool:
        """True if a new replica may be placed on it (KIP-1066)."""
        return (
            not self.log_dirs or self.cordoned_log_dirs is None or not set(self.log_dirs) <= {*self.cordoned_log_dirs}
        )

    def has_online_dir(self, directory_id: bytes) -> bool:
        """Return True if a replica assigned to this directory is online."""
        if directory_id in (directory_ids.UNASSIGNED, directory_ids.MIGRATING):
            return True
        return directory_id != directory_ids.LOST and (not self.log_dirs or directory_id in self.log_dirs)

    def to_record(self, version: MetadataVersion) -> RecordAt:
        """Return the RegisterBrokerRecord of this registration, as far as the version can express it."""
        cordoned = self.cordoned_log_dirs if version.has(Behaviour.CORDONED_LOG_DIRS) else None
        record = RegisterBrokerRecord(
            broker_id=self.broker_id,
            is_migrating_zk_broker=self.is_migrating_zk_broker and version.has(Behaviour.ZK_MIGRATION),
            incarnation_id=self.incarnation_id,
            broker_epoch=self.broker_epoch,
            end_points=[
                BrokerEndpoint(name=e.name, host=e.host, port=e.port, security_protocol=e.security_protocol)
                for e in self.endpoints
            ],
            features=[
                BrokerFeature(name=name, min_supported_version=r.min_version, max_supported_version=r.max_version)
                for name, r in self.features.items()
            ],
            rack=self.rack,
            fenced=self.fenced,
            in_controlled_shutdown=self.in_controlled_shutdown,
            log_dirs=list(self.log_dirs) if version.has(Behaviour.DIRECTORY_ASSIGNMENT) else [],
            cordoned_log_dirs=None if cordoned is None else list(cordoned),
        )
        return RecordAt(record, version.record_versions["RegisterBrokerRecord"])


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerRegistration:
    """One controller's registration of endpoints and features (KIP-919)."""

    controller_id: int
    incarnation_id: bytes
    zk_migration_ready: bool
    endpoints: tuple[Endpoint, ...]
    features: Mapping[str, VersionRange]

    def to_record(self) -> RecordAt:
        """Return the RegisterControllerRecord of this registration."""
        record = RegisterControllerRecord(
            controller_id=self.controller_id,
            incarnation_id=self.incarnation_id,
            zk_migration_ready=self.zk_migration_ready,
            end_points=[
                ControllerEndpoint(name=e.name, host=e.host, port=e.port, security_protocol=e.security_protocol)
                for e in self.endpoints
            ],
            features=[
                ControllerFeature(name=name, min_supported_version=r.min_version, max_supported_version=r.max_version)
                for name, r in self.features.items()
            ],
        )
        return RecordAt(record, 0)


@dataclass(slots=True)
class ClusterImage:
    """All registrations.

    `broker_by_directory` is an index over the brokers' online directories; `changes` counts changes of brokers.
    """

    brokers: dict[int, BrokerRegistration] = field(default_factory=dict)
    controllers: dict[int, ControllerRegistration] = field(default_factory=dict)
    broker_by_directory: dict[bytes, int] = field(default_factory=dict)
    changes: int = field(default=0, compare=False)

    def default_dir(self, broker_id: int) -> bytes:
        """Return the directory of a new replica on this broker (ClusterControlManager.defaultDir).

        The only one; UNASSIGNED if it has several or is not registered; MIGRATING if it reported none.
        """
        registration = self.brokers.get(broker_id)
        if registration is None:
            return directory_ids.UNASSIGNED
        if not registration.log_dirs:
            return directory_ids.MIGRATING
        return registration.log_dirs[0] if len(registration.log_dirs) == 1 else directory_ids.UNASSIGNED

    def apply_register_broker(self, record: RegisterBrokerRecord, offset: int) -> None:
        """Add or replace a registration."""
        self._put(
            BrokerRegistration(
                broker_id=record.broker_id,
                broker_epoch=record.broker_epoch,
                incarnation_id=record.incarnation_id,
                endpoints=tuple(map(Endpoint._make, map(_ENDPOINT, record.end_points))),
                features=_ranges(record.features),
                rack=record.rack,
                fenced=record.fenced,
                in_controlled_shutdown=record.in_controlled_shutdown,
                is_migrating_zk_broker=record.is_migrating_zk_broker,
                log_dirs=tuple(directory_ids.in_java_order(record.log_dirs)),
                cordoned_log_dirs=None if record.cordoned_log_dirs is None else tuple(record.cordoned_log_dirs),
                registration_offset=offset,
            )
        )

    def apply_unregister_broker(self, record: UnregisterBrokerRecord, offset: int) -> None:
        """Remove the broker and its directories."""
        self._drop_directories(self._registered(record.broker_id, record.broker_epoch))
        del self.brokers[record.broker_id]
        self.changes += 1

    def apply_registration_change(self, record: BrokerRegistrationChangeRecord, offset: int) -> None:
        """Change parts of a registration. Empty log dirs and cordoned None are unchanged."""
        registration = self._registered(record.broker_id, record.broker_epoch)
        cordoned = record.cordoned_log_dirs
        gone = tuple(each for each in registration.log_dirs if record.log_dirs and each not in record.log_dirs)
        self._put(
            replace(
                registration,
                offline_log_dirs=registration.offline_log_dirs + gone,
                fenced=registration.fenced if record.fenced == NO_CHANGE else record.fenced == FENCE,
                in_controlled_shutdown=registration.in_controlled_shutdown
                if record.in_controlled_shutdown == NO_CHANGE
                else record.in_controlled_shutdown == IN_CONTROLLED_SHUTDOWN,
                log_dirs=tuple(directory_ids.in_java_order(record.log_dirs or registration.log_dirs)),
                cordoned_log_dirs=registration.cordoned_log_dirs if cordoned is None else tuple(cordoned),
            )
        )

    def set_fenced(self, record: FenceBrokerRecord | UnfenceBrokerRecord, fenced: bool) -> None:
        """Fence or unfence a broker; record types of old logs."""
        self._put(replace(self._registered(record.id, record.epoch), fenced=fenced))

    def apply_register_controller(self, record: RegisterControllerRecord, offset: int) -> None:
        """Add or replace a controller's registration."""
        self.controllers[record.controller_id] = ControllerRegistration(
            controller_id=record.controller_id,
            incarnation_id=record.incarnation_id,
            zk_migration_ready=record.zk_migration_ready,
            endpoints=tuple(map(Endpoint._make, map(_ENDPOINT, record.end_points))),
            features=_ranges(record.features),
        )

    def apply_unregister_controller(self, record: UnregisterControllerRecord, offset: int) -> None:
        """Remove a controller's registration."""
        del self.controllers[record.controller_id]

    def to_records(self, version: MetadataVersion) -> Iterator[RecordAt]:
        """Return the registrations as records, brokers first (ClusterImage.write)."""
        for broker in self.brokers.values():
            yield broker.to_record(version)
        if version.has(Behaviour.CONTROLLER_REGISTRATION):
            for controller in self.controllers.values():
                yield controller.to_record()

    def _registered(self, broker_id: int, broker_epoch: int) -> BrokerRegistration:
        registration = self.brokers.get(broker_id)
        if registration is None:
            raise ReplayError(f"broker {broker_id} is not registered")
        if registration.broker_epoch != broker_epoch:
            raise ReplayError(f"broker {broker_id} is registered at another epoch")
        return registration

    def _put(self, registration: BrokerRegistration) -> None:
        previous = self.brokers.get(registration.broker_id)
        if previous is not None:
            self._drop_directories(previous)
        self.brokers[registration.broker_id] = registration
        self.changes += 1
        for directory_id in registration.log_dirs:
            self.broker_by_directory[directory_id] = registration.broker_id

    def _drop_directories(self, registration: BrokerRegistration) -> None:
        for directory_id in registration.log_dirs:
            self.broker_by_directory.pop(directory_id, None)
