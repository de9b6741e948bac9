"""Kafka's own placer and ours, with the same chance, put the same replicas on the same brokers."""

import itertools
import random
import subprocess
from pathlib import Path
from typing import Any

import pytest
from mockraft.kafka.jars import classpath, java
from mockraft.server.controller.result import ApiError
from mockraft.server.controller.topics.placement import UsableBroker, in_racks, place

pytestmark = pytest.mark.real_kafka

ORACLE = Path(__file__).parents[2] / "oracle_java" / "PlacementOracle.java"


class Steady(random.Random):
    """Chance that always says the first, the middle or the last, in whatever order it is asked."""

    def __init__(self, kind: str) -> None:
        super().__init__(0)
        self.kind = kind

    def randrange(self, bound: int, *_: Any) -> int:
        return {"first": 0, "middle": bound // 2, "last": bound - 1}[self.kind]

    _randbelow = randrange


def shapes() -> list[tuple[str, int, int, list[UsableBroker]]]:
    """Clusters of up to 12 brokers on up to 4 racks, some fenced."""
    chance = random.Random(3)
    found = []
    for kind, _ in itertools.product(("first", "middle", "last"), range(100)):
        racks: list[str | None] = chance.choice([[None], ["a"], ["a", "b"], ["b", "a", None], ["a", "c", "b", "d"]])
        brokers = [
            UsableBroker(broker_id, chance.choice(racks), chance.random() < chance.choice((0, 0.3, 0.8)))
            for broker_id in chance.sample(range(30), chance.randint(0, 12))
        ]
        found.append((kind, chance.randint(1, 40), chance.randint(-1, max(1, len(brokers) + 1)), brokers))
    return found


def ours(kind: str, partitions: int, factor: int, brokers: list[UsableBroker]) -> str:
    try:
        placed = place(in_racks(brokers), partitions, factor, Steady(kind))
    except ApiError as refusal:
        return str(refusal.message)
    return " ".join(str(replicas).replace(" ", "") for replicas in placed)


def test_places_where_kafka_places() -> None:
    asked = shapes()
    lines = [
        " ".join(
            [kind, str(partitions), str(factor), *(f"{b.broker_id}:{b.rack or ''}:{int(b.fenced)}" for b in brokers)]
        )
        for kind, partitions, factor, brokers in asked
    ]
    command = [java(), "-cp", classpath("4.3.1"), str(ORACLE)]
    done = subprocess.run(command, input="\n".join(lines), capture_output=True, text=True, check=True, timeout=60)
    theirs = done.stdout.splitlines()
    assert dict(zip(lines, map(ours, *zip(*asked, strict=True)), strict=True)) == dict(zip(lines, theirs, strict=True))
