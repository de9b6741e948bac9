"""Directory ids as Kafka draws and orders them, and where a new replica goes."""

from __future__ import annotations

import random

from mockraft.brokers.log_dirs.placement import DirectoryAt, candidates
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
