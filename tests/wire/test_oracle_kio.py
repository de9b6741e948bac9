"""Comparison with kio, a codec with a native reader, for everything that it supports.

kio 0.6.5 does not support error codes outside its enum, negative or very large milliseconds, unknown tagged fields, the
limits of uint16 and float64, and metadata records; the bodies here avoid them.
"""

import datetime
import io
import uuid
from enum import Enum
from importlib import import_module
from random import Random
from typing import Any

from kio.schema.index import schema_name_map
from kio.serial import entity_reader, entity_writer
from mockraft.wire.json_form import from_json
from mockraft.wire.schema_files import StructSpec, names, schema

from .conftest import generated_class, random_body

BODIES_PER_PAIR = 3
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
METADATA_RECORDS = {name for name in names() if schema(name).kind == "metadata"}
SINCE_4_4 = {
    ("AbortedTxn", 0),
    *(
        (name + ending, version)
        for name, version in {
            "ApiVersions": 5,
            "DeleteGroups": 3,
            "StreamsGroupDescribe": 1,
            "StreamsGroupHeartbeat": 1,
            "StreamsGroupTopologyDescriptionUpdate": 0,
            "TxnOffsetCommit": 6,
            "UnregisterController": 0,
        }.items()
        for ending in ("Request", "Response")
    ),
}
"""Messages and versions that are newer than kio, which ends with Kafka 4.3."""


def kio_class(name: str, version: int) -> Any:
    """Return kio's class; its index uses the API's name for requests and responses."""
    kind = schema(name).kind
    api = name.removesuffix({"request": "Request", "response": "Response"}.get(kind, ""))
    key = "".join(f"_{c.lower()}" if c.isupper() else c for c in api).removeprefix("_")
    for entity_type, place in schema_name_map[key][version].items():
        if entity_type.name == kind:
            module, _, class_name = place.partition(":")
            return getattr(import_module(module), class_name)
    raise KeyError(name)


def tame(tree: Any, key: str = "") -> Any:
    """Return the tree with error codes and times that kio supports."""
    if isinstance(tree, dict):
        return {k: tame(v, k) for k, v in tree.items()}
    if isinstance(tree, list):
        return [tame(v, key) for v in tree]
    if isinstance(tree, int) and not isinstance(tree, bool):
        if key.lower().endswith("errorcode"):
            return (0, 3, 77)[tree % 3]
        if "time" in key.lower() or key.lower().endswith("ms"):
            return tree % 1_000_000
    return tree


def leaves(value: Any) -> list[Any]:
    """Return the values of kio's entity in field order, converted to plain types."""
    if isinstance(value, tuple):
        return [len(value), *(leaf for v in value for leaf in leaves(v))]
    if hasattr(value, "__dataclass_fields__"):
        fields = [name for name in value.__dataclass_fields__ if not name.startswith("__")]
        return [leaf for name in fields for leaf in leaves(getattr(value, name))]
    return [plain(value)]


def our_leaves(struct: StructSpec, message: Any, version: int) -> list[Any]:
    """Return the values of a generated object, in field order, of the fields that the version has."""
    found: list[Any] = []
    for field in struct.fields:
        if field.versions.covers(version):
            value = getattr(message, field.attribute)
            values = value if isinstance(value, list) else [value]
            found += [len(value)] if isinstance(value, list) else []
            for v in values:
                found += [v] if field.struct is None or v is None else our_leaves(field.struct, v, version)
    return found


def plain(value: Any) -> Any:
    match value:
        case uuid.UUID():
            return value.bytes
        case datetime.timedelta():
            return value // datetime.timedelta(milliseconds=1)
        case datetime.datetime():
            return (value - EPOCH) // datetime.timedelta(milliseconds=1)
        case Enum():
            return value.value
    return value


def test_kio_has_every_pair_of_4_3_but_the_metadata_records(pairs: Any) -> None:
    missing = set()
    for name, version in pairs:
        try:
            kio_class(name, version)
        except KeyError:
            missing.add((name, version))
    assert missing == SINCE_4_4 | {pair for pair in pairs if pair[0] in METADATA_RECORDS}


def test_kio_reads_our_bytes_to_the_same_values_and_writes_them_again(pairs: Any) -> None:
    rng = Random(65)
    compared = 0
    for name, version in pairs:
        if name in METADATA_RECORDS or (name, version) in SINCE_4_4:
            continue
        entity_class = kio_class(name, version)
        reader, writer = entity_reader(entity_class), entity_writer(entity_class)
        for _ in range(BODIES_PER_PAIR):
            message = from_json(generated_class(name), tame(random_body(name, version, rng, "plain")), version)
            data = message.write(version)
            entity, size = reader(data, 0)
            assert size == len(data)
            assert leaves(entity) == our_leaves(schema(name).root, message, version), (name, version)
            buffer = io.BytesIO()
            writer(buffer, entity)
            assert buffer.getvalue() == data, (name, version)
            compared += 1
    assert compared == BODIES_PER_PAIR * 625
