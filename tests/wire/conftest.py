"""Bodies for every message and version: random JSON trees made from the specs, and Kafka's own bytes of them."""

import base64
import json
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest
from mockraft.kafka.jars import classpath
from mockraft.releases import NEWEST
from mockraft.wire import messages, records
from mockraft.wire.json_form import from_json
from mockraft.wire.overlay import in_use
from mockraft.wire.schema_files import FieldSpec, StructSpec, names, schema
from mockraft.wire.schema_reading import UNKNOWN_TAGS

Tree = dict[str, Any]

ORACLE_SOURCE = Path(__file__).parents[1] / "oracle_java" / "MessageOracle.java"
JAVA_OPTIONS = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
# The raft client's quorum-state file: a spec of its own, kept as JSON on disk and never sent.
NOT_GENERATED = {"QuorumStateData"}

MANNERS = ("empty", "extreme", "plain", "mixed", "mixed")
INTEGER_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
# Lengths around the places where a varint grows, and characters of one to four bytes.
STRING_LENGTHS = (0, 1, 3, 126, 127, 128, 300)
CHARACTERS = 'abcXYZ-_. 09äß€漢\U0001f600\x00"\\'


def all_pairs() -> list[tuple[str, int]]:
    """Every (message, version) that Kafka sends or stores: 678."""
    valid = [(name, schema(name).valid) for name in names() if name not in NOT_GENERATED]
    return [(name, version) for name, versions in valid for version in range(versions.low, versions.high + 1)]


def generated_class(name: str) -> Any:
    return records.by_name(name) if name in records.NAMES else messages.by_name(name)


def random_body(name: str, version: int, rng: Random, manner: str) -> Tree:
    """A JSON tree that Kafka's converter accepts. `manner`: empty, extreme, plain or mixed (random per field)."""
    return random_struct(in_use().schema(name).root, version, rng, manner)


def foreign_body(name: str, version: int, rng: Random) -> Tree | None:
    """A body that also says one plain field its version lacks; None where the version lacks none.

    No structs: Kafka's converter refuses to read one at a version that has none, whether it may be ignored or not.
    """
    spec = schema(name)
    absent = [f for f in spec.root.fields if not f.versions.covers(version) and f.struct is None]
    if not absent:
        return None
    field = rng.choice(absent)
    tree = random_struct(spec.root, version, rng, "mixed")
    home = max(field.versions.low, spec.valid.low)
    tree[field.json_name] = _value(field, min(home, field.versions.high), rng, "plain")
    return tree


def random_struct(spec: StructSpec, version: int, rng: Random, manner: str) -> Tree:
    """Return `random_body` of a spec that need not be in use."""
    tree: Tree = {}
    for field in spec.fields:
        if field.versions.covers(version):
            own = rng.choice(("empty", "extreme", "plain")) if manner == "mixed" else manner
            if field.tagged.covers(version) and own == "empty":
                continue
            deeper = manner if manner == "mixed" else own
            tree[field.json_name] = _value(field, version, rng, deeper if field.struct else own)
    return tree


def _value(field: FieldSpec, version: int, rng: Random, manner: str) -> Any:
    if field.nullable.covers(version) and (manner == "empty" or (manner == "mixed" and rng.random() < 0.25)):
        return None
    if not field.is_array:
        return _element(field, version, rng, manner)
    size = 0 if manner == "empty" else rng.choice((0, 1, 2, 3)) if manner == "mixed" else rng.choice((1, 2))
    if manner == "extreme" and field.struct is None:
        size = rng.choice((9, 126, 127, 128))
    return [_element(field, version, rng, manner) for _ in range(size)]


def _element(field: FieldSpec, version: int, rng: Random, manner: str) -> Any:
    if field.struct is not None:
        return random_struct(field.struct, version, rng, manner)
    return _plain(field.kind, rng, manner)


def _plain(kind: str, rng: Random, manner: str) -> Any:
    extreme = manner == "extreme"
    if kind in INTEGER_BITS:
        top = 1 << (INTEGER_BITS[kind] - 1)
        # Kafka's converter mangles int8 values over 127 and takes nothing under -128: both ends are real values.
        if extreme:
            return rng.choice((-top, top - 1, -1))
        return 0 if manner == "empty" else rng.randrange(-top, top)
    if kind == "uint16":
        return 0 if manner == "empty" else 65535 if extreme else rng.randrange(65536)
    if kind == "bool":
        return manner != "empty" and rng.random() < 0.7
    if kind == "float64":
        return 0.0 if manner == "empty" else rng.choice((1e300, -2.5e-300)) if extreme else rng.uniform(-1e6, 1e6)
    if kind == "uuid":
        raw = bytes(16) if manner == "empty" else b"\xff" * 16 if extreme else rng.randbytes(16)
        return base64.urlsafe_b64encode(raw).decode().rstrip("=")
    length = 0 if manner == "empty" else rng.choice(STRING_LENGTHS) if extreme else rng.randrange(12)
    if kind == "string":
        return "".join(rng.choices(CHARACTERS, k=length))
    return base64.b64encode(rng.randbytes(length)).decode()


class Answer(NamedTuple):
    """Kafka's result: bytes and JSON, or the error."""

    data: bytes
    tree: Tree
    error: str


def ask_java(questions: list[tuple[str, str, int, str]], kafka_version: str = NEWEST) -> list[Answer]:
    """Results for (operation, name, version, JSON or hex), from one process for all of them."""
    command = ["java", *JAVA_OPTIONS, "-cp", classpath(kafka_version), str(ORACLE_SOURCE)]
    lines = "".join(f"{what}\t{name}\t{version}\t{payload}\n" for what, name, version, payload in questions)
    ran = subprocess.run(command, input=lines, capture_output=True, encoding="utf-8", timeout=200, check=False)
    assert ran.returncode == 0, ran.stderr
    answers = [_answer(line) for line in ran.stdout.split("\n")[:-1]]
    assert len(answers) == len(questions)
    return answers


def _answer(line: str) -> Answer:
    status, _, rest = line.partition("\t")
    if status == "error":
        return Answer(b"", {}, rest)
    data, _, tree = rest.partition("\t")
    return Answer(bytes.fromhex(data), json.loads(tree or "{}"), "")


def without_records(value: Any) -> Any:
    """Return a tree with empty records, as Kafka's converter writes them."""
    if isinstance(value, dict):
        return {
            k: "" if k in ("records", "unalignedRecords") and isinstance(v, str) else without_records(v)
            for k, v in value.items()
        }
    return [without_records(v) for v in value] if isinstance(value, list) else value


def message_tree(message: Any, version: int) -> Tree:
    """Convert a generated object to a tree of `schema_reading`: tagged fields only if they were written."""
    spec = schema(type(message).__name__)

    def struct_tree(struct: StructSpec, value: Any) -> Tree:
        plain = getattr(sys.modules[type(value).__module__], struct.name)()
        tree = {f.json_name: field_tree(f, getattr(value, f.attribute)) for f in struct.untagged(version)}
        for field in struct.tagged(version).values():
            content = getattr(value, field.attribute)
            if content != getattr(plain, field.attribute):
                tree[field.json_name] = field_tree(field, content)
        if value.unknown_tagged_fields:
            tree[UNKNOWN_TAGS] = list(value.unknown_tagged_fields)
        return tree

    def field_tree(field: FieldSpec, value: Any) -> Any:
        if field.struct is None or value is None:
            return value
        return [struct_tree(field.struct, v) for v in value] if field.is_array else struct_tree(field.struct, value)

    return struct_tree(spec.root, message)


class KafkaBody(NamedTuple):
    """A random body as given to Kafka, with Kafka's bytes and JSON for it."""

    name: str
    version: int
    given: Tree
    answer: Answer


@pytest.fixture(scope="session")
def kafka_bodies() -> list[KafkaBody]:
    """Five bodies for each of the 678 pairs, in different manners, written by Kafka's own classes."""
    rng = Random(431)
    given = [(n, v, random_body(n, v, rng, manner)) for n, v in all_pairs() for manner in MANNERS]
    answers = ask_java([("json", name, version, json.dumps(tree)) for name, version, tree in given])
    return [KafkaBody(*body, answer) for body, answer in zip(given, answers, strict=True)]


@pytest.fixture(scope="session")
def pairs() -> list[tuple[str, int]]:
    return all_pairs()


@pytest.fixture(scope="session")
def sample_bytes(pairs: list[tuple[str, int]]) -> dict[tuple[str, int], bytes]:
    """One mixed body as bytes for each pair, without Java: written by the codec from a random tree."""
    rng = Random(7)

    def body(name: str, version: int) -> bytes:
        message = from_json(generated_class(name), random_body(name, version, rng, "mixed"), version)
        data: bytes = message.write(version)
        return data

    return {pair: body(*pair) for pair in pairs}
