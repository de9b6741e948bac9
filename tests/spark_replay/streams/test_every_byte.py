"""Every captured byte is in a frame or in an event, whatever happened to it, and every reader finds the same."""

from collections import Counter
from pathlib import Path
from random import Random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ...budgets import budget
from ..packetiser import (
    FIN,
    RST,
    Flow,
    Said,
    Segment,
    conversation,
    cut,
    joined,
    mixed,
    moved,
    overlapped,
    repeated,
    request,
    response,
    timed,
    with_keep_alives,
)
from .reassembled import Row, read, read_sorted, written

COUNTED = {"skipped", "unfinished", "oversized", "dup"}
"""The kinds of events that name captured bytes; a hole's bytes are part of a frame, or skipped."""


def exchanges(rng: Random) -> list[Said]:
    """Exchanges with up to five requests in flight; ids begin anywhere, wrap, and begin again."""
    number = rng.choice([0, 1, 2**31 - 4, -(2**31), 2_147_483_640])
    said: list[Said] = []
    for _ in range(rng.randrange(1, 9)):
        if rng.random() < 0.1:
            number = 0
        ids = [(number + step + 2**31) % 2**32 - 2**31 for step in range(rng.choice([1, 1, 1, 2, 5]))]
        number += len(ids)
        sizes = [rng.choice([0, 0, 5, 40, 40, 300, 1500]) for _ in range(2 * len(ids))]
        said += [request(each, rng.randbytes(sizes.pop())) for each in ids]
        said += [response(each, b"\0\0" + rng.randbytes(sizes.pop())) for each in ids]
    return said


def lost(segments: list[Segment], rng: Random) -> list[Segment]:
    """The part of them that a capture has: single packets, bursts, the start, the end, or a direction are missing."""
    kept = segments
    for _ in range(rng.choice([0, 1, 1, 3])):
        at, size = rng.randrange(len(kept) + 1), rng.choice([1, 1, 2, 10])
        kept = [*kept[:at], *kept[at + size :]]
    if rng.random() < 0.3:
        kept = kept[rng.randrange(len(kept) + 1) :]
    if rng.random() < 0.1:
        side = rng.random() < 0.5
        kept = [each for each in kept if each.from_client == side]
    return kept


def captured(rng: Random) -> list[Segment]:
    """One to three connections with all that TCP and a capture do to them."""
    segments: list[Segment] = []
    for number in range(rng.choice([1, 1, 3])):
        flow = Flow(client_port=40_000 + number)
        each = conversation(exchanges(rng), flow, segment_bytes=rng.choice([17, 60, 1448]), closes=rng.random() < 0.5)
        each = joined(each) if rng.random() < 0.5 else cut(each, rng)
        if rng.random() < 0.2:
            each = overlapped(each, rng, 0.2)
        if rng.random() < 0.3:
            each = repeated(each, rng, 0.2, distance=20)
        if rng.random() < 0.2:
            each = with_keep_alives(each)
        if rng.random() < 0.2:
            each = [part._replace(flags=RST) if part.flags & FIN else part for part in each]
        each = lost(mixed(moved(each, rng.randrange(2**32), 0), rng, rng.choice([1, 1, 4, 30])), rng)
        segments += each
    return timed(mixed(segments, rng, rng.choice([1, 50])))


def bytes_of(rows: list[Row], events: list[Row]) -> Counter[bool]:
    """Return the bytes of each side in frames and events."""
    found: Counter[bool] = Counter()
    for row in rows:
        found[row["is_response"]] += 4 + row["size"]
    for event in events:
        if event["kind"] in COUNTED:
            found[event["dir"] == 1] += event["bytes"]
    return found


def comparable(rows: list[Row]) -> list[Row]:
    """The rows; into how many pieces other copies cut a frame that was not captured whole is not compared."""
    return [row | {"segments": 0} if row["truncated"] else row for row in rows]


def summary(events: list[Row]) -> Counter[tuple[object, ...]]:
    """Return what events say; which copies differ is known of copies in the same chunk only."""
    keys = ("client_port", "incarnation", "dir", "kind")
    found: Counter[tuple[object, ...]] = Counter()
    for event in events:
        if event["kind"] != "conflict":
            found[tuple(event[key] for key in keys)] += event["bytes"] or 1
    return found


@settings(max_examples=budget(25, 10_000), suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.integers(0, 2**40))
def test_every_byte_is_in_a_frame_or_an_event_and_readers_agree(tmp_path: Path, seed: int) -> None:
    rng = Random(seed)
    segments = captured(rng)
    path = written(tmp_path / "x.pcap", segments, snaplen=rng.choice([262_144] * 3 + [70, 200]))
    ports = rng.choice([(), (9093,)])
    rows, events = read(path, ports)
    sent: Counter[bool] = Counter()
    for each in segments:
        sent[not each.from_client] += len(each.payload)
    if ports:
        assert bytes_of(rows, events) == +sent
    else:
        # Where no side is known to be the client, it may be the other one.
        assert bytes_of(rows, events).total() == sent.total()
    chunk_bytes = 100 + path.stat().st_size // rng.choice([2, 7, 20])
    for found in (
        read(path, ports, chunk_bytes=chunk_bytes),
        read_sorted(path, ports, chunk_bytes, rng.choice([1, 7])),
    ):
        assert comparable(found[0]) == comparable(rows)
        assert summary(found[1]) == summary(events)
