"""The codecs in Python that are timed in one process, in turns."""

from __future__ import annotations

import io
import timeit
from typing import Any

from codec_peers.bodies import Body

PURE, SPEED = "mockraft, pure Python", "mockraft[speed]"
KIO, KAFKA_PYTHON = "kio", "kafka-python"
GROUPS = 3
"""The shortest round of each group is kept, so that the spread of a ratio is seen."""

Names = dict[str, Any]
"""Names of a timed statement; those of other libraries have no types."""
Contender = tuple[str, str, Names]
"""A library, a statement to time and its names."""


def decoders_and_encoders(body: Body) -> tuple[list[Contender], list[Contender]]:
    """Return decoders and encoders of a body, mockraft's first."""
    data = body.message.write(body.version)
    cls = type(body.message)
    read, write = pure(cls.read), pure(cls.write)
    message = read(data, body.version)
    assert write(message, body.version) == data
    decoders: list[Contender] = [(PURE, f"read(data, {body.version})", {"read": read, "data": data})]
    encoders: list[Contender] = [(PURE, f"write(message, {body.version})", {"write": write, "message": message})]
    if read is not cls.read:
        assert cls.read(data, body.version) == message
        decoders.append((SPEED, f"read(data, {body.version})", {"read": cls.read, "data": data}))
        encoders.append((SPEED, f"message.write({body.version})", {"message": message}))
    for name, peer in ((KIO, _kio), (KAFKA_PYTHON, _kafka_python)):
        found = peer(body, data)
        if found is not None:
            decoders.append((name, *found[0]))
            encoders.append((name, *found[1]))
    return decoders, encoders


def pure(function: Any) -> Any:
    """Return the function in pure Python that an accelerated one wraps."""
    return getattr(function, "__wrapped__", function)


def _kio(body: Body, data: bytes) -> tuple[tuple[str, Names], tuple[str, Names]] | None:
    from kio.index import load_payload_module
    from kio.serial import entity_reader, entity_writer
    from kio.static.constants import EntityType

    cls = type(body.message)
    if cls.__module__.startswith("mockraft.wire.records"):
        return None
    is_request = cls.__name__.endswith("Request")
    module = load_payload_module(cls.api_key, body.version, EntityType.request if is_request else EntityType.response)
    entity = getattr(module, cls.__name__)
    read, write = entity_reader(entity), entity_writer(entity)
    message = read(data, 0)[0]
    buffer = io.BytesIO()
    write(buffer, message)
    assert buffer.getvalue() == data, f"kio writes different bytes for {body.name}"
    names = {"read": read, "write": write, "data": data, "message": message, "BytesIO": io.BytesIO}
    return ("read(data, 0)", names), ("b = BytesIO(); write(b, message); b.getvalue()", names)


def _kafka_python(body: Body, data: bytes) -> tuple[tuple[str, Names], tuple[str, Names]] | None:
    from kafka.protocol.admin import CreateTopicsRequest
    from kafka.protocol.consumer import FetchRequest, FetchResponse
    from kafka.protocol.metadata import ApiVersionsResponse, MetadataResponse

    classes = (CreateTopicsRequest, FetchRequest, FetchResponse, ApiVersionsResponse, MetadataResponse)
    by_name = {cls.__name__: cls for cls in classes}
    cls = by_name.get(type(body.message).__name__)
    if cls is None:
        return None
    message = cls.decode(data, version=body.version)
    message._header = None  # decode leaves it unset, encode asks for it
    assert message.encode(version=body.version) == data, f"kafka-python writes different bytes for {body.name}"
    names = {"decode": cls.decode, "data": data, "message": message}
    return (f"decode(data, version={body.version})", names), (f"message.encode(version={body.version})", names)


def measure(all_bodies: list[Body], rounds: int, round_ms: float) -> dict[str, dict[str, dict[str, list[float]]]]:
    """Time every contender on every body, interleaved, in GROUPS groups of so many rounds.

    Nanoseconds by direction, message and library: the shortest of each group.
    """
    timings: dict[str, dict[str, dict[str, list[float]]]] = {"decode": {}, "encode": {}}
    for body in all_bodies:
        for direction, contenders in zip(("decode", "encode"), decoders_and_encoders(body), strict=True):
            timings[direction][body.name] = _least(contenders, rounds, round_ms)
    return timings


def _least(contenders: list[Contender], rounds: int, round_ms: float) -> dict[str, list[float]]:
    timers = []
    for name, statement, names in contenders:
        timer = timeit.Timer(statement, "import gc; gc.enable()", globals=names)
        once = min(timer.timeit(3) for _ in range(3)) / 3
        timers.append((name, timer, max(1, int(round_ms / 1000 / once))))
    least: dict[str, list[float]] = {name: [] for name, _, _ in timers}
    for _ in range(GROUPS):
        for group in least.values():
            group.append(float("inf"))
        for _ in range(rounds):
            for name, timer, times in timers:
                least[name][-1] = min(least[name][-1], timer.timeit(times) / times * 1e9)
    return least
