"""Replicas are placed in the order of Java's hash maps; Java printed the expected values."""

from __future__ import annotations

from mockraft.brokers.log_dirs.placement_order import NewReplica, in_kafkas_order

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
