"""Effects of TCP and captures on a conversation, one rule per test."""

from collections import Counter
from pathlib import Path
from random import Random

import pytest
from mockraft.spark_replay.exchanges import read_exchanges
from mockraft.spark_replay.formats import read_segments
from mockraft.spark_replay.streams import frame_reader
from mockraft.spark_replay.streams.reassembly import Reassembler
from mockraft.spark_replay.streams.runs import make_runs

from ...rows import each_row
from ..packetiser import (
    ACK,
    FIN,
    FLOW,
    FLOW_6,
    RST,
    SYN,
    Flow,
    Segment,
    conversation,
    exchanges,
    overlapped,
    repeated,
    request,
    response,
    timed,
    with_keep_alives,
)
from .reassembled import Row, kinds, read, written

SAID = [request(1), response(1), request(2, bytes(3000)), response(2), request(3), response(3)]


def bodies(rows: list[Row], is_response: bool = False) -> list[bytes]:
    return [row["frame"] for row in rows if row["is_response"] == is_response]


def ids(rows: list[Row], is_response: bool = False) -> list[int]:
    return [row["correlation_id"] for row in rows if row["is_response"] == is_response]


def from_client(segments: list[Segment]) -> list[int]:
    """Return the positions of the client's segments with bytes."""
    return [index for index, each in enumerate(segments) if each.from_client and each.payload]


@each_row("flow", {"IPv4": FLOW, "IPv6": FLOW_6})
def test_a_conversation_is_its_frames_with_partners_and_latency(tmp_path: Path, flow: Flow) -> None:
    rows, events = read(written(tmp_path / "x.pcap", conversation(SAID, flow, closes=True)))
    assert bodies(rows) == [each.frame for each in SAID if each.from_client]
    assert bodies(rows, True) == [each.frame for each in SAID if not each.from_client]
    assert {row["pair_status"] for row in rows} == {"paired"}
    first = rows[3]
    assert (first["api_key"], first["api_version"], first["header_version"], first["request_frame_no"]) == (63, 1, 1, 0)
    assert (first["client"], first["client_port"], first["server_port"]) == (flow.client, 40_000, 9093)
    assert first["latency_ns"] == 1_000_000
    assert rows[0]["client_id"] == "a"
    assert rows[0]["header_version"] == 2
    assert rows[1]["segments"] == 3
    assert kinds(events) == {"syn": 0, "fin": 0}


def test_an_id_used_again_belongs_to_the_latest_request_before_the_response(tmp_path: Path) -> None:
    said = [request(1), request(2), request(1, b"again"), response(2), response(1), response(1)]
    rows, _ = read(written(tmp_path / "x.pcap", conversation(said)))
    assert [row["pair_status"] for row in rows] == ["no_response", "paired", "paired", "paired", "paired", "mismatch"]
    assert rows[4]["request_frame_no"] == 2


def test_a_response_captured_before_its_request_is_paired_all_the_same(tmp_path: Path) -> None:
    rows, _ = read(written(tmp_path / "x.pcap", conversation([response(1), request(1)])))
    assert [row["pair_status"] for row in rows] == ["paired", "paired"]


@each_row("version", [3, 8, 9, 12])
@each_row("acks", [0, 1, -1])
def test_a_produce_request_with_acks_0_waits_for_no_response(tmp_path: Path, version: int, acks: int) -> None:
    transactional_id = b"\0" if version >= 9 else b"\xff\xff"
    body = transactional_id + acks.to_bytes(2, signed=True) + bytes(40)
    head = request(1, body, api_key=0, version=version)
    if version < 9:
        head = head._replace(frame=head.frame.replace(b"\0\x01a\0", b"\0\x01a", 1))
    rows, _ = read(written(tmp_path / "x.pcap", conversation([head, request(2), response(2)])))
    assert rows[0]["pair_status"] == ("no_response" if acks else "acks0")
    assert rows[1]["pair_status"] == "paired"


def test_reports_gap_and_resumes_at_segment_starting_with_a_frame(tmp_path: Path) -> None:
    segments = conversation(SAID)
    lost = from_client(segments)[2]
    size = len(segments.pop(lost).payload)
    rows, events = read(written(tmp_path / "x.pcap", segments))
    assert ids(rows) == [1, 3]
    assert [row["after_gap"] for row in rows if not row["is_response"]] == [False, True]
    assert kinds(events)["gap"] == size
    assert [row["pair_status"] for row in rows if row["is_response"]] == ["paired", "no_request", "paired"]


def test_server_gap_ends_at_response_to_open_request(tmp_path: Path) -> None:
    said = [request(1), response(1), request(2), response(2, bytes(4000)), request(3), response(3)]
    segments = conversation(said)
    del segments[[index for index, each in enumerate(segments) if not each.from_client and each.payload][2]]
    rows, _ = read(written(tmp_path / "x.pcap", segments))
    assert ids(rows, True) == [1, 3]
    assert ids(rows) == [1, 2, 3]


@each_row(
    "numbers",
    {
        "a login, then 0": [2**31 - 8, 2**31 - 7, *range(6)],
        "one id for all": [7] * 8,
        "ids wrap": [2**31 - 3, 2**31 - 2, 2**31 - 1, *range(-(2**31), -(2**31) + 5)],
        "ids begin again": [*range(5), *range(3)],
    },
)
@each_row("opens", [True, False])
def test_a_lost_exchange_costs_itself_only(tmp_path: Path, numbers: list[int], opens: bool) -> None:
    said = [each for number in numbers for each in (request(number, b"q" * 20), response(number))]
    whole = conversation(said, opens=opens)
    for index in (1, 5):
        for sides in ({True}, {False}, {True, False}):
            first = 3 * opens + 2 * index
            kept = [
                each for at, each in enumerate(whole) if not (first <= at < first + 2 and each.from_client in sides)
            ]
            rows, _ = read(written(tmp_path / "x.pcap", kept))
            expected = numbers[:index] + numbers[index + 1 :]
            assert ids(rows) == (expected if True in sides else numbers)
            assert ids(rows, True) == (expected if False in sides else numbers)


@each_row("ports", [(9093,), ()])
def test_a_start_midway_finds_frames_inside_segments(tmp_path: Path, ports: tuple[int, ...]) -> None:
    # As a busy producer sends: frames begin anywhere in segments of one size.
    rng = Random(5)
    asked = b"".join(request(number, rng.randbytes(5_000), 0, 11).data for number in range(40))
    answered = b"".join(response(number, rng.randbytes(80)).data for number in range(40))
    segments = []
    for at in range(3_000, len(asked), 1448):
        # Responses follow their requests by two.
        back, after = (max(each - 10_000, 0) * len(answered) // len(asked) for each in (at, at + 1448))
        segments.append(Segment(FLOW, True, 0, 1000 + at, 0, ACK, asked[at : at + 1448]))
        if back < after:
            segments.append(Segment(FLOW, False, 0, 9000 + back, 0, ACK, answered[back:after]))
    rows, _ = read(written(tmp_path / "x.pcap", timed(segments)), ports)
    assert ids(rows) == [*range(1, 40)]
    assert set(ids(rows, True)) >= {*range(3, 36)}


@each_row("distance", [5 << 20, 300 << 20, (1 << 32) - (300 << 20)])
def test_a_connection_after_a_reset_needs_no_syn(tmp_path: Path, distance: int) -> None:
    first = conversation(SAID)
    reset = first[-1]._replace(flags=RST, payload=b"")
    second = conversation(exchanges(5), isns=(1000 + distance & 0xFFFFFFFF, 500_000 + distance & 0xFFFFFFFF))[3:]
    rows, events = read(written(tmp_path / "x.pcap", timed([*first, reset, *second])))
    assert Counter((row["incarnation"], row["pair_status"]) for row in rows) == {(1, "paired"): 6, (2, "paired"): 10}
    assert "gap" not in kinds(events)


def test_a_gap_is_given_up_after_a_minute(tmp_path: Path) -> None:
    segments = conversation(exchanges(20), step_ns=10_000_000_000)
    del segments[from_client(segments)[2]]
    path = written(tmp_path / "x.pcap", segments)
    reassembler = Reassembler()
    for chunk in read_segments(path, chunk_bytes=256):
        list(reassembler.receive(make_runs(chunk)))
    found = [row for batch in reassembler.drain() for row in batch.to_pylist()]
    assert len(found) >= 30


def test_the_first_copy_of_a_byte_counts_and_another_one_is_a_conflict(tmp_path: Path) -> None:
    said = exchanges(20)
    segments = overlapped(conversation(said), Random(1), other_bytes=True)
    rows, events = read(written(tmp_path / "x.pcap", segments))
    assert Counter(row["frame"] for row in rows) == Counter(each.frame for each in said)
    assert kinds(events)["conflict"] > 0
    assert kinds(events)["dup"] >= kinds(events)["conflict"]


def test_the_first_copy_counts_also_where_a_later_one_starts_before_it(tmp_path: Path) -> None:
    segments = conversation([request(1, b"x" * 30), response(1)])
    index = from_client(segments)[0]
    each = segments[index]
    tail = each._replace(seq=each.seq + 20, payload=each.payload[20:])
    wrong = each._replace(payload=each.payload[:20] + b"?" * (len(each.payload) - 20))
    segments[index : index + 1] = [tail, wrong]
    rows, events = read(written(tmp_path / "x.pcap", timed(segments)))
    assert rows[0]["frame"] == request(1, b"x" * 30).frame
    assert kinds(events)["conflict"] == len(each.payload) - 20


def test_retransmissions_are_counted_and_keep_alives_add_no_bytes(tmp_path: Path) -> None:
    segments = conversation(SAID)
    size = sum(len(each.payload) for each in segments)
    rows, events = read(written(tmp_path / "x.pcap", repeated(segments, Random(1))))
    assert len(rows) == 6
    assert kinds(events)["dup"] == size
    rows, events = read(written(tmp_path / "y.pcap", with_keep_alives(conversation(SAID))))
    assert len(rows) == 6
    assert "conflict" not in kinds(events)


def test_a_snaplen_leaves_rows_of_long_frames_without_their_bytes(tmp_path: Path) -> None:
    path = written(tmp_path / "x.pcap", conversation(SAID), snaplen=200)
    rows, events = read(path)
    assert [(row["correlation_id"], row["truncated"], row["frame"] is None) for row in rows] == [
        (1, False, False),
        (2, True, True),
        (3, False, False),
        (1, False, False),
        (2, False, False),
        (3, False, False),
    ]
    assert (rows[1]["size"], rows[1]["client_id"], rows[1]["api_key"]) == (len(SAID[2].frame), "a", 63)
    assert rows[1]["pair_status"] == "paired"
    assert kinds(events)["hole"] > 2000
    assert len(read_exchanges(path)) == 2


def test_snaplen_inside_headers_adds_no_bytes(tmp_path: Path) -> None:
    for snaplen in range(54, 72):
        rows, _ = read(written(tmp_path / "x.pcap", conversation(SAID), snaplen=snaplen))
        assert all(row["frame"] is None for row in rows if row["truncated"])
        assert {row["correlation_id"] for row in rows} <= {1, 2, 3, None}
        assert {row["api_key"] for row in rows} <= {63, -1}


def test_repeated_syn_opens_no_connection(tmp_path: Path) -> None:
    segments = conversation(SAID)
    rows, events = read(written(tmp_path / "x.pcap", timed([segments[0], *segments])))
    assert {row["incarnation"] for row in rows} == {1}
    assert [event["kind"] for event in events].count("syn") == 2


def test_a_start_midway_begins_with_the_first_request_that_is_one(tmp_path: Path) -> None:
    segments = conversation([request(9, bytes(5000)), *SAID], segment_bytes=1000)[4:]
    rows, events = read(written(tmp_path / "x.pcap", segments))
    assert ids(rows) == [1, 2, 3]
    assert rows[0]["after_gap"]
    assert "midstream" in kinds(events)
    assert len(bodies(rows, True)) == 3


def test_without_ports_the_side_that_makes_requests_is_the_client(tmp_path: Path) -> None:
    flow = Flow(client_port=1000, server_port=50_000)
    segments = conversation(SAID, flow, opens=False)
    rows, _ = read(written(tmp_path / "x.pcap", segments), ports=())
    assert (rows[0]["client_port"], rows[0]["server_port"]) == (1000, 50_000)
    assert len(rows) == 6


@each_row(
    "first",
    [b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"SSH-2.0-OpenSSH\r\n", b"\0\0\0\x2c" + b"?" * 44, b"\x10\0\0\0 mongo" * 9],
)
@each_row("ports", [(), (9093,)])
@each_row("opens", [True, False])
def test_other_protocols_make_no_frames(tmp_path: Path, first: bytes, ports: tuple[int, ...], opens: bool) -> None:
    segments = conversation(SAID, opens=opens)
    said = [
        each._replace(payload=(first if each.from_client else first[::-1]) if each.payload else b"")
        for each in segments
    ]
    rows, events = read(written(tmp_path / "x.pcap", said), ports=ports)
    assert rows == []
    assert set(kinds(events)) & {"not_kafka", "desync", "midstream"}


def test_zookeeper_traffic_makes_no_frames_unless_its_port_is_given(tmp_path: Path) -> None:
    said = [each._replace(payload=b"\0\0\0\x2c" + bytes(44)) if each.payload else each for each in conversation(SAID)]
    assert read(written(tmp_path / "x.pcap", said), ports=())[0] == []


@each_row("ports", [(), (9093,)])
@each_row("opens", [True, False])
def test_tls_is_opaque(tmp_path: Path, ports: tuple[int, ...], opens: bool) -> None:
    record = b"\x16\x03\x01\x02\x00" + Random(1).randbytes(512)
    segments = [each._replace(payload=record if each.payload else b"") for each in conversation(SAID, opens=opens)]
    rows, events = read(written(tmp_path / "x.pcap", segments), ports=ports)
    assert rows == []
    if opens or ports:
        assert "tls" in kinds(events)


def test_tokens_after_sasl_handshake_v0_are_no_frames(tmp_path: Path) -> None:
    handshake = request(1, b"", api_key=17, version=0)
    handshake = handshake._replace(frame=handshake.frame[:-1] + b"\0\x05PLAIN")
    token, empty = request(9)._replace(frame=b"\0user\0secret"), response(9)._replace(frame=b"")
    said = [handshake, response(1), token, empty, request(2), response(2)]
    rows, events = read(written(tmp_path / "x.pcap", conversation(said)))
    assert [(row["api_key"], row["correlation_id"]) for row in rows] == [(17, 1), (17, 1)]
    assert "sasl" in kinds(events)


def test_sasl_authenticate_requests_are_ordinary_frames(tmp_path: Path) -> None:
    said = [request(1, api_key=17), response(1), request(2, b"token", api_key=36), response(2), *exchanges(3)[4:]]
    rows, _ = read(written(tmp_path / "x.pcap", conversation(said)))
    assert [row["api_key"] for row in rows if not row["is_response"]] == [17, 36, 63]


@each_row("length", [b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff", b"\0\0\0\0", b"GET "])
def test_reports_impossible_length_and_resumes_at_next_segment(tmp_path: Path, length: bytes) -> None:
    segments = conversation(SAID)
    at = from_client(segments)[1]
    segments[at] = segments[at]._replace(payload=length + segments[at].payload[4:])
    rows, events = read(written(tmp_path / "x.pcap", segments))
    assert ids(rows) == [1, 3]
    assert "desync" in kinds(events)


def test_an_unknown_api_or_version_in_a_stream_is_a_frame(tmp_path: Path) -> None:
    said = [request(1), request(2, api_key=200), request(3, version=60), request(4)]
    rows, _ = read(written(tmp_path / "x.pcap", conversation(said)))
    assert [(row["api_key"], row["api_version"], row["header_version"]) for row in rows[:3]] == [
        (63, 1, 2),
        (200, 1, -1),
        (63, 60, 2),
    ]


def test_reports_frame_incomplete_at_end_of_capture(tmp_path: Path) -> None:
    rows, events = read(written(tmp_path / "x.pcap", conversation(SAID)[:6]))
    assert ids(rows) == [1]
    assert kinds(events)["unfinished"] == 1448


def test_missing_bytes_before_an_end_are_a_gap(tmp_path: Path) -> None:
    segments = conversation([request(1), request(2)], closes=True)
    size = len(segments.pop(from_client(segments)[1]).payload)
    rows, events = read(written(tmp_path / "x.pcap", segments))
    assert ids(rows) == [1]
    assert kinds(events)["gap"] == size


def test_reset_ends_a_connection_and_earlier_bytes_count(tmp_path: Path) -> None:
    segments = conversation(SAID)
    reset = segments[-1]._replace(payload=b"", flags=RST)
    rows, events = read(written(tmp_path / "x.pcap", timed([*segments[:-1], reset, segments[-1]])))
    assert len(rows) == 6
    assert "rst" in kinds(events)


def test_one_sided_traffic_is_read_with_known_ports(tmp_path: Path) -> None:
    both = conversation(SAID)
    rows, _ = read(written(tmp_path / "x.pcap", [each for each in both if not each.from_client]))
    assert [row["pair_status"] for row in rows] == ["no_request"] * 3
    rows, _ = read(written(tmp_path / "y.pcap", [each for each in both if each.from_client]), ports=())
    assert [row["pair_status"] for row in rows] == ["no_response"] * 3


def test_ignores_frames_longer_than_allowed(tmp_path: Path) -> None:
    rows, events = read(written(tmp_path / "x.pcap", conversation(SAID)), frame_bytes_max=1000)
    assert ids(rows) == [1, 3]
    assert "desync" in kinds(events)


def test_random_bytes_are_never_frames_and_never_an_error(tmp_path: Path) -> None:
    rng, flags = Random(7), [ACK, ACK, SYN, FIN, RST]
    for _ in range(20):
        segments = [
            each._replace(payload=rng.randbytes(rng.randrange(60)), flags=rng.choice(flags))
            for each in conversation(exchanges(10), opens=False)
        ]
        rows, _ = read(written(tmp_path / "x.pcap", segments), ports=rng.choice([(), (9093,)]))
        assert all(row["frame"] is not None for row in rows)


@each_row("opens", [True, False])
@each_row("bytes_max", [220, 1_500])
def test_half_read_frames_beyond_their_total_are_dropped_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opens: bool, bytes_max: int
) -> None:
    monkeypatch.setattr(frame_reader, "_TAIL_BYTES_MAX", bytes_max)
    said = [request(1, bytes(1000)), response(1, bytes(1000)), *exchanges(20)[2:]]
    flows = [conversation(said, Flow(client_port=40_000 + number), segment_bytes=100) for number in range(3)]
    together = timed(each for row in zip(*flows, strict=True) for each in row)[0 if opens else 15 :]
    rows, events = read(written(tmp_path / "x.pcap", together), chunk_bytes=500)
    unread = {kind: size for kind, size in kinds(events).items() if kind in ("oversized", "skipped", "unfinished")}
    assert unread["oversized"] > 0
    framed = sum(4 + row["size"] for row in rows)
    assert framed + sum(unread.values()) == sum(len(each.payload) for each in together)
