"""The nodes of a cluster as the log names them (Kafka's BrokerRegistration and ControllerRegistration)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from mockraft.wire.directory_ids import LOST, MIGRATING, UNASSIGNED

if TYPE_CHECKING:
    from mockraft.wire.records.broker_registration_change_record import BrokerRegistrationChangeRecord
    from mockraft.wire.records.register_broker_record import RegisterBrokerRecord
    from mockraft.wire.records.register_controller_record import RegisterControllerRecord


class Endpoint(NamedTuple):
    """The endpoint of a node; `security_protocol` is Kafka's number (0 is PLAINTEXT)."""

    host: str
    port: int
    security_protocol: int


class BrokerNode(NamedTuple):
    """A registered broker. `endpoints` is by listener name, `log_dirs` are 16-byte ids of its online directories."""

    broker_id: int
    broker_epoch: int
    endpoints: Mapping[str, Endpoint]
    rack: str | None
    fenced: bool
    in_controlled_shutdown: bool
    log_dirs: tuple[bytes, ...]

    @classmethod
    def from_record(cls, record: RegisterBrokerRecord) -> BrokerNode:
        """Return the broker of a RegisterBrokerRecord."""
        return cls(
            record.broker_id,
            record.broker_epoch,
            {each.name: Endpoint(each.host, each.port, each.security_protocol) for each in record.end_points},
            record.rack,
            record.fenced,
            record.in_controlled_shutdown,
            tuple(record.log_dirs),
        )

    def merge(self, change: BrokerRegistrationChangeRecord) -> BrokerNode:
        """Return this broker after a BrokerRegistrationChangeRecord; fields that are 0 or empty stay unchanged."""
        return self._replace(
            fenced=change.fenced > 0 if change.fenced else self.fenced,
            in_controlled_shutdown=change.in_controlled_shutdown > 0 or self.in_controlled_shutdown,
            log_dirs=tuple(change.log_dirs) or self.log_dirs,
        )

    def has_online_dir(self, directory_id: bytes) -> bool:
        """Return True if a replica that the log places there is online (Kafka's DirectoryId.isOnline)."""
        if directory_id in (UNASSIGNED, MIGRATING):
            return True
        return directory_id != LOST and (not self.log_dirs or directory_id in self.log_dirs)


class ControllerNode(NamedTuple):
    """A controller that registered its endpoints (KIP-919)."""

    controller_id: int
    endpoints: Mapping[str, Endpoint]

    @classmethod
    def from_record(cls, record: RegisterControllerRecord) -> ControllerNode:
        """Return the controller of a RegisterControllerRecord."""
        endpoints = {each.name: Endpoint(each.host, each.port, each.security_protocol) for each in record.end_points}
        return cls(record.controller_id, endpoints)
