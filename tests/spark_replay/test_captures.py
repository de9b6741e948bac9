"""Capture files written here byte by byte, in every form that can be read."""

from collections import Counter
from ipaddress import ip_address
from pathlib import Path
from struct import pack

import pytest
from mockraft.spark_replay.captures import ACK, SYN, CaptureError, Endpoint, Segment, read_packets, read_segments

CAPTURES = Path(__file__).parents[1] / "captures"
CLIENT, SERVER = Endpoint("10.0.0.1", 40000), Endpoint("10.0.0.2", 9093)
CLIENT_6, SERVER_6 = Endpoint("fd00::1", 40000), Endpoint("fd00::2", 9093)
ETHERNET = bytes(12)


def tcp(payload: bytes = b"hello", seq: int = 7, flags: int = ACK, options: bytes = b"") -> bytes:
    words = 5 + len(options) // 4
    return pack(">HHIIBBHHH", CLIENT.port, SERVER.port, seq, 0, words << 4, flags, 1000, 0, 0) + options + payload


def ipv4(body: bytes, total: int | None = None, fragment: int = 0, protocol: int = 6, options: bytes = b"") -> bytes:
    words = 5 + len(options) // 4
    size = words * 4 + len(body) if total is None else total
    addresses = ip_address(CLIENT.host).packed + ip_address(SERVER.host).packed
    return pack(">BBHHHBBH", 0x40 | words, 0, size, 1, fragment, 64, protocol, 0) + addresses + options + body


def ipv6(body: bytes, extensions: bytes = b"", protocol: int = 6, size: int | None = None) -> bytes:
    addresses = ip_address(CLIENT_6.host).packed + ip_address(SERVER_6.host).packed
    return (
        pack(">IHBB", 0x60000000, len(extensions + body) if size is None else size, protocol, 64)
        + addresses
        + (extensions + body)
    )


def capture(
    path: Path, packets: list[bytes], link: int = 1, order: str = "<", nanoseconds: bool = False, snaplen: int = 262144
) -> Path:
    magic = 0xA1B23C4D if nanoseconds else 0xA1B2C3D4
    out = [pack(f"{order}IHHIIII", magic, 2, 4, 0, 0, snaplen, link)]
    for number, packet in enumerate(packets):
        kept = packet[:snaplen]
        out.append(pack(f"{order}IIII", 1_700_000_000, number + 1, len(kept), len(packet)) + kept)
    path.write_bytes(b"".join(out))
    return path


def segments_of(path: Path, packet: bytes, link: int = 1) -> list[Segment]:
    return list(read_segments(capture(path / "x.pcap", [packet], link)))


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("nanoseconds", [False, True])
def test_both_byte_orders_and_both_resolutions(tmp_path: Path, order: str, nanoseconds: bool) -> None:
    packet = ETHERNET + b"\x08\x00" + ipv4(tcp())
    path = capture(tmp_path / "x.pcap", [packet, packet], order=order, nanoseconds=nanoseconds)
    first, second = read_segments(path)
    unit_ns = 1 if nanoseconds else 1000
    assert first == Segment(1, 1_700_000_000_000_000_000 + unit_ns, CLIENT, SERVER, 7, ACK, b"hello", 0)
    assert (second.packet_number, second.time_ns - first.time_ns) == (2, unit_ns)


@pytest.mark.parametrize(
    ("link", "header"),
    [
        (1, ETHERNET + b"\x08\x00"),
        (1, ETHERNET + b"\x81\x00\x00\x05\x08\x00"),
        (1, ETHERNET + b"\x88\xa8\x00\x05\x81\x00\x00\x06\x08\x00"),
        (113, bytes(14) + b"\x08\x00"),
        (276, b"\x08\x00" + bytes(18)),
        (0, b"\x02\x00\x00\x00"),
        (0, b"\x00\x00\x00\x02"),
        (108, b"\x00\x00\x00\x02"),
        (101, b""),
        (12, b""),
    ],
)
def test_link_layers(tmp_path: Path, link: int, header: bytes) -> None:
    (segment,) = segments_of(tmp_path, header + ipv4(tcp()), link)
    assert (segment.source, segment.destination, segment.payload) == (CLIENT, SERVER, b"hello")


@pytest.mark.parametrize(
    ("link", "header"),
    [(1, ETHERNET + b"\x86\xdd"), (0, b"\x1e\x00\x00\x00"), (101, b""), (113, bytes(14) + b"\x86\xdd")],
)
@pytest.mark.parametrize("extensions", [b"", b"\x06\x00" + bytes(6), b"\x2b\x01" + bytes(14) + b"\x06\x00" + bytes(6)])
def test_ipv6_with_and_without_extension_headers(tmp_path: Path, link: int, header: bytes, extensions: bytes) -> None:
    packet = header + ipv6(tcp(), extensions, protocol=0 if extensions else 6)
    (segment,) = segments_of(tmp_path, packet, link)
    assert (segment.source, segment.destination, segment.payload) == (CLIENT_6, SERVER_6, b"hello")
    assert str(segment.source) == "[fd00::1]:40000"


def test_header_options_are_skipped(tmp_path: Path) -> None:
    packet = ETHERNET + b"\x08\x00" + ipv4(tcp(options=bytes(12)), options=bytes(8))
    assert segments_of(tmp_path, packet)[0].payload == b"hello"


def test_ethernet_padding_is_no_payload(tmp_path: Path) -> None:
    packet = ETHERNET + b"\x08\x00" + ipv4(tcp(payload=b"")) + bytes(6)
    assert segments_of(tmp_path, packet)[0].payload == b""


def test_length_zero_before_the_network_card_cuts_packets_up(tmp_path: Path) -> None:
    (segment,) = segments_of(tmp_path, ETHERNET + b"\x08\x00" + ipv4(tcp(payload=b"x" * 70_000), total=0))
    assert segment.payload == b"x" * 70_000
    (segment,) = segments_of(tmp_path, ETHERNET + b"\x86\xdd" + ipv6(tcp(payload=b"y" * 70_000), size=0))
    assert segment.payload == b"y" * 70_000


def test_what_the_snaplen_cut_off_is_counted(tmp_path: Path) -> None:
    packet = ETHERNET + b"\x08\x00" + ipv4(tcp(payload=b"0123456789"))
    (segment,) = read_segments(capture(tmp_path / "x.pcap", [packet], snaplen=len(packet) - 4))
    assert (segment.payload, segment.cut_bytes) == (b"012345", 4)


def test_what_is_not_tcp_is_counted_by_what_it_is(tmp_path: Path) -> None:
    ip = ETHERNET + b"\x08\x00"
    packets = [
        ip + ipv4(tcp(), protocol=17),
        ip + ipv4(tcp(), fragment=0x2000),
        ip + ipv4(tcp(), fragment=5),
        ip + ipv4(tcp(), total=10),
        ETHERNET + b"\x86\xdd" + ipv6(bytes(8), protocol=44),
        ETHERNET + b"\x86\xdd" + ipv6(tcp(), protocol=58),
        ETHERNET + b"\x08\x06" + bytes(28),
        ip + ipv4(tcp()[:12]),
        ip + ipv4(tcp(payload=b"")[:12] + b"\x10" + tcp(payload=b"")[13:]),
        ETHERNET[:5],
        ip + ipv4(tcp()),
    ]
    skipped: Counter[str] = Counter()
    segments = list(read_segments(capture(tmp_path / "x.pcap", packets), skipped))
    assert [segment.packet_number for segment in segments] == [11]
    assert skipped == {
        "not TCP": 2,
        "IP fragment": 3,
        "bad IP header": 1,
        "not IP (ether type 0x0806)": 1,
        "cut inside a header": 2,
        "bad TCP header": 1,
    }
    unknown: Counter[str] = Counter()
    assert list(read_segments(capture(tmp_path / "y.pcap", packets[:1], link=147), unknown)) == []
    assert unknown == {"link type 147 is not known": 1}


def test_a_file_that_ends_inside_its_last_packet_just_ends(tmp_path: Path) -> None:
    packet = ETHERNET + b"\x08\x00" + ipv4(tcp(flags=SYN))
    path = capture(tmp_path / "x.pcap", [packet, packet])
    whole = path.read_bytes()
    for end in range(24, len(whole)):
        path.write_bytes(whole[:end])
        assert len(list(read_segments(path))) == (1 if end >= 24 + 16 + len(packet) else 0)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "not a pcap or pcapng file: it starts with nothing"),
        (b"GET / HTTP/1.1", "not a pcap or pcapng file: it starts with 47 45 54 20"),
        (b"\x0a\x0d\x0d\x0a" + bytes(30), "the section at offset 0 has no byte order"),
        (b"\xd4\xc3\xb2\xa1" + bytes(5), "ends inside its header"),
        (b"\xd4\xc3\xb2\xa1" + bytes(20) + bytes(8) + b"\xff\xff\xff\x7f" * 2, "packet 1 at offset 24 says it holds"),
    ],
)
def test_what_is_no_capture_is_refused(tmp_path: Path, content: bytes, complaint: str) -> None:
    path = tmp_path / "x.pcap"
    path.write_bytes(content)
    with pytest.raises(CaptureError, match=complaint):
        list(read_segments(path))


@pytest.mark.parametrize(("name", "packets"), [("controller-4.3.1", 4727), ("brokers-4.3.1", 1913)])
def test_every_packet_of_the_real_captures_is_a_segment(name: str, packets: int) -> None:
    skipped: Counter[str] = Counter()
    assert len(list(read_segments(CAPTURES / f"{name}.pcap", skipped))) == packets
    assert not skipped
    with (CAPTURES / f"{name}.pcap").open("rb") as file:
        numbers = [packet.number for packet in read_packets(file)]
    assert numbers == list(range(1, packets + 1))
