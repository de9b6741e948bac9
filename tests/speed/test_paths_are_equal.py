"""The C code and the pure functions give the same value, error and offset: on valid, mutated and wrong messages."""

import copy
import pickle
from collections.abc import Callable, Iterator
from random import Random
from types import FunctionType
from typing import Any

import pytest
from mockraft.vectors.bodies import random_body
from mockraft.wire import codec_path
from mockraft.wire.errors import WireError
from mockraft.wire.json_form import from_json
from mockraft.wire.message import Struct, field_names

from ..budgets import budget
from ..wire.conftest import all_pairs, generated_class
from ..wire.test_hostile_bytes import mutant

pytestmark = pytest.mark.accelerated

MUTANTS = budget(60_000, 1_000_000)
MANNERS = ("empty", "extreme", "plain", "mixed")
WRONG_VALUES: tuple[Any, ...] = (
    None, True, -1, 2**15, 2**16, 2**31, 2**32, 2**63, 2**64, 1.5, float("nan"), "", "text", "\udc80", "ß" * 20_000,
    "x" * 0x8000, b"", b"x" * 16, bytearray(16), memoryview(b"bytes"), [], (), [None], [1, 2], ["a"], [b"x" * 16],
    {"a": 1}, range(3), object(),
)  # fmt: skip


def outcome(function: Callable[..., Any], *arguments: Any) -> tuple[Any, ...]:
    """Return what a call returns, with types, or how it fails."""
    try:
        return "value", described(function(*arguments))
    except WireError as error:
        return "error", str(error), error.field, error.offset


def described(value: Any) -> Any:
    """Return a value in which equal means equal in value and type; a NaN is equal to itself."""
    if isinstance(value, Struct):
        names = (*field_names(type(value)), "unknown_tagged_fields")
        return type(value), [described(getattr(value, name)) for name in names]
    if isinstance(value, list | tuple):
        return type(value), [described(item) for item in value]
    return type(value), repr(value)


def messages(seed: int) -> Iterator[tuple[type[Any], int, Any]]:
    rng = Random(seed)
    for name, version in all_pairs():
        cls = generated_class(name)
        for manner in MANNERS:
            yield cls, version, from_json(cls, random_body(name, version, rng, manner), version)


def refuse(*arguments: Any) -> None:
    raise AssertionError("left to the pure function")


def test_c_code_is_what_runs_here() -> None:
    cls = generated_class("FetchRequest")
    assert codec_path.path == "speed"
    for function in (cls.read, cls.read_from, cls.write):
        assert isinstance(function.__wrapped__, FunctionType)


def test_no_valid_message_is_left_to_the_pure_functions() -> None:
    """Without this, C code that refused everything would pass all other tests."""
    from mockraft_speed._codec import Codec, paths
    from mockraft_speed.plans import Planner

    for cls, version, message in messages(31):
        namespace = vars(__import__(cls.__module__, fromlist=["_FIELDS"]))
        codec = Codec(Planner(namespace["_FIELDS"], namespace), cls.min_version, cls.max_version)
        read, read_from, write = paths(codec, refuse, refuse, refuse)
        expected = cls.write.__wrapped__(message, version)
        # Unknown tagged fields are read in C; they are rare enough to be written by the pure function.
        if "unknown_tagged_fields=[" not in repr(message):
            assert write(message, version) == expected
        assert described(read(expected, version)) == described(cls.read.__wrapped__(expected, version))
        assert read_from(b"x" + expected, version, 1)[1] == 1 + len(expected)


def test_mutated_messages_have_the_same_outcome() -> None:
    rng = Random(32)
    samples = [(cls, version, message.write(version)) for cls, version, message in messages(33)]
    values = 0
    for cls, version, data in samples:
        for _ in range(MUTANTS // len(samples) + 1):
            body = mutant(data, rng)
            found = outcome(cls.read, body, version)
            assert found == outcome(cls.read.__wrapped__, body, version), (cls, version, body.hex())
            offset = rng.randrange(-2, len(body) + 2)
            assert outcome(cls.read_from, body, version, offset) == outcome(
                cls.read_from.__wrapped__, body, version, offset
            ), (cls, version, offset, body.hex())
            if found[0] == "value":
                values += 1
                message = cls.read(body, version)
                assert outcome(message.write, version) == outcome(cls.write.__wrapped__, message, version)
    assert values > MUTANTS // 10


def structs_of(value: Any) -> Iterator[Struct]:
    if isinstance(value, Struct):
        yield value
        for name in field_names(type(value)):
            yield from structs_of(getattr(value, name))
    elif isinstance(value, list):
        for item in value:
            yield from structs_of(item)


def test_wrong_values_have_the_same_outcome() -> None:
    rng = Random(34)
    written = 0
    for cls, version, message in messages(35):
        for _ in range(3):
            struct = rng.choice(list(structs_of(message)))
            names = (*field_names(type(struct)), "unknown_tagged_fields")
            name = rng.choice(names)
            before = getattr(struct, name)
            if rng.random() < 0.1:
                delattr(struct, name)
            else:
                setattr(struct, name, rng.choice(WRONG_VALUES))
            found = outcome_of_write(message.write, version)
            assert found == outcome_of_write(cls.write.__wrapped__, message, version)
            written += found[0] == "value"
            setattr(struct, name, before)
    assert written > 1000


def outcome_of_write(write: Callable[..., bytes], *arguments: Any) -> tuple[Any, ...]:
    try:
        return outcome(write, *arguments)
    except Exception as error:  # what the pure writer does not turn into a WireError
        return type(error), str(error)


@pytest.mark.parametrize("version", [True, 1.0, "1", None, -1, 3, 2**70])
def test_a_wrong_version_has_the_same_outcome(version: Any) -> None:
    cls = generated_class("BrokerHeartbeatRequest")
    data = cls(broker_id=1).write(1)
    for function, arguments in ((cls.read, (data,)), (cls.write, (cls(),))):
        assert outcome_of_write(function, *arguments, version) == outcome_of_write(
            function.__wrapped__, *arguments, version
        )


def test_other_ways_to_call_are_those_of_the_pure_functions() -> None:
    cls = generated_class("BrokerHeartbeatRequest")
    message = cls(broker_id=7)
    data = message.write(version=1)
    assert data == cls.write(message, 1) == message.write(1)
    assert cls.read(data=data, version=1) == cls.read(bytearray(data), 1) == cls.read(memoryview(data), 1) == message
    assert cls.read_from(data, 1, 0, len) == cls.read_from(data, 1, offset=0, spend=None) == (message, 23)
    for function in (cls.read, cls.read_from, cls.write):
        assert pickle.loads(pickle.dumps(function)) is copy.deepcopy(function) is function
        assert function.__name__ == function.__wrapped__.__name__
        assert function.__doc__ == function.__wrapped__.__doc__
    with pytest.raises(TypeError):
        cls.read(data)
    with pytest.raises(TypeError):
        message.write()
