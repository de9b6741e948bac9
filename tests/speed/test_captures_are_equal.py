"""The loops over captures in C give the same as their references in Python: on valid, mutated and random bytes."""

import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from random import Random
from struct import pack
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from mockraft.spark_replay import walks
from mockraft.spark_replay.accelerated import captures
from mockraft.spark_replay.arrow_columns import gather, pure_gather
from mockraft.spark_replay.decoding.judging import put_together
from mockraft.spark_replay.decoding.layout import Leaf
from mockraft.spark_replay.decoding.shape_json import RENDERED, pure_render
from mockraft.wire.schema_reading import FIXED

from ..budgets import budget

pytestmark = pytest.mark.accelerated

ROUNDS = budget(4_000, 100_000)
CAPTURE = Path(__file__).parents[1] / "captures" / "controller-4.3.1.pcap"
FRAME_BYTES_MAX = 1 << 20
LENGTHS = (-1, 0, 3, 4, 7, 8, 9, 200, FRAME_BYTES_MAX, FRAME_BYTES_MAX + 1, 2**31 - 1, -(2**31))


def frame(rng: Random) -> bytes:
    """Return a request, or a response, with an unlikely length now and then."""
    body = rng.randbytes(rng.choice((0, 0, 1, 4, 20, 300)))
    key, version = rng.choice(((0, 3), (1, 17), (17, 0), (17, 1), (63, 1), (255, 63), (256, 0), (-1, 0), (3, 64)))
    length = rng.choice(LENGTHS) if rng.random() < 0.03 else 8 + len(body)
    return pack(">ihhi", length, key, version, rng.randrange(1 << 31)) + body


def stream(rng: Random) -> bytes:
    if rng.random() < 0.1:
        return rng.randbytes(rng.randrange(100))
    whole = b"".join(frame(rng) for _ in range(rng.choice((0, 1, 3, 30, 600))))
    return whole[: len(whole) - rng.randrange(20)] if rng.random() < 0.5 else whole


def outcome(function: Callable[..., Any], *arguments: Any) -> Any:
    found = function(*arguments)
    return (found[0], found[1].tolist()) if isinstance(found, tuple) else found.tolist()


def test_c_code_is_what_runs_here() -> None:
    assert captures is not None
    for name in ("records", "requests", "responses"):
        assert getattr(walks, name) is not getattr(walks, f"pure_{name}")


@pytest.mark.parametrize("name", ["requests", "responses"])
def test_walks_over_frames_are_equal(name: str) -> None:
    rng = Random(name)
    states = set()
    for _ in range(ROUNDS):
        data = memoryview(stream(rng))
        at = min(rng.choice((0, 0, 0, 1, 12)), len(data))
        end = rng.choice((len(data), rng.randint(at, len(data))))
        most = rng.choice((FRAME_BYTES_MAX, 100, 2**40))
        expected = outcome(getattr(walks, f"pure_{name}"), data, at, end, most)
        assert outcome(getattr(walks, name), data, at, end, most) == expected
        states.add(expected[0])
    assert states == {walks.INCOMPLETE, walks.BAD} | ({walks.SASL} if name == "requests" else set())


def test_walks_over_records_are_equal() -> None:
    rng = Random(3)
    for _ in range(ROUNDS):
        is_big = rng.random() < 0.5
        head = ">IIII" if is_big else "<IIII"
        records = [
            pack(head, 1, 2, rng.choice((0, 5, 60, 2**32 - 1)) if rng.random() < 0.02 else len(body), 60) + body
            for body in (rng.randbytes(rng.randrange(40)) for _ in range(rng.choice((0, 1, 5, 500))))
        ]
        data = np.frombuffer(b"".join(records) + rng.randbytes(rng.randrange(20)), np.uint8)
        size = rng.choice((len(data), rng.randint(0, len(data))))
        assert outcome(walks.records, data, size, is_big) == outcome(walks.pure_records, data, size, is_big)


@pytest.mark.parametrize("count", [1, 7, 100_000])
def test_gathered_slices_are_equal(count: int) -> None:
    rng = np.random.default_rng(count)
    data = rng.integers(0, 256, 5_000, np.uint8)
    size = rng.integers(0, 30, count)
    at = rng.integers(0, len(data) - size + 1)
    found = gather(data, at, size)
    found.validate(full=True)
    assert found.equals(pure_gather(data, at, size))
    assert found[0].as_py() == bytes(data[at[0] : at[0] + size[0]])


def random_leaves(rng: Random, kinds: list[str]) -> tuple[list[Leaf], int]:
    """Return leaves of these types one after the other, and the size of their frame."""
    leaves, at = [], 0
    for kind in kinds:
        at += rng.randrange(3)
        length = FIXED[kind].size if kind in FIXED else rng.choice((0, 1, 2, 3, 4, 5, 9, 40))
        leaves.append(Leaf(kind, at, length))
        at += length
    return leaves, max(at, 1)


def test_json_of_frames_is_equal() -> None:
    assert captures is not None
    rng = Random(7)
    escaped = 0
    for _ in range(ROUNDS // 10):
        leaves, size = random_leaves(rng, rng.choices([*RENDERED], k=rng.randrange(1, 6)))
        # Few of many random strings would need no escaping.
        some = bytes(range(256)) if rng.random() < 0.3 else b'aZ~ 09\x00\xff"'[: rng.choice((6, 8, 9))]
        rows = rng.choice((1, 2, 30))
        frames = np.frombuffer(bytes(rng.choices(some, k=rows * size)), np.uint8).reshape(rows, size)
        texts = [rng.choice(("", '{"a":', ',"größe":')) for _ in range(len(leaves) + 1)]
        packed = np.array([(RENDERED[leaf.kind], leaf.offset, leaf.length) for leaf in leaves], np.int64)
        offsets, data, is_right = captures.render(frames, size, packed, tuple(text.encode() for text in texts))
        json, right = pure_render(frames, leaves, texts)
        ends = np.frombuffer(offsets, np.int32).tolist()
        found = [data[low:high].decode() for low, high in pairwise(ends)]
        assert np.frombuffer(is_right, np.bool_).tolist() == right.tolist()
        wanted = zip(json.to_pylist(), right.tolist(), strict=True)
        assert found == [text if is_row_right else "" for text, is_row_right in wanted]
        escaped += int((~right).sum())
    assert escaped > ROUNDS // 10


def test_columns_put_together_are_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(8)
    for rows in (1, 5, 3000):
        order = rng.permutation(rows)
        third, half = rows // 3, rows // 2
        texts = pa.array([f"ß{row}" * (row % 5) for row in range(rows)], pa.string())
        parts = [
            (order[:third], pa.array(["for all"])),
            (order[third:half], texts[third:half]),
            (order[half : rows - third], texts[half : rows - third]),
        ]
        found = put_together(rows, parts, pa.string())
        found.validate(full=True)
        with monkeypatch.context() as patched:
            patched.setattr("mockraft.spark_replay.decoding.judging.captures", None)
            assert found.equals(put_together(rows, parts, pa.string()))


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        ("records", (b"12345678", 9, False)),
        ("records", (b"12345678", -1, False)),
        ("requests", (b"12345678", -1, 8, 100)),
        ("requests", (b"12345678", 0, 9, 100)),
        ("responses", (b"12345678", 5, 4, 100)),
        ("gather", (b"12345678", np.array([7]), np.array([2]))),
        ("gather", (b"12345678", np.array([-1]), np.array([2]))),
        ("gather", (b"12345678", np.array([1]), np.array([-2]))),
        ("gather", (b"12345678", np.array([2**62]), np.array([2**62]))),
        ("gather", (b"12345678", np.array([1, 2]), np.array([1]))),
        ("render", (b"12345678", 4, np.array([5, 3, 2]), (b"", b""))),
        ("render", (b"12345678", 4, np.array([5, -1, 2]), (b"", b""))),
        ("render", (b"12345678", 4, np.array([5, 2**62, 2**62]), (b"", b""))),
        ("render", (b"12345678", 4, np.array([0, 0, 0]), (b"", b""))),
        ("render", (b"12345678", 4, np.array([4, 0, 4]), (b"", b""))),
        ("render", (b"12345678", 4, np.array([6, 0, 4]), (b"", b""))),
        ("render", (b"12345678", 4, np.array([5, 0, 4]), (b"",))),
        ("render", (b"12345678", 4, np.array([5, 0, 4]), (b"", ""))),
    ],
)
def test_nothing_outside_of_the_buffer_is_read(function: str, arguments: tuple[Any, ...]) -> None:
    with pytest.raises(ValueError, match=r"outside of the (buffer|frame)|as many sizes"):
        getattr(captures, function)(*arguments)


def test_both_paths_read_the_same_frames_of_a_capture() -> None:
    program = (
        "import hashlib, pyarrow as pa; from mockraft.spark_replay.frames import read_frames; "
        f"table = pa.Table.from_batches(read_frames({str(CAPTURE)!r}, [19093], chunk_bytes=40_000)); "
        "print(table.num_rows, hashlib.sha256(str(table.to_pylist()).encode()).hexdigest())"
    )
    found = [
        subprocess.run(
            [sys.executable, "-c", program], env={"MOCKRAFT_CODEC": path}, capture_output=True, text=True, check=True
        ).stdout
        for path in ("pure", "speed")
    ]
    assert found[0] == found[1]
    assert found[0].startswith("1726 ")
