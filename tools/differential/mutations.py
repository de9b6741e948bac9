"""Slightly invalid requests: one or two values of the JSON changed within the type of their field in Kafka's spec."""

import copy
import random
import re
from typing import Any

from mockraft.conformance.requests import Tree
from mockraft.wire.schema_files import FieldSpec, schema

from .steps import places

MORE_THAN_ONCE = 0.2
_BITS = {"int8": 7, "int16": 15, "uint16": 16, "int32": 31, "int64": 63}
_SUM = re.compile(r"[+-]\d+$")
_STRANGE_TEXTS = ("", "no-such", "t0", "1", "ann", " ", "ä", "x" * 300)
_STRANGE_IDS = ("A" * 22, "AAAAAAAAAAAAAAAAAAAAAQ", "AAAAAAAAAAAAAAAAAAAAAg", "$topic:no-such", "$topic:t1", "$dir:9:1")


def mutated(api: str, version: int, body: Tree, rng: random.Random) -> Tree:
    """Return a changed copy of `body` that can still be written in that version."""
    tree = copy.deepcopy(body)
    spec = schema(f"{api}Request").root
    for _ in range(1 + (rng.random() < MORE_THAN_ONCE)):
        found = list(places(tree, spec, version))
        if not found:
            break
        container, key, field = rng.choice(found)
        _change(container, key, field, version, rng)
    return tree


def _change(container: Any, key: Any, field: FieldSpec, version: int, rng: random.Random) -> None:
    value = container[key]
    if isinstance(container, list):
        action = rng.choice(("drop", "repeat", "value"))
        if action == "drop":
            del container[key]
            return
        if action == "repeat":
            container.insert(rng.randrange(len(container) + 1), copy.deepcopy(value))
            return
    elif field.nullable.covers(version) and rng.random() < 0.25:
        container[key] = None
        return
    if field.is_array and not isinstance(container, list):
        container[key] = [] if rng.random() < 0.5 or not value else [*value, copy.deepcopy(value[0])]
    elif field.struct is None:
        container[key] = _other(value, field, rng)


def _other(value: Any, field: FieldSpec, rng: random.Random) -> Any:
    kind = field.kind
    if kind == "bool":
        return not value
    if kind == "string":
        return rng.choice(_STRANGE_TEXTS)
    if kind == "uuid":
        return rng.choice(_STRANGE_IDS)
    if kind == "float64":
        return rng.choice((0.0, -1.0, 1e30, 0.5, "NaN", "Infinity"))
    if kind == "bytes":
        return rng.choice(("", "AAAA"))
    if field.json_name == "timeoutMs":
        return rng.choice((0, -1))
    highest = (1 << _BITS[kind]) - 1
    lowest = 0 if kind == "uint16" else -highest - 1
    if isinstance(value, str):
        # A symbol stands for what the controllers call by different numbers.
        return -1 if _SUM.search(value) else value + rng.choice(("+1", "-1", "+1000000"))
    return rng.choice(
        [each for each in (value + 1, value - 1, 0, -1, 1, 2, 3, 7, 99, highest, lowest) if lowest <= each <= highest]
    )
