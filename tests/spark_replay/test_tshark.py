"""tshark finds the same frames: in a real capture, in the same packets as pcapng, and in what we write ourselves."""

import shutil
import subprocess
from collections import Counter
from pathlib import Path

from mockraft.spark_replay.exchanges import Exchange, read_exchanges
from mockraft.wire.pcapng import Flow, PcapngWriter

CAPTURE = Path(__file__).parents[1] / "captures" / "controller-4.3.1.pcap"
PORT = 19093


def frames_by_tshark(path: Path) -> Counter[tuple[bool, int, int]]:
    """Frames as (from the client, correlation id, length)."""
    tshark = shutil.which("tshark")
    assert tshark is not None
    fields = ("tcp.dstport", "kafka.correlation_id", "kafka.len")
    options = [option for field in fields for option in ("-e", field)]
    command = [tshark, "-r", path, "-d", f"tcp.port=={PORT},kafka", "-Y", "kafka", "-T", "fields", *options]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    found: Counter[tuple[bool, int, int]] = Counter()
    for line in lines:
        to_port, ids, lengths = line.split("\t")
        for correlation_id, length in zip(ids.split(","), lengths.split(","), strict=True):
            found[to_port == str(PORT), int(correlation_id), int(length)] += 1
    return found


def frames_of(exchanges: list[Exchange]) -> Counter[tuple[bool, int, int]]:
    frames = [frame for each in exchanges for frame in (each.request, each.response) if frame]
    return Counter((frame.from_client, frame.correlation_id, len(frame.data)) for frame in frames)


def test_tshark_finds_the_same_frames_in_a_real_capture_and_in_the_file_that_we_write_of_it(tmp_path: Path) -> None:
    exchanges = list(read_exchanges(CAPTURE, {PORT}))
    by_tshark = frames_by_tshark(CAPTURE)
    assert by_tshark.total() == 1726
    assert frames_of(exchanges) == by_tshark

    again = tmp_path / "again.pcapng"
    flows: dict[object, Flow] = {}
    frames = [frame for each in exchanges for frame in (each.request, each.response) if frame]
    with again.open("wb") as file:
        writer = PcapngWriter(file)
        for frame in sorted(frames, key=lambda each: each.last_packet):
            connection = frame.connection
            if connection not in flows:
                flows[connection] = writer.connect(connection.client, connection.server, frame.first_time_ns)
            data = len(frame.data).to_bytes(4) + frame.data
            writer.send(flows[connection], frame.from_client, data, frame.last_time_ns)
    assert frames_of(list(read_exchanges(again))) == by_tshark
    assert frames_by_tshark(again) == by_tshark
