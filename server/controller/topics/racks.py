"""The brokers that may get replicas, by rack."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from mockraft.server.controller.brokers.heartbeat_states import HeartbeatStates
    from mockraft.server.controller.image.cluster import ClusterImage


class UsableBroker(NamedTuple):
    """A broker that may get replicas; a fenced one only as a follower."""

    broker_id: int
    rack: str | None
    fenced: bool


def usable_brokers(cluster: ClusterImage, heartbeats: HeartbeatStates) -> list[UsableBroker]:
    """Return the registered brokers that are not shutting down and have a directory that is not cordoned."""
    return [
        UsableBroker(broker_id, registration.rack, registration.fenced)
        for broker_id, registration in cluster.brokers.items()
        if not heartbeats.brokers[broker_id].is_shutting_down and registration.has_uncordoned_log_dirs
    ]


class Rack(NamedTuple):
    """The usable brokers of a rack, in order of id."""

    unfenced: Sequence[int]
    fenced: Sequence[int]


def in_racks(brokers: Iterable[UsableBroker]) -> list[Rack]:
    """Return the brokers by rack, in order of the racks' names; those without a rack form the first one."""
    by_rack: dict[str | None, list[UsableBroker]] = {}
    for broker in brokers:
        by_rack.setdefault(broker.rack, []).append(broker)
    names = sorted(by_rack, key=lambda name: (name is not None, name or ""))
    return [
        Rack(
            sorted(broker.broker_id for broker in by_rack[name] if not broker.fenced),
            sorted(broker.broker_id for broker in by_rack[name] if broker.fenced),
        )
        for name in names
    ]


class UsableRacks:
    """The usable brokers by rack, recomputed only after a broker changed, so that placement stays cheap."""

    def __init__(self) -> None:
        self._of: tuple[object, object] = (None, None)
        self._changes = (0, 0)
        self._racks: list[Rack] = []

    def of(self, cluster: ClusterImage, heartbeats: HeartbeatStates) -> list[Rack]:
        """Return the current racks; do not modify them."""
        changes = (cluster.changes, heartbeats.shutdown_changes)
        if self._of[0] is not cluster or self._of[1] is not heartbeats or self._changes != changes:
            self._of, self._changes = (cluster, heartbeats), changes
            self._racks = in_racks(usable_brokers(cluster, heartbeats))
        return self._racks
