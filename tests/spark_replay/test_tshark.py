"""tshark finds the same frames as we do, with the same ids, sizes, times and pairs, however the packets are wrapped.

Where tshark knows less it is not asked: it finds no API for a response that was captured before its request (nor for
many of a broker's), and is right after a gap only without `tcp.reassemble_out_of_order`, out of order only with it.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
from mockraft.spark_replay.formats import packet_numbers
from mockraft.wire.pcapng import CapturedConnection, PcapngWriter

from ..budgets import sample
from . import packetiser
from .capture_bytes import (
    C_HDLC,
    ETHERNET,
    LOOP,
    NFLOG,
    NULL,
    PPP,
    PPP_WITH_FRAMING,
    RAW,
    SLL,
    SLL2,
    Packet,
    pcap,
    pcapng,
)
from .formats.segment_rows import written
from .frame_rows import rows_of, table_of
from .packetiser import (
    FLOW,
    FLOW_6,
    HOP_BY_HOP_AND_ROUTING,
    SYN,
    TUNNELS,
    Segment,
    conversation,
    cut,
    exchanges,
    fragmented,
    ip,
    link,
    mixed,
    moved,
    packets,
    repeated,
    with_keep_alives,
)
from .tshark_frames import by_tshark, by_us, run, tool, tshark

pytestmark = [pytest.mark.one_python, pytest.mark.programs]

CAPTURES = Path(__file__).parents[1] / "captures"
CONTROLLER, BROKERS = CAPTURES / "controller-4.3.1.pcap", CAPTURES / "brokers-4.3.1.pcap"
PORTS = {CONTROLLER: {19093}, BROKERS: {19192, 19292}}


@pytest.mark.parametrize(
    ("capture", "frames", "pairs_known"), [(CONTROLLER, 1726, 860), (BROKERS, 931, 109)], ids=["controller", "brokers"]
)
def test_every_frame_of_real_kafka_has_its_direction_id_size_time_api_and_partner(
    capture: Path, frames: int, pairs_known: int
) -> None:
    table = table_of(capture, PORTS[capture])
    # tshark counts packets, the table has their places in the file.
    numbers = packet_numbers(capture, table["packet_last"].to_pylist())
    table = table.set_column(table.schema.get_field_index("packet_last"), "packet_last", pa.array(numbers, pa.int64()))
    theirs = by_tshark(capture, PORTS[capture])
    assert theirs.total() == frames
    assert rows_of(table, "is_response", "correlation_id", "size", "ts_last_ns") == theirs
    columns = ("tcp.dstport", "frame.number", "kafka.request_key", "kafka.response_key", "kafka.request_frame")
    apis: Counter[tuple[bool, int, int]] = Counter()
    pairs: Counter[tuple[int, int]] = Counter()
    for to_port, number, request_keys, response_keys, request_frames in tshark(capture, PORTS[capture], *columns):
        is_response = int(to_port) not in PORTS[capture]
        keys = response_keys if is_response else request_keys
        apis.update((is_response, int(key), int(number)) for key in keys.split(",") if key)
        pairs.update((int(each), int(number)) for each in request_frames.split(",") if each)
    assert apis - rows_of(table, "is_response", "api_key", "packet_last") == Counter()
    assert pairs.total() == pairs_known
    assert pairs - paired_packets(table.to_pylist()) == Counter()
    statuses = rows_of(table, "is_response", "pair_status")
    assert statuses[True, "paired"] == statuses[False, "paired"] == frames // 2 - (capture == CONTROLLER) * 3


def paired_packets(rows: list[dict[str, object]]) -> Counter[tuple[int, int]]:
    """The last packets of requests and of their responses, by the pairing."""
    requests = {
        (row["conn_id"], row["incarnation"], row["frame_no"]): row["packet_last"]
        for row in rows
        if not row["is_response"]
    }
    return Counter(
        (requests[row["conn_id"], row["incarnation"], row["request_frame_no"]], row["packet_last"])  # type: ignore[misc]
        for row in rows
        if row["is_response"] and row["pair_status"] == "paired"
    )


def rewritten(capture: Path, change: Callable[[list[Packet]], list[Packet]], link_type: int = ETHERNET) -> bytes:
    """The real capture with its packets changed; they are taken out of its Ethernet frames first."""
    data = capture.read_bytes()
    assert data[:4] == b"\xd4\xc3\xb2\xa1"
    assert int.from_bytes(data[20:24], "little") == ETHERNET
    at, found = 24, []
    while at < len(data):
        seconds, fraction, size, original = (int.from_bytes(data[at + n : at + n + 4], "little") for n in (0, 4, 8, 12))
        found.append(Packet(seconds * 1_000_000_000 + fraction * 1000, data[at + 16 : at + 16 + size], original))
        at += 16 + size
    return pcap(change(found), link_type)


def in_link(link_type: int, vlans: Sequence[int] = ()) -> Callable[[list[Packet]], list[Packet]]:
    def change(found: list[Packet]) -> list[Packet]:
        return [Packet(each.time_ns, link(each.data[14:], link_type, vlans)) for each in found]

    return change


def as_ipv6(found: list[Packet]) -> list[Packet]:
    """The TCP of each packet in IPv6, the last four bytes of its addresses being those of IPv4."""
    out = []
    for each in found:
        packet = each.data[14:]
        body = packet[(packet[0] & 15) * 4 : int.from_bytes(packet[2:4])]
        pair = b"".join(b"\xfd" + bytes(11) + packet[at : at + 4] for at in (12, 16))
        head = b"\x60\0\0\0" + (len(HOP_BY_HOP_AND_ROUTING) + len(body)).to_bytes(2) + b"\0\x40"
        out.append(Packet(each.time_ns, link(head + pair + HOP_BY_HOP_AND_ROUTING + body)))
    return out


def in_tunnel(name: str) -> Callable[[list[Packet]], list[Packet]]:
    def change(found: list[Packet]) -> list[Packet]:
        return [Packet(each.time_ns, TUNNELS[name](each.data[14:])) for each in found]

    return change


def in_fragments(found: list[Packet]) -> list[Packet]:
    """The IP packets in fragments of up to 400 bytes, each with an id of its own."""
    return [
        Packet(each.time_ns, fragment)
        for number, each in enumerate(found)
        for fragment in fragmented(each.data[14:], 400, number)
    ]


LINKS = {"sll": SLL, "sll2": SLL2, "raw": RAW, "null": NULL, "loop": LOOP}
LINKS |= {"ppp": PPP, "ppp with framing": PPP_WITH_FRAMING, "hdlc": C_HDLC, "nflog": NFLOG}
VARIANTS = {
    "vlan": (in_link(ETHERNET, (7,)), ETHERNET),
    "qinq": (in_link(ETHERNET, (7, 8)), ETHERNET),
    "ipv6": (as_ipv6, ETHERNET),
    "fragments": (in_fragments, ETHERNET),
    **{name: (in_link(link_type), link_type) for name, link_type in LINKS.items()},
    # tshark finds an Ethernet frame behind MPLS only if told to.
    **{name: (in_tunnel(name), ETHERNET) for name in TUNNELS if name != "Ethernet over MPLS"},
}


@pytest.mark.parametrize("name", sample([*VARIANTS], 2))
def test_real_packets_in_another_wrapping_are_the_same_frames_to_both(tmp_path: Path, name: str) -> None:
    change, link_type = VARIANTS[name]
    path = written(tmp_path / "wrapped.pcap", rewritten(CONTROLLER, change, link_type))
    ours = by_us(path, PORTS[CONTROLLER])
    assert ours == by_us(CONTROLLER, PORTS[CONTROLLER])
    assert ours == by_tshark(path, PORTS[CONTROLLER])


def test_directions_in_two_vlans_are_one_connection_to_both(tmp_path: Path) -> None:
    sent = conversation(SAID, segment_bytes=300)
    tagged = [packet for each in sent for packet in packets([each], vlans=[10 if each.from_client else 20])]
    path = written(tmp_path / "vlans.pcap", pcap(tagged))
    assert by_us(path, {packetiser.PORT}) == by_tshark(path, {packetiser.PORT})
    assert rows_of(table_of(path), "pair_status").keys() == {("paired",)}


def test_real_packets_out_of_order_are_the_same_frames_to_both(tmp_path: Path) -> None:
    """All but the segments around a SYN, before which a connection sends nothing."""

    def shuffled(found: list[Packet]) -> list[Packet]:
        rng = Random(5)
        opens = [index for index, each in enumerate(found) if each.data[14 + 20 + 13] & SYN]
        kept = {index + near for index in opens for near in range(-4, 5)}
        order = sorted(range(len(found)), key=lambda index: index + (rng.random() * 4 if index not in kept else 0))
        assert order != sorted(order)
        return [each._replace(data=found[index].data) for each, index in zip(found, order, strict=True)]

    path = written(tmp_path / "shuffled.pcap", rewritten(CONTROLLER, shuffled))
    ours, theirs = by_us(path, PORTS[CONTROLLER]), by_tshark(path, PORTS[CONTROLLER], in_order=False)
    assert ours.total() == theirs.total() == 1726
    assert Counter(row[:3] for row in ours.elements()) == Counter(row[:3] for row in theirs.elements())


def test_every_packet_twice_is_the_same_frames_to_both(tmp_path: Path) -> None:
    path = tmp_path / "twice.pcap"
    run(tool("mergecap"), "-F", "pcap", "-w", path, CONTROLLER, CONTROLLER)
    ours = by_us(path, PORTS[CONTROLLER])
    assert ours == by_us(CONTROLLER, PORTS[CONTROLLER])
    assert ours == by_tshark(path, PORTS[CONTROLLER], in_order=False)


LOST = [122, 267, 282, 624, 1313, 1689, 2274, 2686, 3514, 3790, 3954, 4015, 4025, 4266, 4681]


def test_after_lost_packets_both_find_the_same_frames_again(tmp_path: Path) -> None:
    path = tmp_path / "lossy.pcap"
    run(tool("editcap"), "-F", "pcap", CONTROLLER, path, *map(str, LOST))
    ours, theirs = by_us(path, PORTS[CONTROLLER]), by_tshark(path, PORTS[CONTROLLER])
    whole = by_us(CONTROLLER, PORTS[CONTROLLER])
    assert ours == theirs
    assert ours.total() == 1716
    assert ours - whole == Counter()


@pytest.mark.parametrize("form", ["pcapng", "nsecpcap"])
def test_the_same_packets_in_another_file_format_are_the_same_frames(tmp_path: Path, form: str) -> None:
    path = tmp_path / "turned"
    run(tool("editcap"), "-F", form, BROKERS, path)
    assert by_us(path, PORTS[BROKERS]) == by_tshark(path, PORTS[BROKERS]) == by_us(BROKERS, PORTS[BROKERS])


SAID = exchanges(40, bytes_max=900)
BENT: dict[str, tuple[list[Segment], bool]] = {
    "as it was": (conversation(SAID, segment_bytes=300, acks=True, closes=True), True),
    "cut": (cut(conversation(SAID), Random(2)), True),
    "out of order": (mixed(conversation(SAID, segment_bytes=300), Random(3), 4), False),
    "repeated": (repeated(conversation(SAID, segment_bytes=300), Random(4)), False),
    "kept alive": (with_keep_alives(conversation(SAID, segment_bytes=300)), True),
    "wrapping": (moved(conversation(SAID, segment_bytes=300, isns=(0, 0)), -4000, -5000), True),
    "IPv6": (conversation(SAID, FLOW_6, segment_bytes=300), True),
}


@pytest.mark.parametrize("name", BENT)
def test_tcp_variants_give_tshark_and_mockraft_the_same_frames(tmp_path: Path, name: str) -> None:
    segments, in_order = BENT[name]
    path = written(tmp_path / "bent.pcap", pcap(packets(segments)))
    ours, theirs = by_us(path, {packetiser.PORT}), by_tshark(path, {packetiser.PORT}, in_order=in_order)
    assert ours.total() == len(SAID)
    assert Counter(row[:3] for row in ours.elements()) == Counter(row[:3] for row in theirs.elements())
    if in_order:
        assert ours == theirs


FORMS: dict[str, bytes] = {
    "big-endian, ns": pcap(packets(conversation(SAID)), order=">", nanoseconds=True),
    "TSO": pcap(packets(conversation(SAID), length_zero=True)),
    "padded": pcap(packets(conversation(SAID, acks=True), padded=True)),
    "IP options": pcap(packets(conversation(SAID), around=lambda each: ip(each, options=bytes(8)))),
    "pcapng": pcapng(packets(conversation(SAID)), sections=3, unknown_blocks=True, resolution=0x80 | 30),
    "big-endian pcapng": pcapng(packets(conversation(SAID)), order=">", resolution=9, offset_s=1000),
}


@pytest.mark.parametrize("name", FORMS)
def test_file_variants_give_tshark_and_mockraft_the_same_frames(tmp_path: Path, name: str) -> None:
    path = written(tmp_path / "formed", FORMS[name])
    ours = by_us(path, {FLOW.server_port})
    assert ours.total() == len(SAID)
    assert ours == by_tshark(path, {FLOW.server_port})


def test_tshark_parses_written_captures(tmp_path: Path) -> None:
    frames = table_of(CONTROLLER, PORTS[CONTROLLER]).sort_by("packet_last").to_pylist()
    again = tmp_path / "again.pcapng"
    flows: dict[object, CapturedConnection] = {}
    with again.open("wb") as file:
        writer = PcapngWriter(file)
        for row in frames:
            connection = row["conn_id"], row["incarnation"]
            if connection not in flows:
                ends = (row["client"], row["client_port"]), (row["server"], row["server_port"])
                flows[connection] = writer.connect(*ends, row["ts_first_ns"])
            data = row["size"].to_bytes(4) + row["frame"]
            writer.send(flows[connection], not row["is_response"], data, row["ts_last_ns"])
    assert (
        by_us(again, PORTS[CONTROLLER]) == by_tshark(again, PORTS[CONTROLLER]) == by_us(CONTROLLER, PORTS[CONTROLLER])
    )
