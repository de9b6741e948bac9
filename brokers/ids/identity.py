"""Choice of a broker's id when it may have lost its disks: the rules of "broker id by hostname" as one pure function.

The proposal dates from ZooKeeper's days and was never adopted by Kafka; here `/brokers/hosts/<host>` is an entry of a
`HostMap`, and "registering in ZooKeeper" is a registration that the controller accepts.
"""

from __future__ import annotations

import enum
import ipaddress
import re
from collections.abc import Collection, Mapping
from typing import NamedTuple

BROKER_ID_MAX = 2**31 - 1
RESERVED_ID_MAX = 1000
"""Ids up to this one are assigned by people: Kafka's `reserved.broker.max.id`, from when it generated ids."""
WAIT_MS = 12_000
"""Maximum time for which an id may look alive after its broker died: Kafka's broker.session.timeout.ms is 9 s."""
_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")


class Source(enum.Enum):
    """The source of an id."""

    EXPLICIT = "it was given"
    STORED = "meta.properties has it"
    HOST = "the host had it before"
    MISSING = "it is the only one in use that no broker answers for"
    GENERATED = "it is new"


class Refusal(enum.Enum):
    """The reason why there is no id, and a person has to decide."""

    INCONSISTENT = "the given id is not the one in meta.properties"
    IN_USE = "another broker has this id"
    ONE_MISSING = "an id in use has no broker, and taking it was not requested"
    SEVERAL_MISSING = "several ids in use have no broker"
    NO_NEW_ONE = "a new id would be needed, and generating was not requested"
    NONE_LEFT = "there is no id left"
    BAD_ID = "an id that cannot be"
    BAD_HOST = "a host that cannot be"


class IdentityError(ValueError):
    """There is no id for this broker; `refusal` is the rule, the text is for people."""

    def __init__(self, refusal: Refusal, text: str) -> None:
        super().__init__(text)
        self.refusal = refusal


class Steps(NamedTuple):
    """The optional steps of the text. By default a person decides whenever the host has no id.

    `reuse_missing` is b.1, take the one id that is missing. `stop_at_missing` is b.2, no new id while ids are missing.
    `generate` is b.3, draw a new id, above `reserved_max`. `wait_ms` is for an id whose broker may just have died.
    """

    reuse_missing: bool = False
    stop_at_missing: bool = True
    generate: bool = False
    reserved_max: int = RESERVED_ID_MAX
    wait_ms: int = WAIT_MS


class Try(NamedTuple):
    """Register with this id, and call again with the result."""

    broker_id: int
    source: Source


class Use(NamedTuple):
    """The id is settled."""

    broker_id: int
    source: Source


class Generate(NamedTuple):
    """No existing id fits: generate a new one (`generate_id`)."""


def decide(
    explicit: int | None,
    stored: int | None,
    mapped: int | None,
    registered: bool | None,
    spare: Collection[int],
    steps: Steps,
) -> Try | Use | Generate:
    """The procedure of the text, "Determining Broker Id on Broker Startup".

    Args:
        explicit: the id from command line or server.properties.
        stored: the one in meta.properties.
        mapped: what the host had before.
        registered: whether registering with the id that :class:`Try` named succeeded; None before it was tried.
        spare: ids that are used in the metadata and have no broker.
        steps: which optional steps to take.

    Raises:
        IdentityError: a person has to decide.
    """
    if explicit is not None and stored is not None and explicit != stored:
        raise IdentityError(
            Refusal.INCONSISTENT,
            f"the id {explicit} was given, but meta.properties has {stored}: start without the one that is wrong",
        )
    certain = explicit if explicit is not None else stored
    if certain is not None:
        source = Source.EXPLICIT if explicit is not None else Source.STORED
        if registered is False:
            raise IdentityError(
                Refusal.IN_USE,
                f"the id {certain} cannot be registered: a broker with it runs. {source.value}, so no other id is "
                "tried; stop that broker, or give this one another id",
            )
        return Use(certain, source) if registered else Try(certain, source)
    if mapped is not None and registered is not False:
        return Use(mapped, Source.HOST) if registered else Try(mapped, Source.HOST)
    return _without(spare, steps)


def _without(spare: Collection[int], steps: Steps) -> Use | Generate:
    """Apply step b: neither given nor stored, and the host has no id that could be registered."""
    missing = sorted(set(spare))
    if len(missing) == 1 and steps.reuse_missing:
        return Use(missing[0], Source.MISSING)
    if missing and steps.stop_at_missing:
        listed = ", ".join(map(str, missing))
        if len(missing) == 1:
            raise IdentityError(
                Refusal.ONE_MISSING,
                f"the id {listed} has replicas and no broker: if this is its machine, take it (--reuse-missing or "
                f"--id {listed}); if not, start its broker first",
            )
        raise IdentityError(
            Refusal.SEVERAL_MISSING,
            f"the ids {listed} have replicas and no broker: start those with intact disks, or choose this machine's "
            "id (--id)",
        )
    if not steps.generate:
        raise IdentityError(Refusal.NO_NEW_ONE, "no id is known for this host: give one (--id), or allow --generate")
    return Generate()


def spare_ids(used: Collection[int], alive: Collection[int]) -> frozenset[int]:
    """Return the missing ids of the text: those with replicas, less those whose broker is registered."""
    return frozenset(used) - frozenset(alive)


def generate_id(taken: Collection[int], reserved_max: int = RESERVED_ID_MAX, controllers: Collection[int] = ()) -> int:
    """Return the largest used id above the reserved ones plus 1. Raises IdentityError when none is left.

    Controllers' ids are skipped, and do not count as the largest.
    """
    found = max((each for each in taken if each > reserved_max), default=reserved_max) + 1
    while found in controllers:
        found += 1
    if found > BROKER_ID_MAX:
        raise IdentityError(Refusal.NONE_LEFT, f"there is no id above {found - 1}: give one with --id")
    return found


def garbage(hosts: Mapping[str, int], alive: Mapping[int, Collection[str]]) -> dict[str, int]:
    """Return the removable entries: their id is that of a live broker, and it runs on another host.

    `alive` has for each live broker the host names of its listeners.
    """
    names = {broker_id: {host_of(name) for name in listed} for broker_id, listed in alive.items()}
    return {host: broker_id for host, broker_id in hosts.items() if broker_id in names and host not in names[broker_id]}


def checked_id(broker_id: int) -> int:
    """Return the id itself. Raises IdentityError when it is no valid broker id."""
    if not 0 <= broker_id <= BROKER_ID_MAX:
        raise IdentityError(Refusal.BAD_ID, f"{broker_id} is not a broker id: expected 0 to {BROKER_ID_MAX}")
    return broker_id


def checked_host(name: str) -> str:
    """Return the host as the map stores it: lower case, no dot at the end. Raises IdentityError for an invalid name."""
    host = host_of(name)
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        labels = host.split(".")
        if len(host) <= 253 and all(_LABEL.fullmatch(label) for label in labels) and not labels[-1].isdecimal():
            return host
    raise IdentityError(Refusal.BAD_HOST, f"{name[:80]!r} is no host: want a name or an address, without a port")


def host_of(name: str) -> str:
    """Return one spelling for all equivalent names of a host."""
    return name.strip().rstrip(".").strip("[]").lower()
