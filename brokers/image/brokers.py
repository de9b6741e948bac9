"""The nodes of a cluster as the log names them (Kafka's BrokerRegistration and ControllerRegistration)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from mockraft.brokers.log_dirs.directory_ids import LOST, MIGRATING, UNASSIGNED


class Endpoint(NamedTuple):
    """Where a node listens; `security_protocol` is Kafka's number (0 is PLAINTEXT)."""

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
    def from_record(cls, record: Any) -> BrokerNode:
        """The broker of a RegisterBrokerRecord."""
        return cls(
            record.broker_id,
            record.broker_epoch,
            {each.name: Endpoint(each.host, each.port, each.security_protocol) for each in record.end_points},
            record.rack,
            record.fenced,
            record.in_controlled_shutdown,
            tuple(record.log_dirs),
        )

    def merge(self, change: Any) -> BrokerNode:
        """This broker after a BrokerRegistrationChangeRecord; what it leaves at 0 or empty stays."""
        return self._replace(
            fenced=change.fenced > 0 if change.fenced else self.fenced,
            in_controlled_shutdown=change.in_controlled_shutdown > 0 or self.in_controlled_shutdown,
            log_dirs=tuple(change.log_dirs) or self.log_dirs,
        )

    def has_online_dir(self, directory_id: bytes) -> bool:
        """Whether a replica that the log places there is online (Kafka's DirectoryId.isOnline)."""
        if directory_id in (UNASSIGNED, MIGRATING):
            return True
        return directory_id != LOST and (not self.log_dirs or directory_id in self.log_dirs)


class ControllerNode(NamedTuple):
    """A controller that told where it listens (KIP-919)."""

    controller_id: int
    endpoints: Mapping[str, Endpoint]

    @classmethod
    def from_record(cls, record: Any) -> ControllerNode:
        """The controller of a RegisterControllerRecord."""
        endpoints = {each.name: Endpoint(each.host, each.port, each.security_protocol) for each in record.end_points}
        return cls(record.controller_id, endpoints)
