"""Vectors of a release, made by its own classes in two rounds of questions.

First they write bodies of every kind; then they read what they wrote, as bytes and as JSON, and judge damaged bytes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Final, NamedTuple

from mockraft.kafka.child_process import KafkaProcessError
from mockraft.kafka.message_oracle import Question, ask_java, object_of, with_records
from mockraft.releases import release
from mockraft.vectors.bodies import NOT_GENERATED, random_struct
from mockraft.vectors.vector_files import MALFORMED, UNKNOWN_TAGS, MessageVectors, Vector, VectorsError, write_message
from mockraft.wire.json_form import Tree
from mockraft.wire.schema_files import Schema, load, parse

DEFAULTS: Final = "defaults"
KINDS: Final = {"filled": "plain", "empty": "empty", "limits": "extreme", "mixed": "mixed", UNKNOWN_TAGS: "mixed"}
"""Kinds of vectors with a body of their own, and the manner of `random_struct` for each."""

MALFORMED_MAX: Final = 4
"""Malformed vectors of a version, each with another error of Kafka's if there are so many."""
_DAMAGES: Final = 12
_ERROR: Final = re.compile(r"(?!.*(?:OutOfMemory|are left over))")
"""Errors of Kafka's reader: not of a JVM without memory, nor of MessageOracle.java about the end of the bytes."""
_FOLDERS: Final = {
    "message": ("clients/src/main/resources/common/message", "org.apache.kafka.common.message"),
    "metadata": ("metadata/src/main/resources/common/metadata", "org.apache.kafka.common.metadata"),
    "raft": ("raft/src/main/resources/common/message", "org.apache.kafka.raft.generated"),
}
"""By folder of a release's specs, where Kafka has them, and the package of their classes."""


class _Body(NamedTuple):
    """A body that Kafka's classes shall write."""

    spec: Schema
    version: int
    kind: str
    given: Tree

    def question(self) -> Question:
        if self.kind == DEFAULTS:
            return Question("new", self.spec.name, self.version)
        operation = "tags" if self.kind == UNKNOWN_TAGS else "json"
        return Question(operation, self.spec.name, self.version, json.dumps(self.given))


class _OfVersion(NamedTuple):
    """The vectors of a message in one version."""

    name: str
    version: int
    vectors: list[Vector]

    def damaged(self) -> Iterator[bytes]:
        """Yield bytes that are cut off, or differ at one place; Kafka reads some of them."""
        rng = Random(f"{self.name} {self.version} {MALFORMED}")
        written = [bytes.fromhex(each.hex) for each in self.vectors if each.hex]
        for number in range(_DAMAGES if written else 0):
            data = rng.choice(written)
            yield scratched(data, rng) if number % 4 else data[: rng.randrange(len(data))]


def make_release(folder: Path, kafka_version: str, only: Sequence[str] = ()) -> list[MessageVectors]:
    """Write the vectors of a release into a new folder; `only` are texts that names of messages have, or none.

    VectorsError if no message has one. Errors are those of `ask_java`; KafkaProcessError also if the release's classes
    read their own JSON otherwise.
    """
    specs = {path: parse(load(text)) for path, text in release(kafka_version).specs.items()}
    paths = {
        spec.name: path
        for path, spec in specs.items()
        if spec.name not in NOT_GENERATED and spec.valid.low <= spec.valid.high
        if not only or any(text.lower() in spec.name.lower() for text in only)
    }
    if not paths:
        raise VectorsError(f"Kafka {kafka_version} has no message whose name has {' or '.join(only)}")
    folder.mkdir()
    found: dict[str, list[Vector]] = {name: [] for name in paths}
    for name, vectors in _checked(_written([specs[path] for path in paths.values()], kafka_version), kafka_version):
        found[name] += vectors
    return [_write(folder, paths[name], specs[paths[name]], vectors) for name, vectors in found.items()]


def _write(folder: Path, path: str, spec: Schema, vectors: Sequence[Vector]) -> MessageVectors:
    source, package = _FOLDERS[path.partition("/")[0]]
    return MessageVectors(
        message=spec.name,
        kafka_class=f"{package}.{spec.name}{'Data' if spec.kind in ('request', 'response', 'header') else ''}",
        spec=f"{source}/{path.rpartition('/')[2]}",
        versions=[*range(spec.valid.low, spec.valid.high + 1)],
        vectors=len(vectors),
        sha256=write_message(folder, spec.name, vectors),
    )


def _written(specs: list[Schema], kafka_version: str) -> list[_OfVersion]:
    """Return the vectors that Kafka writes, without those whose bytes an earlier one of the version has."""
    bodies = [*_bodies(specs)]
    answers = ask_java((each.question() for each in bodies), kafka_version)
    found: dict[tuple[str, int], dict[str, Vector]] = {}
    for body, answer in zip(bodies, answers, strict=True):
        if answer.error:
            raise KafkaProcessError(f"Kafka {kafka_version} writes no {body.question()}: {answer.error}")
        tree = object_of(with_records(answer.tree, body.given))
        vector = Vector(version=body.version, kind=body.kind, json=tree, hex=answer.data.hex())
        found.setdefault((body.spec.name, body.version), {}).setdefault(vector.hex, vector)
    return [_OfVersion(name, version, [*vectors.values()]) for (name, version), vectors in found.items()]


def _checked(written: list[_OfVersion], kafka_version: str) -> Iterator[tuple[str, list[Vector]]]:
    """Yield the vectors of each version, once Kafka has read their JSON again, with malformed ones that it refuses."""
    groups = [(each, [*each.damaged()]) for each in written]
    questions = []
    for of, damaged in groups:
        questions += [Question("json", of.name, of.version, json.dumps(each.json)) for each in of.vectors]
        questions += [Question("read", of.name, of.version, data.hex()) for data in damaged]
    answers = iter(ask_java(questions, kafka_version))
    for of, damaged in groups:
        for vector in of.vectors:
            if next(answers).data.hex() != vector.hex and vector.is_whole:
                raise KafkaProcessError(f"Kafka {kafka_version} reads its own JSON otherwise: {of.name}, {vector}")
        refused = {error: data for data in damaged if (error := next(answers).error) and _ERROR.match(error)}
        malformed = [
            Vector(version=of.version, kind=MALFORMED, hex=data.hex(), error=error) for error, data in refused.items()
        ]
        yield of.name, of.vectors + malformed[:MALFORMED_MAX]


def _bodies(specs: list[Schema]) -> Iterator[_Body]:
    for spec in specs:
        for version in range(spec.valid.low, spec.valid.high + 1):
            yield _Body(spec, version, DEFAULTS, {})
            for kind, manner in KINDS.items():
                if kind != UNKNOWN_TAGS or spec.flexible.covers(version):
                    rng = Random(f"{spec.name} {version} {kind}")
                    yield _Body(spec, version, kind, random_struct(spec.root, version, rng, manner))


def scratched(data: bytes, rng: Random) -> bytes:
    """Return the data with a byte changed, or with some bytes inserted or removed."""
    at = rng.randrange(len(data))
    into = rng.choice((b"", b"\x00", b"\x01", b"\xff", b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff\x07", b"\x80\x00"))
    return data[:at] + into + data[at + 1 :]
