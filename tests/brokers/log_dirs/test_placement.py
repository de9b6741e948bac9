"""Directory ids and names of logs as Kafka makes them, where a new replica goes, and values of cordoned.log.dirs."""

from __future__ import annotations

import random

import pytest
from mockraft.brokers.log_dirs.log_loading import Kind, LogName, live_name, marked_name, parse
from mockraft.brokers.log_dirs.placement import (
    CordoningError,
    DirectoryAt,
    NewReplica,
    candidates,
    cordoned_paths,
    in_kafkas_order,
)
from mockraft.wire.directory_ids import draw_uuid, in_java_order
from mockraft.wire.uuids import text_of

from ...rows import each_row

DIRS = {name: DirectoryAt(f"/{name}", name.encode() * 16) for name in "abc"}


def ids(names: str) -> set[bytes]:
    return {DIRS[name].directory_id for name in names}


def test_drawn_uuids_never_start_with_a_dash() -> None:
    drawn = [draw_uuid(random.Random(seed)) for seed in range(500)]
    assert len(set(drawn)) == 500
    assert {uuid[6] >> 4 for uuid in drawn} == {4}
    assert {uuid[8] >> 6 for uuid in drawn} == {2}
    assert not any(text_of(uuid).startswith("-") for uuid in drawn)


def test_orders_uuids_as_java_does() -> None:
    low, high = b"\x40" + bytes(15), b"\xbd" + bytes(15)
    assert in_java_order([low, high]) == [high, low]
    assert in_java_order([bytes(8) + low[:8], bytes(8) + high[:8]]) == [bytes(8) + high[:8], bytes(8) + low[:8]]


@each_row(
    ("dirs", "held", "offline", "cordoned", "found"),
    {
        "the emptiest first": ("ab", {"a": 2, "b": 1}, "", "", "ba"),
        "in order of their replicas": ("abc", {"a": 2, "c": 1}, "", "", "bca"),
        "as the config has them when they have as many": ("bac", {}, "", "", "bac"),
        "never an offline one": ("ab", {"b": 9}, "a", "", "b"),
        "none when all are offline": ("a", {}, "a", "", ""),
        "no cordoned one while there is another": ("abc", {"b": 5}, "", "a", "cb"),
        "the first live one when all are cordoned": ("abc", {"b": 9}, "a", "abc", "b"),
        "the only live one although it is cordoned": ("ab", {}, "b", "a", "a"),
    },
)
def test_new_replica_is_placed_by_kafkas_rules(
    dirs: str, held: dict[str, int], offline: str, cordoned: str, found: str
) -> None:
    """Each directory is a letter."""
    counts = {DIRS[name].directory_id: count for name, count in held.items()}
    result = candidates([DIRS[name] for name in dirs], counts, ids(offline), ids(cordoned))
    assert result == [DIRS[name] for name in found]


ORDERS = bytes.fromhex("01020304050607081112131415161718")
PAYMENTS = bytes.fromhex("f1020304050607088112131415161718")
FIVE = [0, 1, 2, 3, 4]
TOGETHER = (
    "t21 t19 t17 t15 t13 p3 t11 p1 t9 p7 t7 p5 t5 p11 t3 p9 t1 t30 t28 o1 t26 o3 t24 t22 t20 t18 p0 t16 t14 p4 t12 p2 "
    "t10 p8 t8 p6 t6 p12 t4 p10 t2 t0 t29 o0 t27 o2 t25 t23"
)
T = bytes.fromhex("000000000000007fffffffffffff1718")


def new(topic_id: bytes, topic: str, partitions: int) -> set[NewReplica]:
    return {NewReplica(topic_id, topic, partition) for partition in range(partitions)}


def test_a_topic_that_fits_into_a_small_table() -> None:
    assert [each.partition for each in in_kafkas_order(new(ORDERS, "orders", 5))] == FIVE


def test_several_topics_in_one_table_that_grows() -> None:
    together = new(ORDERS, "orders", 4) | new(PAYMENTS, "payments.of-2026", 13) | new(T, "t", 31)
    assert [f"{each.topic[0]}{each.partition}" for each in in_kafkas_order(together)] == TOGETHER.split()


PATHS = ("/d/0", "/d/1", "/d/2")


@each_row(
    ("value", "cordoned"),
    [
        ("", ()),
        ("  ", ()),
        ("/d/1", ("/d/1",)),
        (" /d/2 , /d/0", ("/d/0", "/d/2")),
        ("/d/1,/d/1", ("/d/1",)),
        ("*", PATHS),
        (" * ", PATHS),
    ],
)
def test_names_the_cordoned_dirs(value: str, cordoned: tuple[str, ...]) -> None:
    assert cordoned_paths(value, PATHS) == set(cordoned)


@each_row("value", ["/nope", "/d/0,/nope", "/d/0/", "d/0", "/d/0,,/d/1"])
def test_a_dir_that_is_not_in_log_dirs_spoils_the_whole_value(value: str) -> None:
    with pytest.raises(CordoningError, match=r"must be present in log\.dirs or log\.dir\. Missing entries : "):
        cordoned_paths(value, PATHS)


def test_a_star_stands_alone() -> None:
    with pytest.raises(CordoningError, match=r"is set to \*, it must not contain other values"):
        cordoned_paths("*,/d/0", PATHS)


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
