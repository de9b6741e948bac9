"""Segments in, each side's bytes out in order, whatever happened to the packets."""

from itertools import pairwise
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mockraft.spark_replay import tcp_streams
from mockraft.spark_replay.captures import ACK, FIN, RST, SYN, Endpoint, Segment
from mockraft.spark_replay.tcp_streams import Chunk, reassemble

CLIENT, SERVER = Endpoint("10.0.0.1", 40000), Endpoint("10.0.0.2", 9093)
HELLO = b"hello, controller"


def segment(
    seq: int, payload: bytes = b"", flags: int = ACK, back: bool = False, number: int = 0, cut: int = 0
) -> Segment:
    source, destination = (SERVER, CLIENT) if back else (CLIENT, SERVER)
    return Segment(number, number * 1000, source, destination, seq & 0xFFFFFFFF, flags, payload, cut)


def text(chunks: list[Chunk], from_client: bool = True) -> bytes:
    return b"".join(chunk.data for chunk in chunks if chunk.from_client == from_client)


def test_a_stream_is_put_together_with_the_server_known_from_the_syn() -> None:
    chunks = list(
        reassemble(
            [
                segment(99, flags=SYN),
                segment(499, flags=SYN | ACK, back=True),
                segment(100, b"ques"),
                segment(104, b"tion"),
                segment(500, b"answer", back=True),
            ]
        )
    )
    assert text(chunks) == b"question"
    assert text(chunks, from_client=False) == b"answer"
    assert {chunk.connection for chunk in chunks} == {tcp_streams.Connection(CLIENT, SERVER, 1)}
    assert all(chunk.gap_bytes == 0 for chunk in chunks)


@settings(max_examples=150, deadline=None)
@given(data=st.data(), initial=st.sampled_from([0, 1, 0xFFFFFFFF, 0xFFFFFFF0, 0x7FFFFFFF]), seed=st.integers(0, 999))
def test_cuts_copies_and_another_order_change_nothing(data: st.DataObject, initial: int, seed: int) -> None:
    content = Random(seed).randbytes(60)
    cuts = sorted({0, 60, *data.draw(st.lists(st.integers(0, 60), max_size=8))})
    pieces = [segment(initial + 1 + a, content[a:b]) for a, b in pairwise(cuts)]
    starts = data.draw(st.lists(st.integers(0, 59), max_size=4))
    copies = [segment(initial + 1 + a, content[a : a + 10]) for a in starts]
    shuffled = data.draw(st.permutations(pieces + copies))
    numbered = [s._replace(packet_number=n, time_ns=n) for n, s in enumerate(shuffled, 1)]
    chunks = list(reassemble([segment(initial, flags=SYN), *numbered]))
    assert text(chunks) == content
    assert all(chunk.gap_bytes == 0 for chunk in chunks)


def test_the_first_copy_of_a_byte_wins() -> None:
    chunks = list(reassemble([segment(0, flags=SYN), segment(1, b"abcdef"), segment(4, b"XXXghi")]))
    assert text(chunks) == b"abcdefghi"


def test_keep_alives_add_nothing() -> None:
    keep_alives = [segment(6, b"\x00"), segment(6, b"")]
    chunks = list(reassemble([segment(0, flags=SYN), segment(1, b"abcdef"), *keep_alives, segment(7, b"g")]))
    assert text(chunks) == b"abcdefg"
    assert len(chunks) == 2


def test_sequence_numbers_wrap() -> None:
    first = 0xFFFFFFFF - 5
    chunks = list(reassemble([segment(first - 1, flags=SYN), segment(first, b"012345"), segment(first + 6, b"6789")]))
    assert text(chunks) == b"0123456789"


def test_a_start_midway_is_told() -> None:
    chunks = list(reassemble([segment(1000, b"later"), segment(1005, b"on")], server_ports={9093}))
    assert [(chunk.data, chunk.gap_bytes) for chunk in chunks] == [(b"later", -1), (b"on", 0)]
    assert chunks[0].connection.server == SERVER


def test_a_start_midway_takes_the_lower_port_for_the_server() -> None:
    (chunk,) = reassemble([segment(5, b"answer", back=True)])
    assert chunk.connection.client == CLIENT
    assert not chunk.from_client


def test_a_lost_segment_is_a_gap_of_its_size() -> None:
    chunks = list(reassemble([segment(0, flags=SYN), segment(1, b"abc"), segment(14, b"xyz"), segment(17, b"!")]))
    assert [(chunk.data, chunk.gap_bytes) for chunk in chunks] == [(b"abc", 0), (b"xyz", 10), (b"!", 0)]


def test_what_a_snaplen_cut_is_a_gap() -> None:
    chunks = list(reassemble([segment(0, flags=SYN), segment(1, b"abc", cut=5), segment(9, b"def")]))
    assert [(chunk.data, chunk.gap_bytes) for chunk in chunks] == [(b"abc", 0), (b"def", 5)]


@pytest.mark.parametrize("limit", ["HELD_BYTES_MAX", "HELD_SEGMENTS_MAX"])
def test_what_waits_for_a_lost_segment_is_bounded(monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    monkeypatch.setattr(tcp_streams, limit, 40)
    waiting = [segment(10 + n, b"x") for n in range(100)]
    chunks = reassemble([segment(0, flags=SYN), *waiting, segment(900, b"never reached in order")])
    first = next(chunks)
    assert (first.gap_bytes, first.data) == (9, b"x")
    assert len(list(chunks)) == 100


def test_a_port_used_again_is_another_connection() -> None:
    chunks = list(
        reassemble(
            [
                segment(0, flags=SYN),
                segment(0, flags=SYN),
                segment(1, b"first"),
                segment(6, flags=FIN | ACK),
                segment(7000, flags=SYN),
                segment(7001, b"second"),
            ]
        )
    )
    assert [(chunk.data, chunk.connection.incarnation, chunk.is_end) for chunk in chunks] == [
        (b"first", 1, False),
        (b"", 1, True),
        (b"second", 2, False),
    ]


def test_a_reset_ends_a_side() -> None:
    chunks = list(reassemble([segment(0, flags=SYN), segment(1, b"bye"), segment(4, flags=RST)]))
    assert [(chunk.data, chunk.is_end, chunk.gap_bytes) for chunk in chunks] == [(b"bye", False, 0), (b"", True, 0)]


def test_other_ports_are_left_out() -> None:
    other = segment(0, b"noise")._replace(destination=Endpoint("10.0.0.2", 80))
    assert list(reassemble([other], server_ports={9093})) == []
    assert len(list(reassemble([other]))) == 1


def test_a_late_segment_counts_from_when_it_could_be_read() -> None:
    chunks = list(reassemble([segment(0, flags=SYN), segment(4, b"def", number=5), segment(1, b"abc", number=9)]))
    assert [(chunk.data, chunk.time_ns) for chunk in chunks] == [(b"abc", 9000), (b"def", 9000)]
