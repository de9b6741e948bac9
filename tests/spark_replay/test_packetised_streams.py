"""However TCP splits, reorders, repeats and loses bytes: the declared frames or fewer, never different ones."""

import sys
from collections import Counter
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mockraft.spark_replay.schemas import FRAMES
from mockraft.wire import messages
from mockraft.wire.connection import parse_request, read_response

from .frame_rows import frames_of, rows_of, said_in, table_of
from .packetiser import (
    RST,
    Flow,
    Said,
    Segment,
    conversation,
    cut,
    exchanges,
    joined,
    mixed,
    moved,
    overlapped,
    repeated,
    timed,
    with_keep_alives,
)
from .streams.reassembled import kinds, read, written

house = settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
seeds = st.integers(0, 2**32)
sizes = st.sampled_from([1, 3, 17, 60, 200, 1448])


def read_back(tmp_path: Path, segments: list[Segment]) -> Counter[Said]:
    return frames_of(written(tmp_path / "said.pcap", segments))


@house
@given(seeds, st.integers(1, 8), sizes, st.booleans(), st.booleans())
def test_cuts_repeats_overlaps_and_keep_alives_change_no_frame(
    tmp_path: Path, seed: int, count: int, segment_bytes: int, joins: bool, other_bytes: bool
) -> None:
    rng = Random(seed)
    said = exchanges(count, rng, bytes_max=100)
    segments = conversation(said, segment_bytes=segment_bytes, closes=rng.random() < 0.5)
    segments = cut(joined(segments) if joins else segments, rng)
    segments = repeated(overlapped(segments, rng, 0.5, other_bytes), rng, 0.3)
    assert read_back(tmp_path, with_keep_alives(segments)) == Counter(said)


@house
@given(seeds, st.integers(1, 8), sizes, st.integers(2, 30))
def test_another_order_of_the_packets_changes_no_frame(
    tmp_path: Path, seed: int, count: int, segment_bytes: int, distance: int
) -> None:
    rng = Random(seed)
    said = exchanges(count, rng)
    segments = conversation(said, segment_bytes=segment_bytes)
    segments = mixed(repeated(segments, rng, 0.3), rng, distance)
    assert read_back(tmp_path, segments) == Counter(said)


@house
@given(seeds, sizes, st.integers(0, 3000), st.integers(0, 3000), st.integers(0, 12))
def test_sequence_numbers_may_wrap_anywhere(
    tmp_path: Path, seed: int, segment_bytes: int, client_before: int, server_before: int, distance: int
) -> None:
    rng = Random(seed)
    said = exchanges(8, rng)
    segments = conversation(said, segment_bytes=segment_bytes, isns=(0, 0))
    segments = mixed(moved(segments, -client_before, -server_before), rng, 1 + distance)
    assert read_back(tmp_path, segments) == Counter(said)
    assert "gap" not in kinds(read(tmp_path / "said.pcap")[1])


@house
@given(seeds, st.integers(1, 6), sizes, st.integers(1, 4))
def test_a_lost_segment_costs_frames_and_never_invents_one(
    tmp_path: Path, seed: int, count: int, segment_bytes: int, losses: int
) -> None:
    rng = Random(seed)
    said = exchanges(count + 3, rng)
    segments = cut(conversation(said, segment_bytes=segment_bytes), rng)
    with_bytes = [index for index, each in enumerate(segments) if each.payload]
    lost = set(rng.sample(with_bytes, min(losses, len(with_bytes))))
    found = read_back(tmp_path, [each for index, each in enumerate(segments) if index not in lost])
    assert found - Counter(said) == Counter()
    untouched = _before(segments[: min(lost)], said)
    assert Counter(untouched) - found == Counter()


def _before(segments: list[Segment], said: list[Said]) -> list[Said]:
    """Return the complete frames of gapless segments."""
    whole = []
    for from_client in (True, False):
        sent = sum(len(each.payload) for each in segments if each.from_client == from_client)
        for each in said:
            if each.from_client == from_client and (sent := sent - len(each.data)) >= 0:
                whole.append(each)
    return whole


@house
@given(seeds, sizes, st.integers(1, 40))
def test_capture_starting_midway_has_only_later_frames(
    tmp_path: Path, seed: int, segment_bytes: int, start: int
) -> None:
    rng = Random(seed)
    said = exchanges(8, rng)
    segments = conversation(said, segment_bytes=segment_bytes)
    first = 3 + start % (len(segments) - 3)
    # What was completely said after the first request that begins behind the cut.
    at = next((n for n in range(first, len(segments)) if _starts_a_request(segments, n, said)), len(segments))
    found = read_back(tmp_path, timed(segments[first:]))
    assert found - Counter(said) == Counter()
    begun = sum(_starts_a_request(segments, n, said) for n in range(at))
    requests = [each for each in said if each.from_client][begun:]
    # A segment of fewer bytes than a header has cannot be told to begin one.
    if segment_bytes >= 17:
        assert Counter(requests) - found == Counter()


def _starts_a_request(segments: list[Segment], index: int, said: list[Said]) -> bool:
    each = segments[index]
    sent = sum(len(before.payload) for before in segments[:index] if before.from_client)
    starts, at = set(), 0
    for frame in said:
        if frame.from_client:
            starts.add(at)
            at += len(frame.data)
    return each.from_client and bool(each.payload) and sent in starts


@house
@given(seeds, st.integers(0, 1))
def test_a_port_that_is_used_again_is_another_connection(tmp_path: Path, seed: int, ends_with_a_reset: int) -> None:
    rng = Random(seed)
    first, second = exchanges(3, rng), exchanges(4, rng)
    opened = conversation(first, closes=not ends_with_a_reset, isns=(rng.randrange(2**32), rng.randrange(2**32)))
    if ends_with_a_reset:
        opened.append(opened[-1]._replace(flags=RST, payload=b""))
    again = conversation(second, isns=(rng.randrange(2**32), rng.randrange(2**32)))
    table = table_of(written(tmp_path / "again.pcap", timed(opened + again)))
    assert said_in(table) == Counter(first + second)
    assert rows_of(table, "incarnation", "pair_status") == {(1, "paired"): 6, (2, "paired"): 8}
    assert "gap" not in kinds(read(tmp_path / "again.pcap")[1])


@house
@given(seeds, st.integers(2, 6))
def test_connections_that_talk_at_the_same_time_are_kept_apart(tmp_path: Path, seed: int, count: int) -> None:
    rng = Random(seed)
    talks = []
    for number in range(count):
        flow = Flow(client_port=40_000 + number // 2, client=f"10.0.0.{3 + number % 2}")
        said = exchanges(5, rng)
        talks.append((flow, said, conversation(said, flow, isns=(number, 2**32 - 1 - number))))
    segments = timed(interleaved([each for _, _, each in talks], rng))
    table = table_of(written(tmp_path / "many.pcap", segments))
    for flow, said, _ in talks:
        mine = table.filter(
            [
                (client, port) == (flow.client, flow.client_port)
                for client, port in zip(table["client"].to_pylist(), table["client_port"].to_pylist(), strict=True)
            ]
        )
        assert said_in(mine) == Counter(said)
    assert len(set(table["conn_id"].to_pylist())) == count


def interleaved(lists: list[list[Segment]], rng: Random) -> list[Segment]:
    """One list of all, each in its own order."""
    turns = [number for number, each in enumerate(lists) for _ in each]
    rng.shuffle(turns)
    iterators = [iter(each) for each in lists]
    return [next(iterators[number]) for number in turns]


BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.mark.parametrize("connections", [1, 7, 400])
def test_generated_capture_has_declared_frames_and_decodes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, connections: int
) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    import capture_generator

    path = tmp_path / "generated.pcap"
    made = capture_generator.generate(path, 4000, connections)
    table = table_of(path)
    assert made.packets >= 4000
    assert made.file_bytes == path.stat().st_size
    assert len(table) == made.frames
    assert rows_of(table, "pair_status") == {("paired",): made.frames}
    assert len(set(table["conn_id"].to_pylist())) == connections
    for row in table.slice(0, 300).to_pylist():
        assert set(row) == set(FRAMES.names)
        frame, version = row["frame"], row["api_version"]
        if row["is_response"]:
            body = read_response(frame, row["api_key"], version).write(version)
        else:
            request = parse_request(frame)
            body = messages.request(request.api_key).read(frame[request.body_offset :], version).write(version)
        assert frame.endswith(body)


def test_the_same_arguments_give_the_same_capture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import capture_generator

    files = [tmp_path / name for name in ("one", "other", "third")]
    for path, seed in zip(files, (1, 1, 2), strict=True):
        capture_generator.generate(path, 500, 5, seed)
    one, other, third = (path.read_bytes() for path in files)
    assert one == other
    assert one != third
