"""Any bytes give a message or a WireError, nothing else, in bounded time and memory."""

import time
import tracemalloc
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

import pytest
from mockraft.vectors.bodies import random_body
from mockraft.wire import schema_reading
from mockraft.wire.errors import WireError
from mockraft.wire.json_form import from_json

from ..budgets import budget
from ..rows import each_row
from .conftest import generated_class

MUTANTS = budget(5_000, 100_000)
MESSAGE_SECONDS_MAX = 1.0
# What a refused body may cost beyond a fixed amount, for each of its bytes: objects are larger than their bytes.
MEMORY_FACTOR = 200
BOMBS = (
    b"\x7f\xff\xff\xff",  # the largest int32
    b"\x00\xff\xff\xff",  # 16 million
    b"\x7f\xff",  # the largest int16
    b"\xff\xff\xff\xff\x07",  # varints: 2^31 - 1,
    b"\xff\xff\xff\xff\x0f",  # 2^32 - 1,
    b"\xff\xff\xff\x07",  # 16 million,
    b"\x80\x80\x80\x80\x80\x01",  # six bytes of one,
    b"\x80\x00",  # and a zero in two bytes
    b"\xff\xff\xff\xff",
    b"\x80\x00\x00\x00",
)


def mutant(data: bytes, rng: Random) -> bytes:
    """`data` with one fault: a bit, a byte, bytes removed or inserted, an excessive length, or a truncated end."""
    at = rng.randrange(len(data) + 1)
    match rng.randrange(7):
        case 0 if at < len(data):
            return data[:at] + bytes((data[at] ^ 1 << rng.randrange(8),)) + data[at + 1 :]
        case 1:
            return data[:at] + bytes((rng.choice((0, 1, 0x7F, 0x80, 0xFF)),)) + data[at + 1 :]
        case 2:
            return data[:at] + data[at + rng.randrange(1, 9) :]
        case 3:
            return data[:at] + rng.randbytes(rng.randrange(1, 5)) + data[at:]
        case 4:
            bomb = rng.choice(BOMBS)
            return data[:at] + bomb + data[at + len(bomb) :]
        case 5:
            return data[:at] + rng.choice(BOMBS) + data[at + 1 :]
    return data[:at]


def test_a_hundred_thousand_mutated_bodies_are_messages_or_wire_errors(sample_bytes: Any) -> None:
    rng = Random(20)
    messages = 0
    slowest = 0.0
    for (name, version), data in sample_bytes.items():
        cls = generated_class(name)
        for _ in range(MUTANTS // len(sample_bytes) + 1):
            body = mutant(data, rng)
            started = time.process_time()
            try:
                message = cls.read(body, version)
            except WireError:
                continue
            finally:
                slowest = max(slowest, time.process_time() - started)
            again = message.write(version)
            # Equal by bytes, not by value: a NaN is not equal to itself.
            assert cls.read(again, version).write(version) == again, (name, version, body.hex())
            messages += 1
    assert messages > MUTANTS // 10
    assert slowest < MESSAGE_SECONDS_MAX


def is_accepted(read: Callable[[], Any]) -> bool:
    try:
        read()
    except WireError:
        return False
    return True


def test_the_reading_by_schemas_accepts_and_refuses_the_same_bodies(sample_bytes: Any) -> None:
    rng = Random(21)
    for (name, version), data in sample_bytes.items():
        for _ in range(20):
            body = mutant(data, rng)
            ours = is_accepted(partial(generated_class(name).read, body, version))
            assert ours == is_accepted(partial(schema_reading.read, name, version, body)), (name, version, body.hex())


def test_every_truncation_and_a_byte_too_many_are_refused(pairs: Any) -> None:
    rng = Random(22)
    for name, version in pairs:
        cls = generated_class(name)
        data = from_json(cls, random_body(name, version, rng, "plain"), version).write(version)
        for wrong in (data + b"\x00", *(data[:end] for end in range(len(data)))):
            with pytest.raises(WireError):
                cls.read(wrong, version)


def test_length_bombs_cost_no_more_memory_than_their_bytes_justify(sample_bytes: Any) -> None:
    bodies = [
        (name, version, data[:at] + bomb + data[at + len(bomb) :])
        for (name, version), data in sample_bytes.items()
        if version == generated_class(name).max_version
        for at in range(0, min(len(data), 120), 5)
        for bomb in BOMBS[:6]
    ]
    tracemalloc.start()
    try:
        for name, version, body in bodies:
            cls = generated_class(name)
            tracemalloc.reset_peak()
            before, _ = tracemalloc.get_traced_memory()
            is_accepted(partial(cls.read, body, version))
            _, peak = tracemalloc.get_traced_memory()
            assert peak - before < 200_000 + MEMORY_FACTOR * len(body), (name, version, body.hex())
    finally:
        tracemalloc.stop()


@each_row("version", [4, 18])
def test_a_fetch_that_promises_two_billion_topics_is_refused_at_once(version: int) -> None:
    cls = generated_class("FetchResponse")
    bomb = b"\x7f\xff\xff\xff" if version < 12 else b"\xff\xff\xff\xff\x07"
    before_array = bytes(4) if version < 7 else bytes(10)
    with pytest.raises(WireError, match="elements"):
        cls.read(before_array + bomb + bytes(50), version)


@each_row("version", [-1, 3, 32767])
def test_an_unknown_version_is_a_wire_error(version: int) -> None:
    cls = generated_class("BrokerHeartbeatRequest")
    with pytest.raises(WireError, match="versions 0 to 2"):
        cls.read(bytes(40), version)
    with pytest.raises(WireError, match="versions 0 to 2"):
        cls().write(version)
