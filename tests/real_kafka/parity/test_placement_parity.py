"""Kafka's own placer, rate of copying and choice of a mover, and ours, give the same answers."""

import itertools
import random
from typing import Any

import pytest
from mockraft.brokers.moves.movers import mover_of
from mockraft.brokers.replication_quota import ReplicationQuota
from mockraft.server.controller.result import ApiError
from mockraft.server.controller.topics.placement import place
from mockraft.server.controller.topics.racks import UsableBroker, in_racks

from .oracle import kafkas_answers

pytestmark = pytest.mark.real_kafka


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
    rng = random.Random(3)
    found = []
    for kind, _ in itertools.product(("first", "middle", "last"), range(100)):
        racks: list[str | None] = rng.choice([[None], ["a"], ["a", "b"], ["b", "a", None], ["a", "c", "b", "d"]])
        brokers = [
            UsableBroker(broker_id, rng.choice(racks), rng.random() < rng.choice((0, 0.3, 0.8)))
            for broker_id in rng.sample(range(30), rng.randint(0, 12))
        ]
        found.append((kind, rng.randint(1, 40), rng.randint(-1, max(1, len(brokers) + 1)), brokers))
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
    theirs = kafkas_answers("PlacementOracle.java", lines)
    assert dict(zip(lines, map(ours, *zip(*asked, strict=True)), strict=True)) == dict(zip(lines, theirs, strict=True))


def questions() -> list[str]:
    """Copying in bursts, with pauses shorter and longer than what is remembered; and topics of all lengths."""
    rng = random.Random(113)
    lines = []
    for _ in range(40):
        lines.append("new")
        now_ms = 0
        for _ in range(100):
            now_ms += rng.choice((1, 7, 130, 999, 1000, 1001, 2500, 11_000, 10_999, 30_000))
            lines.append(f"rate {now_ms} {rng.choice((0, 0, 1, 5_000, 1_048_576))}")
    for _ in range(1000):
        topic = "".join(rng.choices("abcXYZ019._-", k=rng.randint(1, 249)))
        lines.append(f"mover {topic} {rng.randint(0, 5000)} {rng.randint(1, 9)}")
    return lines


def our_answers(lines: list[str]) -> list[str]:
    quota = ReplicationQuota()
    answers = []
    for words in map(str.split, lines):
        if words[0] == "new":
            quota = ReplicationQuota()
            answers.append("new")
        elif words[0] == "rate":
            now_ms, copied_bytes = int(words[1]), int(words[2])
            if copied_bytes:
                quota.record(copied_bytes, now_ms)
            answers.append(str(int(quota.rate(now_ms) + 0.5)))
        else:
            answers.append(str(mover_of(words[1], int(words[2]), int(words[3]))))
    return answers


def test_measures_and_spreads_as_kafka_does() -> None:
    lines = questions()
    theirs = kafkas_answers("ReplicationQuotaOracle.java", lines)
    assert list(zip(lines, our_answers(lines), strict=True)) == list(zip(lines, theirs, strict=True))
