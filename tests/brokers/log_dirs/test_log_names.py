"""Names of log directories: what is written is read, and Kafka's limit of 255 bytes."""

from __future__ import annotations

import random

from mockraft.brokers.log_dirs.log_loading import Kind, LogName, live_name, marked_name, parse

from ...rows import each_row

LONGEST_TOPIC = "t" * 249


@each_row(("topic", "partition"), [("orders", 0), ("a-b.c_d", 17), ("orders-1", 2_147_483_647)])
def test_names_are_read_as_they_were_written(topic: str, partition: int) -> None:
    assert parse(live_name(topic, partition)) == LogName(topic, partition)
    kinds: tuple[Kind, ...] = ("future", "delete", "stray")
    for kind in kinds:
        assert parse(marked_name(topic, partition, kind, random.Random(1))) == LogName(topic, partition, kind)


@each_row(("kind", "length"), [("future", 291), ("delete", 255), ("stray", 255)])
def test_a_topic_is_cut_unless_the_log_is_to_become_the_current_one(kind: Kind, length: int) -> None:
    name = marked_name(LONGEST_TOPIC, 3, kind, random.Random(1))
    assert len(name) == length
    found = parse(name)
    assert found is not None
    assert (found.partition, found.kind, LONGEST_TOPIC.startswith(found.topic)) == (3, kind, True)
    assert (found.topic == LONGEST_TOPIC) == (kind == "future")


@each_row("name", ["orders", "orders-", "orders-x", "orders-0.x-gone", "orders-12345678901", "a/b-0"])
def test_other_names_are_none(name: str) -> None:
    assert parse(name) is None
