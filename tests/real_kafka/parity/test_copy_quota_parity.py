"""Kafka's own rate and ours allow the same copying, and both give a partition to the same mover."""

import random
import subprocess
from pathlib import Path

import pytest
from mockraft.brokers.moves.copy_quota import CopyQuota
from mockraft.brokers.moves.scheduling import mover_of
from mockraft.kafka.jars import classpath, java

pytestmark = pytest.mark.real_kafka

ORACLE = Path(__file__).parents[2] / "oracle_java" / "CopyQuotaOracle.java"


def asked() -> list[str]:
    """Copying in bursts, with pauses shorter and longer than what is remembered; and topics of all lengths."""
    chance = random.Random(113)
    lines = []
    for _ in range(40):
        lines.append("new")
        now_ms = 0
        for _ in range(100):
            now_ms += chance.choice((1, 7, 130, 999, 1000, 1001, 2500, 11_000, 10_999, 30_000))
            lines.append(f"rate {now_ms} {chance.choice((0, 0, 1, 5_000, 1_048_576))}")
    for _ in range(1000):
        topic = "".join(chance.choices("abcXYZ019._-", k=chance.randint(1, 249)))
        lines.append(f"mover {topic} {chance.randint(0, 5000)} {chance.randint(1, 9)}")
    return lines


def ours(lines: list[str]) -> list[str]:
    quota = CopyQuota()
    answers = []
    for words in map(str.split, lines):
        if words[0] == "new":
            quota = CopyQuota()
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
    lines = asked()
    command = [java(), "-cp", classpath("4.3.1"), str(ORACLE)]
    done = subprocess.run(command, input="\n".join(lines), capture_output=True, text=True, check=True, timeout=60)
    theirs = done.stdout.splitlines()
    assert list(zip(lines, ours(lines), strict=True)) == list(zip(lines, theirs, strict=True))
