"""Recreation of a lost replica in another directory of its broker, where it is replicated again (KIP-18, an option)."""

from __future__ import annotations

from mockraft.brokers.metadata.metadata_view import Replica


def restartable(replica: Replica | None, broker_id: int) -> bool:
    """Return True if a lost replica of this broker may be recreated now.

    An empty replica must never lead: it waits until the metadata shows another leader and an ISR without this broker. A
    replica without any other copy stays lost, so that its data can still be recovered by hand.
    """
    return replica is not None and replica.leader not in (-1, broker_id) and broker_id not in replica.isr
