"""Toxics on a direction's bytes by a clock that the test moves."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mockraft.kafka_api.api import NEVER_MS
from mockraft.server.stubs.faults.fault import ClientEnd, End, Fault, Toxic
from mockraft.server.stubs.faults.pipe import DUE_ITEMS_MAX, Pipe
from mockraft.server.stubs.faults.registry import Faults

from ....rows import each_row

CLIENT = ClientEnd("client", 1, 7, "CONTROLLER", 3000, "127.0.0.1")


def fault(kind: str, **params: Any) -> Fault:
    return Faults().add(kind, **params)


def toxic(of: Fault, now_ms: int = 0) -> Toxic:
    assert of.kind.toxic is not None
    return of.kind.toxic(of, of.rng(CLIENT, "downstream"), now_ms)


def pipe(*faults: Fault) -> Pipe:
    made = Pipe()
    made.apply([toxic(one) for one in faults])
    return made


def run(of: Pipe, until_ms: int = 10**9) -> list[tuple[int, bytes | End]]:
    """Output chunks with their times, polled exactly when the pipe is due."""
    out: list[tuple[int, bytes | End]] = []
    now_ms = 0
    while now_ms <= until_ms:
        out += [(now_ms, said) for said in of.due(now_ms)]
        next_ms = of.next_ms()
        if next_ms == NEVER_MS:
            break
        now_ms = max(now_ms, next_ms)
    return out


def whole(out: list[tuple[int, bytes | End]]) -> bytes:
    return b"".join(said for _, said in out if isinstance(said, bytes))


chunkings = st.lists(st.binary(min_size=1, max_size=200), min_size=1, max_size=20)


@given(
    chunks=chunkings,
    gap_ms=st.integers(0, 50),
    latency_ms=st.integers(0, 300),
    jitter_ms=st.integers(0, 300),
    rate=st.integers(1, 5_000),
    size=st.integers(1, 50),
    variation=st.integers(0, 60),
    seed=st.integers(0, 9),
)
def test_delayed_slowed_and_sliced_bytes_are_unchanged(
    chunks: list[bytes], gap_ms: int, latency_ms: int, jitter_ms: int, rate: int, size: int, variation: int, seed: int
) -> None:
    slow = pipe(
        fault("latency", latency_ms=latency_ms, jitter_ms=jitter_ms, seed=seed),
        fault("bandwidth", bytes_per_second=rate),
        fault("slicer", average_size=size, size_variation=variation, delay_ms=1, seed=seed),
    )
    out: list[tuple[int, bytes | End]] = []
    for index, chunk in enumerate(chunks):
        slow.push(chunk, index * gap_ms)
        out += [(index * gap_ms, said) for said in slow.due(index * gap_ms)]
    slow.close(len(chunks) * gap_ms)
    out += run(slow)
    assert whole(out) == b"".join(chunks)
    assert out[-1][1] is End.CLOSE
    assert slow.held_bytes == 0


@given(
    data=st.binary(min_size=1, max_size=500), cuts=st.lists(st.integers(1, 499), max_size=10), seed=st.integers(0, 5)
)
@pytest.mark.parametrize(
    ("kind", "params"),
    [
        ("corrupt", {"probability": 0.05}),
        ("corrupt", {"every_nth": 7}),
        ("truncate", {"bytes": 123}),
        ("limit_data", {"bytes": 123}),
    ],
)
def test_the_same_seed_makes_the_same_bytes_at_any_chunking(
    kind: str, params: dict[str, Any], data: bytes, cuts: list[int], seed: int
) -> None:
    at_once, in_pieces = (pipe(fault(kind, seed=seed, **params)) for _ in range(2))
    at_once.push(data, 0)
    bounds = [0, *sorted(cut for cut in set(cuts) if cut < len(data)), len(data)]
    for start, end in itertools.pairwise(bounds):
        in_pieces.push(data[start:end], 0)
    first, second = run(at_once), run(in_pieces)
    assert whole(first) == whole(second)
    assert [said for _, said in first if isinstance(said, End)] == [said for _, said in second if isinstance(said, End)]


def test_latency_delays_each_chunk_by_its_draw_and_keeps_the_order() -> None:
    late = pipe(fault("latency", latency_ms=100, jitter_ms=90, seed=3))
    for index in range(50):
        late.push(bytes([index]), index)
    out = run(late)
    assert whole(out) == bytes(range(50))
    delays = [at_ms - said[0] for at_ms, said in out if isinstance(said, bytes)]
    assert min(delays) >= 10
    assert max(delays) <= 190
    assert len(set(delays)) > 10


@each_row(
    ("kind", "params", "chunks", "expected"),
    [
        ("latency", {"latency_ms": 100}, [b"last words", None], [(100, b"last words"), (100, End.CLOSE)]),
        ("half_open", {}, [b"anybody there?"], []),
        ("half_open", {"timeout_ms": 750}, [b"anybody there?"], [(750, End.CLOSE)]),
        ("reset_peer", {"timeout_ms": 20}, [b"hello"], [(0, b"hello"), (20, End.RESET)]),
        ("limit_data", {"bytes": 17}, [bytes(10)] * 3, [(0, bytes(10)), (0, bytes(7)), (0, End.CLOSE)]),
        ("truncate", {"bytes": 5}, [b"half a frame", b"another"], [(0, b"half ")]),
        ("duplicate", {}, [b"one", b"two"], [(0, b"one"), (0, b"one"), (0, b"two"), (0, b"two")]),
        ("slow_close", {"delay_ms": 300}, [b"bye", None], [(0, b"bye"), (300, End.CLOSE)]),
    ],
)
def test_bytes_leave_a_pipe_as_its_toxic_lets_them(
    kind: str, params: Any, chunks: list[bytes | None], expected: Any
) -> None:
    of = fault(kind, **params)
    through = pipe(of)
    for chunk in chunks:
        if chunk is None:
            through.close(0)
        else:
            through.push(chunk, 0)
    assert run(through) == expected
    assert through.held_bytes == 0
    ended = None not in chunks and expected and isinstance(expected[-1][1], End)
    assert through.ended_by is (of if ended else None)
    assert kind != "limit_data" or of.fired == 1


def test_bandwidth_takes_the_time_that_the_line_needs() -> None:
    slow = pipe(fault("bandwidth", bytes_per_second=1_000))
    slow.push(bytes(500), 0)
    slow.push(bytes(500), 100)
    out = run(slow)
    assert out[-1][0] == 1_000
    half_way = [said for at_ms, said in out if at_ms <= 500]
    assert sum(map(len, half_way)) == 500  # type: ignore[arg-type]


def test_slices_have_the_configured_size_and_delay() -> None:
    sliced = pipe(fault("slicer", average_size=10, size_variation=3, delay_ms=5))
    sliced.push(bytes(1_000), 0)
    out = run(sliced)
    sizes = [len(said) for _, said in out if isinstance(said, bytes)]
    assert {*sizes[:-1]} <= set(range(7, 14))
    assert len({*sizes}) > 3
    assert [at_ms for at_ms, _ in out] == [5 * index for index in range(len(out))]


def test_corrupt_changes_each_nth_byte_and_no_other() -> None:
    of = fault("corrupt", every_nth=4)
    garbled = pipe(of)
    for _ in range(25):
        garbled.push(bytes(4), 0)
    changed = [index for index, byte in enumerate(whole(run(garbled))) if byte]
    assert changed == list(range(3, 100, 4))
    assert of.fired == 25


def test_corrupt_changes_about_the_configured_number_of_bytes() -> None:
    garbled = pipe(fault("corrupt", probability=0.01, seed=1))
    garbled.push(bytes(100_000), 0)
    changed = sum(1 for byte in whole(run(garbled)) if byte)
    assert 800 < changed < 1_200


def test_removed_toxic_releases_its_bytes_in_order() -> None:
    late = pipe(fault("latency", latency_ms=60_000))
    late.push(b"one ", 0)
    late.push(b"two", 0)
    assert late.due(10) == []
    assert late.apply([])
    late.push(b" three", 10)
    assert b"".join(said for said in late.due(10) if isinstance(said, bytes)) == b"one two three"
    assert late.is_idle


@each_row("kind", ["half_open", "truncate"])
def test_stream_with_lost_bytes_stays_broken_after_removal(kind: str) -> None:
    of = pipe(fault(kind, **({"bytes": 1} if kind == "truncate" else {})))
    of.push(b"some", 0)
    of.due(0)
    assert not of.apply([])


def test_toxics_work_one_after_the_other() -> None:
    both = pipe(fault("latency", latency_ms=50), fault("limit_data", bytes=3))
    both.push(b"abcdef", 0)
    assert run(both) == [(50, b"abc"), (50, End.CLOSE)]


def test_held_bytes_are_counted_until_released() -> None:
    slow = pipe(fault("bandwidth", bytes_per_second=1_000))
    slow.push(bytes(1_000), 0)
    slow.due(250)
    assert 740 <= slow.held_bytes <= 760


def test_no_more_than_so_many_pieces_come_out_in_one_turn() -> None:
    sliced = pipe(fault("slicer", average_size=1))
    sliced.push(bytes(3_000), 0)
    assert [len(sliced.due(0)) for _ in range(4)] == [DUE_ITEMS_MAX, DUE_ITEMS_MAX, 3_000 - 2 * DUE_ITEMS_MAX, 0]


def test_a_ramp_moves_toxics_that_are_at_work() -> None:
    of = fault("latency", latency_ms=100)
    late = pipe(of)
    of.ramped(0.5)
    late.push(b"a", 0)
    assert run(late) == [(50, b"a")]


@each_row("change", [lambda one: None, lambda one: one.ramped(1.0)])
def test_draws_differ_between_connections_and_not_between_runs(change: Callable[[Fault], None]) -> None:
    of = fault("corrupt", probability=0.5, seed=4)
    change(of)
    other = CLIENT._replace(connection=8)
    first, again, elsewhere = (of.rng(who, "downstream").random() for who in (CLIENT, CLIENT, other))
    assert first == again != elsewhere
