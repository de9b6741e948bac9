"""Recreation of a lost replica in another directory of its broker, where it is replicated again (KIP-18, an option)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mockraft.brokers.assignments import ReplicaKey
    from mockraft.brokers.broker import SimulatedBroker


class Restarts:
    """Decides which lost replicas may be recreated, and when.

    An empty replica must never lead: it waits until the metadata shows another leader and an ISR without this broker. A
    replica without any other copy stays lost, so that its data can still be recovered by hand.
    """

    def __init__(self, broker: SimulatedBroker) -> None:
        self._broker = broker

    def metadata_advanced(self) -> None:
        """Recreate the replicas that may be."""
        broker = self._broker
        if not broker.config.restart_partitions_elsewhere or not (
            broker.directories.lost or broker.directories.offline
        ):
            return
        for key in [key for key in broker.directories.placed if self._may_restart(key)]:
            broker.directories.restart(key)

    def _may_restart(self, key: ReplicaKey) -> bool:
        broker = self._broker
        replica = broker.view.replicas.get(key)
        us = broker.config.broker_id
        return (
            replica is not None
            and not broker.directories.is_here(key)
            and replica.leader not in (-1, us)
            and us not in replica.isr
        )
