"""Comparison with kio, a codec with a native reader, for everything that it supports.

kio 0.6.5 does not support error codes outside its enum, negative or very large milliseconds, unknown tagged fields, the
limits of uint16 and float64, and metadata records; the bodies here avoid them.
"""

import io
from random import Random
from typing import Any

from kio.serial import entity_reader, entity_writer
from mockraft.wire.json_form import from_json
from mockraft.wire.schema_files import names, schema

from .conftest import generated_class, random_body
from .kio_values import kio_class, leaves, our_leaves

BODIES_PER_PAIR = 3
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
