"""Schedules: disturbances of the controller, drawn from a seed."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from mockraft.wire import api_keys

if TYPE_CHECKING:
    from mockraft.wire.json_form import Json, Tree

DELAYS_MS = (20, 50, 100, 200, 500, 1_000, 2_000)
SHORTEST_DELAY_MS = DELAYS_MS[0]
LATER_REQUESTS, LATER_SHARE = 2, 0.1
"""How many requests beyond those of the undisturbed trial are disturbed, and how often: disturbed clients send more."""


class Sender(NamedTuple):
    """Requests of one API by one broker, or by clients that are none."""

    api: str
    broker_id: int | None


Observed: TypeAlias = Mapping[Sender, int]
"""Number of requests of each sender in the undisturbed trial."""


@dataclass(frozen=True)
class Disturbance:
    """A disturbance of the request of one number, from 1, of a sender."""

    kind: str
    sender: Sender
    number: int
    delay_ms: int = 0

    def to_stub(self, stub_id: str) -> Tree:
        """Return the stub that disturbs so."""
        match: Tree = {"api": self.sender.api}
        if self.sender.broker_id is not None:
            match["brokerId"] = self.sender.broker_id
        actions = KINDS[self.kind].actions(self.delay_ms)
        return {
            "id": stub_id,
            "name": str(self),
            "match": match,
            "trigger": {"onCall": self.number},
            "actions": actions,
        }

    def __str__(self) -> str:
        of = "" if self.sender.broker_id is None else f" of broker {self.sender.broker_id}"
        text = KINDS[self.kind].text.format(ms=self.delay_ms)
        return f"{self.sender.api} {self.number}{of}: {text}"


Schedule: TypeAlias = tuple[Disturbance, ...]


class DisturbanceKind(NamedTuple):
    """A kind of disturbance: its text, its actions for a delay, and the only API that it is for."""

    text: str
    actions: Callable[[int], list[Json]]
    api: str | None = None
    is_delay: bool = False


KINDS: Mapping[str, DisturbanceKind] = {
    "late answer": DisturbanceKind("the answer is {ms} ms late", lambda ms: [{"delayOn": {"ms": ms}}], is_delay=True),
    "late request": DisturbanceKind(
        "the controller handles it {ms} ms late", lambda ms: [{"delayOn": {"ms": ms, "before": True}}], is_delay=True
    ),
    "lost request": DisturbanceKind("the connection closes before it is handled", lambda _: ["disconnectOn"]),
    "lost answer": DisturbanceKind(
        "it is handled, then the connection closes", lambda _: ["passThrough", "drop", "disconnectOn"]
    ),
    "standby": DisturbanceKind("NOT_CONTROLLER, as after a failover", lambda _: [{"injectError": "NOT_CONTROLLER"}]),
    "fenced": DisturbanceKind(
        "it fences the broker", lambda _: [{"change": {"request": {"wantFence": True}}}], api="BrokerHeartbeat"
    ),
}
"""What a controller does to its clients in production."""

NOT_REFUSED = frozenset(api_keys.name(key) for key in (api_keys.API_VERSIONS, api_keys.FETCH))
"""APIs without NOT_CONTROLLER: Fetch says so in its own way, with the leader."""


def observed(requests: Iterable[Mapping[str, Json]]) -> Observed:
    """Count the requests of journals, as the admin API has them, by sender."""
    return Counter(Sender(str(each["api"]), each["brokerId"]) for each in requests)  # type: ignore[arg-type]


def draw(
    seed: int, seen: Observed, disturbances_max: int, brokers: int = 0, kinds: Collection[str] = KINDS.keys()
) -> Schedule:
    """Return the schedule of a seed; the same arguments give the same one. ValueError if there is nothing to disturb.

    Brokers up to the number `brokers` are simulated: half of the disturbances are of other requests, if there are any.
    """
    if not seen:
        raise ValueError("no request reached the controller, so there is nothing to disturb")
    rng = random.Random(f"lab/{seed}")
    senders = sorted((each for each in seen if _fitting(each, kinds)), key=lambda each: (each.api, each.broker_id or 0))
    if not senders:
        raise ValueError(f"no request that reached the controller can be disturbed by {', '.join(kinds)}")
    simulated = range(1, brokers + 1)
    groups = [
        group
        for group in (
            [each for each in senders if each.broker_id in simulated],
            [each for each in senders if each.broker_id not in simulated],
        )
        if group
    ]
    drawn = [_one(rng, rng.choice(rng.choice(groups)), seen, kinds) for _ in range(rng.randint(1, disturbances_max))]
    # Two stubs for the same request would hide each other.
    return tuple({(each.sender, each.number): each for each in drawn}.values())


def simpler(disturbance: Disturbance) -> Disturbance | None:
    """Return the disturbance with half of its delay; None if it has no longer delay than the shortest."""
    half = disturbance.delay_ms // 2
    if half < SHORTEST_DELAY_MS:
        return None
    return Disturbance(disturbance.kind, disturbance.sender, disturbance.number, half)


def stub_file(schedule: Schedule) -> Tree:
    """Return the schedule as a stub file."""
    return {"stubs": [each.to_stub(f"lab-{index}") for index, each in enumerate(schedule, 1)]}


def _fitting(sender: Sender, kinds: Collection[str]) -> list[str]:
    return [
        name
        for name in kinds
        if KINDS[name].api in (None, sender.api) and not (name == "standby" and sender.api in NOT_REFUSED)
    ]


def _one(rng: random.Random, sender: Sender, seen: Observed, kinds: Collection[str]) -> Disturbance:
    kind = rng.choice(_fitting(sender, kinds))
    later = rng.random() < LATER_SHARE
    number = seen[sender] + rng.randint(1, LATER_REQUESTS) if later else rng.randint(1, seen[sender])
    return Disturbance(kind, sender, number, rng.choice(DELAYS_MS) if KINDS[kind].is_delay else 0)
