"""The text of uuids as Kafka's `Uuid` has it, and ids of directories: the reserved ones, new ones and Java's order."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mockraft.kafka_api.api import Parked
from mockraft.wire import directory_ids, uuids
from mockraft.wire.uuids import text_of

from ..rows import each_row


@each_row(
    ("upper", "lower", "expected"),
    [(0, 0, True), (0, 99, True), (0, 100, False), (0, 1 << 63, True), (1, 0, False), (1 << 63, 1, False)],
)
def test_the_first_hundred_ids_and_negative_ones_are_reserved(upper: int, lower: int, expected: bool) -> None:
    assert directory_ids.is_reserved(upper.to_bytes(8) + lower.to_bytes(8)) is expected


def test_ids_with_the_top_bit_of_a_half_come_first_in_java() -> None:
    ids = [bytes([upper]) + bytes(7) + bytes([lower]) + bytes(7) for upper in (0x80, 0, 0x7F) for lower in (0xFF, 0, 1)]
    assert directory_ids.in_java_order(reversed(ids)) == ids


def test_drawn_ids_are_random_uuids_of_version_4_without_a_dash_at_the_start() -> None:
    rng = random.Random(1)
    drawn = [directory_ids.draw_uuid(rng) for _ in range(2000)]
    assert len(set(drawn)) == 2000
    assert not any(text_of(each).startswith("-") for each in drawn)
    source = bytearray(random.Random(1).randbytes(16))
    source[6], source[8] = 0x40 | source[6] % 16, 0x80 | source[8] % 64
    assert drawn[0] == bytes(source)
    assert {each[8] >> 6 for each in drawn} == {2}


def test_a_wait_that_is_followed_has_the_other_result_at_the_same_times() -> None:
    answers = iter([None, "first"])
    asked = []

    def retry(now_ms: int, expired: bool) -> str | None:
        asked.append((now_ms, expired))
        return next(answers)

    parked = Parked(500, retry).then(lambda answer, now_ms: f"{answer} at {now_ms}")
    assert parked.deadline_ms == 500
    assert parked.retry(100, False) is None
    assert parked.retry(500, True) == "first at 500"
    assert asked == [(100, False), (500, True)]


def test_the_text_is_kafkas() -> None:
    assert uuids.text_of(bytes(15) + b"\x01") == "AAAAAAAAAAAAAAAAAAAAAQ"


@given(st.binary(min_size=16, max_size=16))
def test_the_text_reads_back_with_and_without_padding(uuid: bytes) -> None:
    text = uuids.text_of(uuid)
    assert uuids.read_text(text) == uuids.read_text(f"{text}==") == uuid


@each_row("text", ["", "A", "AAAAAAAAAAAAAAAAAAAAA", "A" * 32, "AAAAAAAAAAAAAAAAAAAA!Q", "é" * 22])
def test_refuses_malformed_uuids(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 (base64's own text or ours)
        uuids.read_text(text)
