"""Random parts of the world, from which requests are made."""

import random
from collections.abc import Callable
from typing import Any, TypeVar

from mockraft.conformance.records import PartitionState
from mockraft.conformance.requests import Tree

from .model import Model, ModelledBroker

BROKERS = range(1, 7)
TOPICS = ("t0", "t1", "t2", "t3", "t.4", "t_4", "T5")


class Draw:
    """Draws parts of the world of `model`. `features` are those that both controllers support, name to (min, max)."""

    def __init__(self, rng: random.Random, model: Model, features: dict[str, tuple[int, int]]) -> None:
        self.rng = rng
        self.model = model
        self.features = features

    def one(self, *of: Any) -> Any:
        """Draw one of these."""
        return self.rng.choice(of)

    def maybe(self, probability: float) -> bool:
        """Draw True with this probability."""
        return self.rng.random() < probability

    def broker_id(self) -> int:
        """Draw any broker id, registered or not."""
        return self.rng.choice(BROKERS)

    def registered(self) -> tuple[int, ModelledBroker] | None:
        """Draw a registered broker."""
        if not self.model.brokers:
            return None
        return self.rng.choice(list(self.model.brokers.items()))

    def some_brokers(self, at_least: int = 1, at_most: int = 3) -> list[int]:
        """Draw different brokers, most often registered ones."""
        known = list(self.model.brokers)
        if len(known) < at_most or self.maybe(0.05):
            known = list(BROKERS)
        return self.rng.sample(known, self.rng.randint(at_least, min(at_most, len(known))))

    def topic(self) -> str:
        """Draw a topic name, most often of an existing topic."""
        if self.model.topics and self.maybe(0.95):
            return self.rng.choice(list(self.model.topics))
        return self.rng.choice(TOPICS)

    def partition(self) -> tuple[str, int, PartitionState] | None:
        """Draw an existing partition."""
        topics = [name for name, partitions in self.model.topics.items() if partitions]
        if not topics:
            return None
        name = self.rng.choice(topics)
        number = self.rng.choice(list(self.model.topics[name]))
        return name, number, self.model.topics[name][number]

    def some_partitions(self) -> dict[str, list[int]]:
        """Draw partitions by topic, one or a few."""
        found: dict[str, list[int]] = {}
        for _ in range(self.one(1, 1, 2, 4)):
            place = self.partition()
            if place is not None and place[1] not in found.setdefault(place[0], []):
                found[place[0]].append(place[1])
        return found


F = TypeVar("F", bound=Callable[["Draw"], Tree | None])
Drawing = tuple[int, str, Callable[[Draw], Tree | None]]
"""A weight, an API and the function that draws a body, which may not be possible in the world as it is."""
DRAWINGS: dict[str, list[Drawing]] = {}
"""All drawings by the module that has them, in their order."""


def drawn(weight: int, api: str) -> Callable[[F], F]:
    """Register the decorated function to draw request bodies of this API."""

    def register(draw: F) -> F:
        DRAWINGS.setdefault(draw.__module__, []).append((weight, api, draw))
        return draw

    return register
