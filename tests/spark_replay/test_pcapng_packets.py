"""pcapng files written here block by block, in every form that is read."""

import io
import shutil
import subprocess
from pathlib import Path
from struct import pack

import pytest
from mockraft.spark_replay.captures import read_packets, read_segments
from mockraft.spark_replay.exchanges import read_exchanges
from mockraft.spark_replay.pcapng_packets import CaptureError, Packet

CAPTURES = Path(__file__).parents[1] / "captures"
DATA = b"sixteen bytes ok"
AT_S = 1_700_000_000


def block(order: str, block_type: int, body: bytes) -> bytes:
    body += bytes(-len(body) % 4)
    size = pack(f"{order}I", 12 + len(body))
    return pack(f"{order}I", block_type) + size + body + size


def section(order: str = "<") -> bytes:
    return block(order, 0x0A0D0D0A, pack(f"{order}IHHq", 0x1A2B3C4D, 1, 0, -1))


def interface(order: str = "<", link: int = 1, snaplen: int = 0, options: bytes = b"") -> bytes:
    return block(order, 1, pack(f"{order}HHI", link, 0, snaplen) + options)


def packet(order: str = "<", ticks: int = AT_S * 1_000_000, index: int = 0, data: bytes = DATA) -> bytes:
    head = pack(f"{order}IIIII", index, ticks >> 32, ticks & 0xFFFFFFFF, len(data), len(data) + 4)
    return block(order, 6, head + data)


def packets_of(*blocks: bytes) -> list[Packet]:
    return list(read_packets(io.BytesIO(b"".join(blocks))))


@pytest.mark.parametrize("order", ["<", ">"])
def test_both_byte_orders_and_one_after_the_other(order: str) -> None:
    one = section(order) + interface(order) + packet(order)
    other = section("<") + interface("<", link=101) + packet("<", data=b"odd")
    assert packets_of(one, other) == [
        Packet(1, AT_S * 1_000_000_000, 1, DATA, len(DATA) + 4),
        Packet(2, AT_S * 1_000_000_000, 101, b"odd", 7),
    ]


@pytest.mark.parametrize(
    ("resolution", "ticks_per_s"), [(3, 10**3), (6, 10**6), (9, 10**9), (0x80 | 10, 2**10), (0x80 | 32, 2**32)]
)
@pytest.mark.parametrize("order", ["<", ">"])
def test_times_of_every_resolution_and_offset_are_nanoseconds(order: str, resolution: int, ticks_per_s: int) -> None:
    options = pack(f"{order}HHB3x", 9, 1, resolution) + pack(f"{order}HHqI", 14, 8, 3600, 0)
    (found,) = packets_of(section(order), interface(order, options=options), packet(order, AT_S * ticks_per_s))
    assert found.time_ns == (AT_S + 3600) * 1_000_000_000


def test_each_interface_has_its_own_link_type_and_other_blocks_are_skipped() -> None:
    names = block("<", 4, b"\0\0\0\0")
    found = packets_of(section(), interface(), names, interface(link=113), block("<", 0x0BAD, b"?"), packet(index=1))
    assert [(each.number, each.link_type) for each in found] == [(1, 113)]


def test_simple_and_obsolete_packet_blocks_are_packets() -> None:
    simple = block("<", 3, pack("<I", 20) + DATA[:10])
    obsolete = block("<", 2, pack("<HHIIII", 0, 0, 0, 5_000_000, len(DATA), len(DATA)) + DATA)
    found = packets_of(section(), interface(snaplen=10), simple, obsolete)
    assert found == [Packet(1, 0, 1, DATA[:10], 20), Packet(2, 5_000_000_000, 1, DATA, len(DATA))]


def test_a_file_that_ends_inside_a_block_ends_there() -> None:
    whole = section() + interface() + packet() + packet()
    first_end = len(whole) - len(packet())
    for end in range(12, len(whole)):
        assert len(packets_of(whole[:end])) == (1 if end >= first_end else 0)


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (section()[:8] + b"abcd" + section()[12:], "the section at offset 0 has no byte order"),
        (section() + pack("<II", 6, 11), "the block at offset 28 says that it is 11 bytes long"),
        (section() + pack("<II", 6, 1 << 30), "the block at offset 28 says that it is 1073741824 bytes long"),
        (section() + interface() + packet(index=1), "the block at offset 48 cannot be read"),
        (section() + packet(), "the block at offset 28 cannot be read"),
        (section() + block("<", 6, b"1234"), "the block at offset 28 cannot be read"),
        (
            section() + interface()[:-4] + b"\x55\0\0\0",
            "offset 28 is 20 bytes long at its start, 85 at its end",
        ),
    ],
)
def test_what_cannot_be_a_block_is_refused_with_its_place(data: bytes, complaint: str) -> None:
    with pytest.raises(CaptureError, match=complaint):
        packets_of(data)


@pytest.mark.parametrize("form", ["pcapng", "nsecpcap"])
def test_what_editcap_makes_of_a_real_capture_has_the_same_exchanges(tmp_path: Path, form: str) -> None:
    editcap = shutil.which("editcap")
    assert editcap is not None
    original = CAPTURES / "brokers-4.3.1.pcap"
    turned = tmp_path / "turned"
    subprocess.run([editcap, "-F", form, original, turned], check=True, capture_output=True)
    assert list(read_segments(turned)) == list(read_segments(original))
    assert len(list(read_exchanges(turned, {19192, 19292}))) > 400
