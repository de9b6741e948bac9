"""An id for a host's broker before it starts: the map, the metadata and the rules of `identity` taken together.

An id counts as one that can be registered when no broker that has it is alive, as the metadata log tells. It is not
tried by a registration: that would leave a record in another broker's name, and take a broker that went down in order
out of its ISRs (KIP-966). Between this answer and the broker's own registration another may take the id; the
controller then refuses the second, as ever (DUPLICATE_BROKER_REGISTRATION).
"""

from __future__ import annotations

from typing import NamedTuple

from mockraft.brokers.host_map import HostFile
from mockraft.brokers.identity import (
    RESERVED_ID_MAX,
    Generate,
    Source,
    Steps,
    Try,
    checked_host,
    checked_id,
    decide,
    garbage,
    generate_id,
    spare_ids,
)
from mockraft.brokers.observed_cluster import ObservedCluster

WAIT_MS = 12_000
"""How long an id may look alive after its broker died: Kafka's broker.session.timeout.ms is 9 s."""


class Resolved(NamedTuple):
    """The id of a host's broker, and why it is that one. `is_new_to_map`: the map said otherwise before."""

    broker_id: int
    source: Source
    host: str
    is_new_to_map: bool


async def resolve(
    hosts: HostFile,
    host: str,
    cluster: ObservedCluster,
    *,
    explicit: int | None = None,
    stored: int | None = None,
    steps: Steps = Steps(),  # noqa: B008 - immutable
    reserved_max: int = RESERVED_ID_MAX,
    wait_ms: int = WAIT_MS,
) -> Resolved:
    """The id that the broker of this host is to start with; it is kept in the map, so that no other host gets it.

    A broker that has the id by the metadata may just have died: it is waited `wait_ms` for the controller to notice.
    Raises IdentityError when a person has to decide, HostMapError, ConnectionError.
    """
    host = checked_host(host)
    for each in (explicit, stored):
        if each is not None:
            checked_id(each)
    while True:
        mapped = hosts.read().ids.get(host)
        wanted = decide(explicit, stored, mapped, None, _spare(cluster), steps)
        if isinstance(wanted, Try):
            candidate = wanted.broker_id
            await cluster.wait_for(lambda candidate=candidate: candidate not in cluster.alive, wait_ms)  # type: ignore[misc]
        with hosts.changing() as changed:
            if changed.ids.get(host) != mapped:
                continue
            registered = wanted.broker_id not in cluster.alive if isinstance(wanted, Try) else None
            chosen = decide(explicit, stored, mapped, registered, _spare(cluster), steps)
            if isinstance(chosen, Generate):
                taken = {*changed.ids.values(), *cluster.image.brokers, *cluster.used_ids}
                broker_id, source = generate_id(taken, reserved_max, cluster.controllers), Source.GENERATED
            else:
                broker_id, source = chosen.broker_id, chosen.source
            return Resolved(broker_id, source, host, changed.set(host, broker_id))


def collect_garbage(hosts: HostFile, cluster: ObservedCluster, *, remove: bool) -> dict[str, int]:
    """The entries that are garbage, host to id; with `remove` they are gone. HostMapError."""
    if not remove:
        return garbage(hosts.read().ids, cluster.alive)
    with hosts.changing() as changed:
        found = garbage(changed.ids, cluster.alive)
        for host in found:
            changed.remove(host)
    return found


def _spare(cluster: ObservedCluster) -> frozenset[int]:
    return spare_ids(cluster.used_ids, cluster.alive)
