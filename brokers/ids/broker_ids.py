"""Choice of a broker id for a host before its broker starts: combines the host map, the metadata and `identity`.

An id is free when the metadata log shows no live broker with it. No trial registration is made: it would leave a record
in another broker's name, and would take a broker that was shut down in order out of its ISRs (KIP-966). Another broker
may take the id between this check and the broker's own registration; the controller then refuses the second one
(DUPLICATE_BROKER_REGISTRATION).
"""

from __future__ import annotations

from typing import NamedTuple

from mockraft.brokers.ids.host_map import HostFile
from mockraft.brokers.ids.identity import (
    Generate,
    IdentityError,
    Refusal,
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
from mockraft.brokers.ids.observed_cluster import ObservedCluster


class Resolved(NamedTuple):
    """The id of a host's broker, and the reason."""

    broker_id: int
    source: Source
    host: str


async def resolve(
    hosts: HostFile,
    host: str,
    cluster: ObservedCluster,
    *,
    explicit: int | None = None,
    stored: int | None = None,
    steps: Steps = Steps(),  # noqa: B008 - immutable
) -> Resolved:
    """Choose the id for the broker of this host, and store it in the map so that no other host gets it.

    When the metadata shows a live broker with the id, it may just have died: wait `steps.wait_ms` for the controller to
    notice. A missing id that a host took is reserved for it. Raises IdentityError when a person has to decide,
    HostMapError, ConnectionError.
    """
    host = checked_host(host)
    for each in (explicit, stored):
        if each is not None:
            checked_id(each)
    while True:
        read = hosts.read()
        mapped = read.ids.get(host)
        wanted = decide(explicit, stored, mapped, None, _spare(cluster) - read.reserved(host), steps)
        if isinstance(wanted, Try):
            candidate = wanted.broker_id
            if candidate in cluster.controllers and candidate not in cluster.image.brokers:
                raise IdentityError(
                    Refusal.BAD_ID, f"{candidate} is the id of a controller: give another one with --id"
                )
            await cluster.wait_for(lambda candidate=candidate: candidate not in cluster.alive, steps.wait_ms)  # type: ignore[misc]
        with hosts.changing() as changed:
            if changed.ids.get(host) != mapped:
                continue
            registered = wanted.broker_id not in cluster.alive if isinstance(wanted, Try) else None
            chosen = decide(explicit, stored, mapped, registered, _spare(cluster) - changed.reserved(host), steps)
            if isinstance(chosen, Generate):
                taken = {*changed.ids.values(), *cluster.image.brokers, *cluster.used_ids}
                broker_id, source = generate_id(taken, steps.reserved_max, cluster.controllers), Source.GENERATED
            else:
                broker_id, source = chosen.broker_id, chosen.source
            changed.set(host, broker_id, reserves=source is Source.MISSING)
            return Resolved(broker_id, source, host)


def collect_garbage(hosts: HostFile, cluster: ObservedCluster, *, remove: bool) -> dict[str, int]:
    """Return the stale entries, host to id; with `remove` delete them. Raises HostMapError."""
    if not remove:
        return garbage(hosts.read().ids, cluster.alive)
    with hosts.changing() as changed:
        found = garbage(changed.ids, cluster.alive)
        for host in found:
            changed.remove(host)
    return found


def _spare(cluster: ObservedCluster) -> frozenset[int]:
    return spare_ids(cluster.used_ids, cluster.alive)
