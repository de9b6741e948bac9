"""However TCP cut, mixed up and repeated what was said, the same frames come out of the file."""

from collections import Counter
from pathlib import Path
from random import Random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from .capture_bytes import pcap
from .frame_rows import frames_of
from .packetiser import (
    conversation,
    cut,
    exchanges,
    joined,
    moved,
    overlapped,
    packets,
    repeated,
    with_keep_alives,
)

house = settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
seeds = st.integers(0, 2**32)


@house
@given(seeds, st.integers(1, 12), st.integers(1, 30), st.booleans(), st.booleans())
def test_frames_depend_neither_on_cuts_repeats_overlaps_keep_alives_nor_on_where_numbers_begin(
    tmp_path: Path, seed: int, count: int, distance: int, joins: bool, wraps: bool
) -> None:
    chance = Random(seed)
    said = exchanges(count, chance)
    segments = conversation(said, segment_bytes=chance.randrange(1, 200))
    if joins:
        segments = joined(segments)
    segments = cut(segments, chance)
    segments = overlapped(segments, chance)
    segments = repeated(segments, chance, 0.5)
    segments = with_keep_alives(segments)
    if wraps:
        segments = moved(segments, -chance.randrange(3000), -500_000 - chance.randrange(3000))
    path = tmp_path / "x.pcap"
    path.write_bytes(pcap(packets(segments)))
    assert frames_of(path) == Counter(said)
