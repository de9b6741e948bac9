"""Every form of file, link and IP header gives the segments that were put in."""

from __future__ import annotations

from pathlib import Path

from mockraft.spark_replay.formats import packets as packet_table
from mockraft.spark_replay.formats import read_segments
from mockraft.spark_replay.formats.packet_sources import Split
from mockraft.spark_replay.schemas import PACKETS

from ...rows import each_row
from ..capture_bytes import C_HDLC, ETHERNET, LOOP, NFLOG, NULL, PPP, PPP_WITH_FRAMING, RAW, SLL, SLL2, pcap
from ..packetiser import (
    FLOW,
    FLOW_6,
    HOP_BY_HOP_AND_ROUTING,
    TUNNELS,
    Flow,
    Segment,
    conversation,
    exchanges,
    fragmented,
    ip,
    link,
    packets,
    tcp,
)
from .segment_rows import CAPTURES, Row, capture, counts, rows, written

SAID = exchanges(5)
ONE = Segment(FLOW, True, 0, 7, 0, 0x10, b"hello")


def said_rows(segments: list[Segment]) -> list[Row]:
    found = []
    for number, each in enumerate(segments, 1):
        ends = (each.flow.client, each.flow.client_port), (each.flow.server, each.flow.server_port)
        source, destination = ends if each.from_client else ends[::-1]
        found.append(Row(number, each.time_ns, *source, *destination, each.seq, each.flags, each.payload, 0))
    return found


@each_row("order", ["<", ">"])
@each_row("nanoseconds", [False, True])
def test_both_byte_orders_and_resolutions_of_pcap(tmp_path: Path, order: str, nanoseconds: bool) -> None:
    segments = conversation(SAID, start_ns=1_700_000_000_000_001_000, step_ns=1_000)
    path = written(tmp_path / "x.pcap", pcap(packets(segments), order=order, nanoseconds=nanoseconds))
    assert rows(path) == said_rows(segments)


@each_row("flow", {"IPv4": FLOW, "IPv6": FLOW_6})
@each_row("link_type", [ETHERNET, RAW, 12, 14, NULL, LOOP, SLL, SLL2, PPP, PPP_WITH_FRAMING, C_HDLC, NFLOG])
def test_every_link_layer_with_both_ips(tmp_path: Path, link_type: int, flow: Flow) -> None:
    segments = conversation(SAID, flow)
    path = written(tmp_path / "x.pcap", pcap(packets(segments, link_type), link_type))
    assert rows(path) == said_rows(segments)


@each_row("flow", {"IPv4": FLOW, "IPv6": FLOW_6})
@each_row("name", [*TUNNELS])
def test_packets_inside_tunnels_are_read(tmp_path: Path, name: str, flow: Flow) -> None:
    segments = conversation(SAID, flow)
    wrapped = [TUNNELS[name](ip(each)) for each in segments]
    assert [row[2:] for row in rows(capture(tmp_path, wrapped))] == [row[2:] for row in said_rows(segments)]
    twice = [TUNNELS[name](TUNNELS["GRE"](ip(each))[14:]) for each in segments]
    assert len(rows(capture(tmp_path, twice))) == len(segments)
    for size in range(15, len(wrapped[0])):
        assert rows(capture(tmp_path, [wrapped[0][:size]])) == []


def test_more_than_four_tunnels_inside_each_other_are_counted(tmp_path: Path) -> None:
    packet = ip(ONE)
    found = []
    for _ in range(5):
        packet = TUNNELS["IP in IP"](packet)[14:]
        found.append(link(packet))
    path = capture(tmp_path, found)
    assert [row.packet_no for row in rows(path)] == [1, 2, 3, 4]
    assert counts(path) == {"not_tcp": 1}


@each_row("order", ["<", ">"])
@each_row("family", [10, 23, 24, 28, 30])
def test_the_loopback_family_is_that_of_any_system_in_either_byte_order(
    tmp_path: Path, order: str, family: int
) -> None:
    six = link(ip(ONE._replace(flow=FLOW_6)), NULL)[4:]
    head = family.to_bytes(4, "little" if order == "<" else "big")
    found = rows(capture(tmp_path, [head + six, link(ip(ONE), NULL, order=order)], NULL))
    assert [row.src for row in found] == ["fd00::1", "10.0.0.1"]


@each_row(("vlans", "vlan"), [((), 0), ((5,), 5), ((5, 6), 5 * 4096 + 6)])
@each_row("flow", {"IPv4": FLOW, "IPv6": FLOW_6})
def test_skips_and_reports_vlan_tags(tmp_path: Path, vlans: tuple[int, ...], vlan: int, flow: Flow) -> None:
    segments = conversation(SAID, flow)
    path = written(tmp_path / "x.pcap", pcap(packets(segments, vlans=vlans)))
    assert rows(path) == said_rows(segments)
    (found,) = read_segments(path)
    assert set(found.vlan.tolist()) == {vlan} == {each.vlan for each in found.flows}


def test_ip_and_tcp_options_and_ipv6_extension_headers_are_stepped_over(tmp_path: Path) -> None:
    six = ONE._replace(flow=FLOW_6)
    found = rows(
        capture(
            tmp_path,
            [
                link(ip(ONE, tcp(ONE, options=bytes(12)), options=bytes(8))),
                link(ip(six, tcp(six, options=bytes(4)), extensions=HOP_BY_HOP_AND_ROUTING, protocol=0)),
                link(ip(six, extensions=b"\x06\x00" + bytes(6), protocol=60)),
            ],
        )
    )
    assert [row.payload for row in found] == [b"hello"] * 3


@each_row("flow", {"IPv4": FLOW, "IPv6": FLOW_6})
def test_length_zero_means_all_there_is_and_padding_is_no_payload(tmp_path: Path, flow: Flow) -> None:
    empty = conversation([], flow)
    assert rows(written(tmp_path / "padded.pcap", pcap(packets(empty, padded=True)))) == said_rows(empty)
    segments = conversation(exchanges(3, bytes_max=70_000), flow, segment_bytes=65_000)
    path = written(tmp_path / "zero.pcap", pcap(packets(segments, length_zero=True)))
    assert rows(path) == said_rows(segments)


def test_bytes_missing_by_snaplen_are_counted(tmp_path: Path) -> None:
    segments = conversation(SAID)
    found = rows(written(tmp_path / "x.pcap", pcap(packets(segments, snaplen=100), snaplen=100)))
    assert [row.payload for row in found] == [each.payload[:46] for each in segments]
    assert [row.cut_bytes for row in found] == [max(0, len(each.payload) - 46) for each in segments]


def test_non_tcp_packets_are_counted_by_kind(tmp_path: Path) -> None:
    six = ONE._replace(flow=FLOW_6)
    whole = link(ip(ONE))
    path = capture(
        tmp_path,
        [
            link(ip(ONE, protocol=17)),
            whole[:12] + b"\x08\x06" + whole[14:],
            link(ip(six, protocol=58)),
            *fragmented(ip(ONE), 8)[:2],
            link(ip(six, protocol=44)),
            whole[:13],
            whole[:30],
            whole[:50],
            link(ip(six))[:30],
            link(ip(six, extensions=bytes(8), protocol=0))[:55],
            whole[:16] + b"\x00\x0a" + whole[18:],
            whole[:46] + b"\x10" + whole[47:],
            whole[:46] + b"\xf0" + whole[47:],
            whole,
        ],
    )
    assert [row.packet_no for row in rows(path)] == [15]
    assert counts(path) == {"not_tcp": 3, "fragments": 3, "cut_header": 5, "bad_header": 3}
    assert counts(capture(tmp_path, [whole] * 3, 147)) == {"unknown_link": 3}
    assert len(rows(Split(str(path), link_type=ETHERNET))) == 3


@each_row("flow", {"IPv4": FLOW, "IPv6": FLOW_6})
@each_row("chunk_bytes", [64, 8 << 20])
def test_fragments_are_joined_in_any_order_and_number(tmp_path: Path, flow: Flow, chunk_bytes: int) -> None:
    said = [each._replace(flow=flow, payload=bytes(range(100)), time_ns=n) for n, each in enumerate([ONE] * 4)]
    pieces = [fragmented(ip(each), 24, number) for number, each in enumerate(said)]
    tunnel = fragmented(TUNNELS["VXLAN"](ip(ONE))[14:], 16, 9)
    path = capture(tmp_path, [*pieces[0], *pieces[1][::-1], pieces[2][1], *pieces[2], *pieces[3][:-1], *tunnel])
    found = rows(path, chunk_bytes=chunk_bytes)
    assert [row.payload for row in found] == [bytes(range(100))] * 3 + [b"hello"]
    assert [row.packet_no for row in found][:2] == [len(pieces[0]), 2 * len(pieces[0])]
    assert (found[0].src, found[-1].src) == (flow.client, "10.0.0.1")
    assert counts(path) == {"fragments": len(pieces[3]) - 1}
    cut = [each[:-1] for each in pieces[0]]
    assert rows(capture(tmp_path, cut)) == []


def test_ports_and_times_are_chosen_early(tmp_path: Path) -> None:
    other = conversation(SAID, Flow(server_port=9092))
    segments = [*conversation(SAID), *other]
    path = written(tmp_path / "x.pcap", pcap(packets(segments)))
    assert [row.dport for row in rows(path, ports=[9092]) if row.dport != 40_000] == [
        9092 for each in other if each.from_client
    ]
    assert len(rows(path, ports=[9092, 9093])) == len(segments)
    assert rows(path, ports=[1]) == []
    ends = other[2].time_ns, other[5].time_ns
    chosen = rows(path, ports=[9092], times_ns=ends)
    assert [row.ts_ns for row in chosen] == [each.time_ns for each in other[2:5]]


@each_row(("name", "count"), [("controller-4.3.1", 4727), ("brokers-4.3.1", 1913)])
def test_every_packet_of_the_real_captures_is_a_segment_whatever_the_chunk(name: str, count: int) -> None:
    path = CAPTURES / f"{name}.pcap"
    found = rows(path)
    assert [row.packet_no for row in found] == list(range(1, count + 1))
    assert counts(path) == {}
    assert rows(path, chunk_bytes=30_000) == found


def test_rows_have_the_schema_of_packets_and_the_place_in_the_file(tmp_path: Path) -> None:
    segments = conversation(SAID)
    path = written(tmp_path / "x.pcap", pcap(packets(segments)))
    (found,) = read_segments(path)
    batch = packet_table(found)
    assert batch.schema == PACKETS
    data = path.read_bytes()
    for offset, size in zip(batch["file_offset"].to_pylist(), batch["captured_len"].to_pylist(), strict=True):
        assert data[offset + 8 : offset + 12] == (size + 54).to_bytes(4, "little")
    assert batch["linktype"].unique().to_pylist() == [1]
    assert batch["vlan"].unique().to_pylist() == [0]


def test_flows_are_distinguished_by_endpoints_and_vlan(tmp_path: Path) -> None:
    flows = [
        Flow(),
        Flow(client_port=40_001),
        Flow(client="10.0.0.3"),
        Flow(server_port=9092),
        Flow(server="10.0.0.3"),
        FLOW_6,
        Flow("fd00::1", 40_000, "fe00::2"),
    ]
    listed = [link(ip(ONE._replace(flow=flow, from_client=side))) for flow in flows for side in (True, False)]
    listed += [link(ip(ONE), vlans=[9])]
    (found,) = read_segments(capture(tmp_path, listed * 2))
    assert found.flow.tolist() == list(range(15)) * 2
    assert len(set(found.flows)) == 15
