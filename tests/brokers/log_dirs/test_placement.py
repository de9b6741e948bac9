"""Directory ids as Kafka draws and orders them, where a new replica goes, and values of cordoned.log.dirs."""

from __future__ import annotations

import random

import pytest
from mockraft.brokers.log_dirs.cordoning import CordoningError, cordoned_paths
from mockraft.brokers.log_dirs.placement import DirectoryAt, candidates
from mockraft.brokers.log_dirs.placement_order import NewReplica, in_kafkas_order
from mockraft.serving.directory_ids import draw_uuid, in_java_order
from mockraft.wire.uuids import text_of

A, B, C = (DirectoryAt(f"/{name}", name.encode() * 16) for name in "abc")


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


def test_new_replica_is_placed_in_the_emptiest_dir() -> None:
    assert candidates([A, B], {A.directory_id: 2, B.directory_id: 1}, (), ()) == [B, A]
    assert candidates([A, B, C], {A.directory_id: 2, C.directory_id: 1}, (), ()) == [B, C, A]


def test_dirs_with_as_many_replicas_are_taken_in_the_order_of_the_config() -> None:
    assert candidates([B, A, C], {}, (), ()) == [B, A, C]


def test_new_replica_is_never_placed_in_an_offline_dir() -> None:
    assert candidates([A, B], {B.directory_id: 9}, {A.directory_id}, ()) == [B]
    assert candidates([A], {}, {A.directory_id}, ()) == []


def test_a_new_replica_does_not_go_to_a_cordoned_dir_while_there_is_another() -> None:
    assert candidates([A, B, C], {B.directory_id: 5}, (), {A.directory_id}) == [C, B]


def test_first_live_dir_is_used_when_all_are_cordoned() -> None:
    cordoned = {A.directory_id, B.directory_id, C.directory_id}
    assert candidates([A, B, C], {B.directory_id: 9}, {A.directory_id}, cordoned) == [B]


def test_only_live_dir_is_used_although_cordoned() -> None:
    assert candidates([A, B], {}, {B.directory_id}, {A.directory_id}) == [A]


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


def test_empty_sequence_has_no_order() -> None:
    assert in_kafkas_order(()) == []


PATHS = ("/d/0", "/d/1", "/d/2")


@pytest.mark.parametrize(
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


@pytest.mark.parametrize("value", ["/nope", "/d/0,/nope", "/d/0/", "d/0", "/d/0,,/d/1"])
def test_a_dir_that_is_not_in_log_dirs_spoils_the_whole_value(value: str) -> None:
    with pytest.raises(CordoningError, match=r"must be present in log\.dirs or log\.dir\. Missing entries : "):
        cordoned_paths(value, PATHS)


def test_a_star_stands_alone() -> None:
    with pytest.raises(CordoningError, match=r"is set to \*, it must not contain other values"):
        cordoned_paths("*,/d/0", PATHS)
