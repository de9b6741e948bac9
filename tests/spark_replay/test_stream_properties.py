"""However TCP cut, mixed up and repeated what was said, the same frames come out of it."""

from itertools import pairwise
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from mockraft.spark_replay.captures import ACK, FIN, SYN, Endpoint, Segment
from mockraft.spark_replay.exchanges import pair_exchanges
from mockraft.spark_replay.tcp_streams import reassemble

CLIENT, SERVER = Endpoint("10.0.0.1", 40_000), Endpoint("10.0.0.2", 9093)
house = settings(deadline=None, max_examples=60)


def request(number: int, size: int) -> bytes:
    head = b"\0\x3f\0\x01" + number.to_bytes(4) + b"\0\x01a\0" + bytes(size)
    return len(head).to_bytes(4) + head


def response(number: int, size: int) -> bytes:
    body = number.to_bytes(4) + b"\0" + bytes(size)
    return len(body).to_bytes(4) + body


sizes = st.lists(st.integers(0, 300), min_size=1, max_size=12)
starts = st.integers(0, 2**32 - 1)


def packetised(data: bytes, from_client: bool, start: int, chance: Random, pieces: int) -> list[Segment]:
    """The stream in pieces of any size, from a sequence number that may wrap; some pieces again, some larger."""
    source, destination = (CLIENT, SERVER) if from_client else (SERVER, CLIENT)
    cuts = sorted({0, len(data), *(chance.randrange(len(data) + 1) for _ in range(pieces))})
    spans = list(pairwise(cuts))
    again = [chance.choice(spans) for _ in range(chance.randrange(1 + len(spans)))]
    # A retransmission may begin earlier and end later than the original.
    overlaps = [(max(0, a - chance.randrange(9)), min(len(data), b + chance.randrange(9))) for a, b in again]
    return [
        Segment(0, 0, source, destination, (start + 1 + a) & 0xFFFFFFFF, ACK, data[a:b], 0)
        for a, b in (*spans, *overlaps)
    ]


def mixed(segments: list[Segment], chance: Random, distance: int) -> list[Segment]:
    """The segments in another order, each no further than about `distance` from its place."""
    keyed = sorted(range(len(segments)), key=lambda index: index + chance.random() * distance)
    return [segments[index] for index in keyed]


@house
@given(sizes, starts, starts, st.integers(0, 2**32), st.integers(0, 40), st.integers(1, 30))
def test_frames_do_not_depend_on_segmentation_order_repeats_overlaps_or_sequence_numbers(
    frame_sizes: list[int], client_start: int, server_start: int, seed: int, pieces: int, distance: int
) -> None:
    chance = Random(seed)
    requests = [request(number, size) for number, size in enumerate(frame_sizes)]
    responses = [response(number, size) for number, size in enumerate(frame_sizes)]
    opening = [
        Segment(0, 0, CLIENT, SERVER, client_start, SYN, b"", 0),
        Segment(0, 0, SERVER, CLIENT, server_start, SYN | ACK, b"", 0),
    ]
    said = packetised(b"".join(requests), True, client_start, chance, pieces)
    said += packetised(b"".join(responses), False, server_start, chance, pieces)
    numbered = [
        segment._replace(packet_number=number, time_ns=number)
        for number, segment in enumerate(opening + mixed(said, chance, distance), start=1)
    ]
    exchanges = list(pair_exchanges(reassemble(numbered)))
    assert [each.correlation_id for each in exchanges if each.request and each.response] == [
        each.correlation_id for each in exchanges
    ]
    by_id = {each.correlation_id: each for each in exchanges}
    assert sorted(by_id) == list(range(len(frame_sizes)))
    for number, each in by_id.items():
        assert each.request is not None
        assert each.response is not None
        assert each.request.data == requests[number][4:]
        assert each.response.data == responses[number][4:]


@house
@given(sizes, st.integers(0, 2**32), st.integers(0, 11), st.booleans())
def test_a_segment_that_is_missing_costs_frames_and_never_invents_one(
    frame_sizes: list[int], seed: int, lost: int, ends: bool
) -> None:
    chance = Random(seed)
    frames = [request(number, size) for number, size in enumerate(frame_sizes)]
    segments = [Segment(1, 1, CLIENT, SERVER, 7, SYN, b"", 0)]
    sequence = 8
    for frame in frames:
        cut = chance.randrange(len(frame) + 1)
        for part in (frame[:cut], frame[cut:]):
            segments.append(Segment(len(segments) + 1, 1, CLIENT, SERVER, sequence, ACK, part, 0))
            sequence += len(part)
    if ends:
        segments.append(Segment(len(segments) + 1, 1, CLIENT, SERVER, sequence, FIN | ACK, b"", 0))
    lost %= len(segments) - 1
    del segments[1 + lost]
    found = [each.request.data for each in pair_exchanges(reassemble(segments)) if each.request]
    said = [frame[4:] for frame in frames]
    assert [each for each in found if each not in said] == []
    before = said[: lost // 2]
    assert found[: len(before)] == before
