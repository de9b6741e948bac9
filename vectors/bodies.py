"""Random bodies of messages, as JSON trees made from the specs."""

from __future__ import annotations

import base64
from random import Random

from mockraft.wire.json_form import Json, Tree
from mockraft.wire.overlay import in_use
from mockraft.wire.schema_files import FieldSpec, StructSpec

# The raft client's quorum-state file: a spec of its own, kept as JSON on disk and never sent.
NOT_GENERATED = {"QuorumStateData"}

MANNERS = ("empty", "extreme", "plain", "mixed", "mixed")
INTEGER_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
# Lengths around the places where a varint grows, and characters of one to four bytes.
STRING_LENGTHS = (0, 1, 3, 126, 127, 128, 300)
# Codecs may read codes as an enumeration: codes that no release has are in extreme bodies only.
ERROR_CODE = "ErrorCode"
ERROR_CODES = range(-1, 100)
CHARACTERS = 'abcXYZ-_. 09äß€漢\U0001f600\x00"\\'


def random_body(name: str, version: int, rng: Random, manner: str) -> Tree:
    """A JSON tree that Kafka's converter accepts. `manner`: empty, extreme, plain or mixed (random per field)."""
    return random_struct(in_use().schema(name).root, version, rng, manner)


def random_struct(spec: StructSpec, version: int, rng: Random, manner: str) -> Tree:
    """Return `random_body` of a spec that need not be in use."""
    tree: Tree = {}
    for field in spec.fields:
        if field.versions.covers(version):
            own = rng.choice(("empty", "extreme", "plain")) if manner == "mixed" else manner
            if field.name.endswith(ERROR_CODE) and manner == "mixed":
                own = "plain"
            if field.tagged.covers(version) and own == "empty":
                continue
            deeper = manner if manner == "mixed" else own
            tree[field.json_name] = value_of(field, version, rng, deeper if field.struct else own)
    return tree


def value_of(field: FieldSpec, version: int, rng: Random, manner: str) -> Json:
    """Return a value of a field."""
    if field.nullable.covers(version) and (manner == "empty" or (manner == "mixed" and rng.random() < 0.25)):
        return None
    if not field.is_array:
        return _element(field, version, rng, manner)
    size = 0 if manner == "empty" else rng.choice((0, 1, 2, 3)) if manner == "mixed" else rng.choice((1, 2))
    if manner == "extreme" and field.struct is None:
        size = rng.choice((9, 126, 127, 128))
    return [_element(field, version, rng, manner) for _ in range(size)]


def _element(field: FieldSpec, version: int, rng: Random, manner: str) -> Json:
    if field.struct is not None:
        return random_struct(field.struct, version, rng, manner)
    if field.name.endswith(ERROR_CODE) and manner == "plain":
        return rng.choice(ERROR_CODES)
    return _plain(field.kind, rng, manner)


def _plain(kind: str, rng: Random, manner: str) -> Json:
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
