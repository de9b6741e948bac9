"""Kafka's own message classes, asked by a Java program: the bytes and the JSON of a body, and what they refuse."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from mockraft.kafka.child_process import KafkaProcessError
from mockraft.kafka.jars import classpath, java
from mockraft.releases import NEWEST
from mockraft.wire.json_form import Json, Tree

_SOURCE = Path(__file__).parent / "java" / "MessageOracle.java"
_JAVA_OPTIONS = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_TIMEOUT_S = 300


class Question(NamedTuple):
    """A task for Kafka's classes: an operation of MessageOracle.java, a message, its version, and JSON or hex."""

    operation: str
    name: str
    version: int
    payload: str = ""


class Answer(NamedTuple):
    """Kafka's result: bytes and JSON, or the error."""

    data: bytes
    tree: Tree
    error: str


def ask_java(questions: Iterable[tuple[str, str, int, str]], kafka_version: str = NEWEST) -> list[Answer]:
    """Return the answers of a release's classes to `Question`s, from one process for all of them.

    KafkaUnavailableError without Java or the release's jars; KafkaProcessError if the process fails.
    """
    lines = ["\t".join(map(str, question)) for question in questions]
    command = [java(), *_JAVA_OPTIONS, "-cp", classpath(kafka_version), str(_SOURCE)]
    text = "".join(f"{line}\n" for line in lines)
    try:
        ran = subprocess.run(
            command, input=text, capture_output=True, encoding="utf-8", timeout=_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise KafkaProcessError(f"Kafka's message classes gave no answer within {_TIMEOUT_S} s") from None
    answers = [_answer(line) for line in ran.stdout.split("\n")[:-1]]
    if ran.returncode != 0 or len(answers) != len(lines):
        raise KafkaProcessError(f"Kafka's message classes ended with exit code {ran.returncode}:\n{ran.stderr[-2000:]}")
    return answers


def _answer(line: str) -> Answer:
    status, _, rest = line.partition("\t")
    if status == "error":
        return Answer(b"", {}, rest)
    data, _, tree = rest.partition("\t")
    return Answer(bytes.fromhex(data), json.loads(tree or "{}"), "")


RECORDS = ("records", "unalignedRecords")
"""Fields with record batches, which Kafka's converter writes as an empty text."""


def object_of(value: Json) -> Tree:
    """Return a JSON value that is known to be an object."""
    assert isinstance(value, dict)
    return value


def without_records(value: Json) -> Json:
    """Return a tree with empty records, as Kafka's converter writes them."""
    return with_records(value, "")


def with_records(value: Json, given: Json) -> Json:
    """Return a tree of Kafka's converter with the records of the tree that it was given; "" empties them."""
    if isinstance(value, dict):
        return {name: _field(name, each, given) for name, each in value.items()}
    if isinstance(value, list):
        inside = given if isinstance(given, list) else [""] * len(value)
        return [with_records(each, other) for each, other in zip(value, inside, strict=True)]
    return value


def _field(name: str, value: Json, given: Json) -> Json:
    inside = given.get(name, "") if isinstance(given, dict) else ""
    return inside if name in RECORDS and isinstance(value, str) else with_records(value, inside)
