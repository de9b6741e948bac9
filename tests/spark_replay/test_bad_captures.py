"""Any capture gives rows of frames, messages, exchanges or events, in bounded memory."""

from __future__ import annotations

import gc
import gzip
import shutil
import subprocess
import sys
import tracemalloc
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mockraft.spark_replay.decoding import (
    decode_batches,
    decode_forwarded_batches,
    decode_record_batches,
    decode_typed_batches,
    typed_schema,
)
from mockraft.spark_replay.decoding.exchange_table import pair_exchanges_table
from mockraft.spark_replay.decoding.hidden_frames import hide_secrets
from mockraft.spark_replay.formats import CaptureError, read_segments
from mockraft.spark_replay.formats.file_events import FileEvent
from mockraft.spark_replay.formats.file_headers import SNAPLEN_MAX
from mockraft.spark_replay.frames import _first_time_ns, read_frames
from mockraft.spark_replay.schemas import CONN_EVENTS, EXCHANGES, FORWARDED, FRAMES, MESSAGES, RECORDS
from mockraft.spark_replay.streams.reassembly import Limits, Reassembler
from mockraft.spark_replay.streams.runs import make_runs
from mockraft.wire.connection import write_request
from mockraft.wire.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData

from ..bombs import CODECS, bomb
from ..budgets import sample, soak
from ..rows import each_row
from .capture_bytes import Packet, pcap, pcapng
from .formats.segment_rows import written
from .frame_rows import frames_of, said_in, table_of
from .packetiser import (
    FLOW,
    PORT,
    SYN,
    Flow,
    Said,
    Segment,
    conversation,
    exchanges,
    ip,
    link,
    packets,
    request,
    response,
)

CAPTURES = Path(__file__).parents[1] / "captures"
CONTROLLER = CAPTURES / "controller-4.3.1.pcap"
SAID = exchanges(60)
FORMS = {"pcap": pcap(packets(conversation(SAID))), "pcapng": pcapng(packets(conversation(SAID)))}
house = settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])


def everything(path: Path, ports: tuple[int, ...] = (PORT,), **options: Any) -> tuple[pa.Table, Counter[str]]:
    """The frames, after they were decoded and paired, and how often each kind of event of file and connections is."""
    conn_events: list[pa.RecordBatch] = []
    file_events: list[FileEvent] = []
    batches = list(read_frames(path, ports, conn_events=conn_events, file_events=file_events, **options))
    frames = pa.Table.from_batches(batches, schema=FRAMES)
    assert sum(messages.num_rows for messages in decode_batches(batches)) == frames.num_rows
    assert sum(exchanges.num_rows for exchanges in pair_exchanges_table(batches)) <= frames.num_rows
    kinds = Counter(pa.Table.from_batches(conn_events, schema=CONN_EVENTS)["kind"].to_pylist())
    return frames, kinds + Counter(row["kind"] for row in file_events)


@pytest.mark.programs
@each_row("seed", sample(range(1, 7), 2))
@each_row("errors", ["0.00001", "0.0005", "0.02"])
def test_bit_errors_by_editcap_are_rows_whatever_they_hit(tmp_path: Path, seed: int, errors: str) -> None:
    editcap = shutil.which("editcap")
    assert editcap is not None
    turned = tmp_path / "turned"
    options = ["-F", "pcapng", "-E", errors, "--seed", str(seed)]
    subprocess.run([editcap, *options, CAPTURES / "brokers-4.3.1.pcap", turned], check=True, capture_output=True)
    frames, kinds = everything(turned, (19192, 19292))
    assert frames.num_rows <= 931
    assert frames.num_rows > {"0.00001": 850, "0.0005": 50, "0.02": -1}[errors]
    if errors != "0.00001":
        assert kinds["gap"] + kinds["midstream"] + kinds["desync"] + kinds["not_tcp"] > 0


@house
@given(offset=st.integers(24, len(FORMS["pcap"]) - 1), noise=st.binary(min_size=1, max_size=3000))
def test_noise_damages_only_hit_packets(tmp_path: Path, offset: int, noise: bytes) -> None:
    whole = FORMS["pcap"]
    path = written(tmp_path / "x", whole[:offset] + noise + whole[offset + len(noise) :])
    frames, _ = everything(path, on_error="skip")
    before = sum(whole.index(each.data) + len(each.data) <= offset for each in SAID)
    assert Counter(SAID[:before]) - said_in(frames) == Counter()
    hit = sum(whole.index(each.data) < offset + len(noise) for each in SAID) - before
    assert sum((said_in(frames) - Counter(SAID)).values()) <= hit + 1


def test_captures_inside_payloads_are_bytes_also_behind_damage(tmp_path: Path) -> None:
    inner = pcap([Packet(1_700_000_000_000_000_000, link(ip(Segment(FLOW, True, 0, 7, 0, 16, b"no"))))] * 100)
    said = [each for number in range(1, 60) for each in (request(number, inner), response(number, inner))]
    listed = packets(conversation(said, segment_bytes=60_000))
    whole = pcap(listed)
    path = written(tmp_path / "x.pcap", whole)
    assert frames_of(path) == Counter(said)
    hit = len(pcap(listed[:20]))
    path.write_bytes(whole[: hit + 8] + b"\xff" * 8 + whole[hit + 16 :])
    frames, kinds = everything(path, on_error="skip")
    found = said_in(frames)
    assert found - Counter(said) == Counter()
    assert Counter(said[:17]) - found == Counter()
    # Which of the chains of records is the file's own is sure where no other can start: a record's length later.
    sure = next(n for n, each in enumerate(said) if whole.index(each.data) > hit + SNAPLEN_MAX + len(each.data))
    assert Counter(said[sure + 2 :]) - found == Counter()
    assert sure < 70
    assert kinds["corrupt"] == 1


def test_tables_without_frames_have_their_columns(tmp_path: Path) -> None:
    none, of_others = written(tmp_path / "none.pcap", pcap([])), written(tmp_path / "x.pcap", FORMS["pcap"])
    assert pa.Table.from_batches(read_frames(of_others, [1])).schema == FRAMES
    tables: tuple[tuple[Callable[[Any], Any], pa.Schema], ...] = (
        (decode_batches, MESSAGES),
        (partial(decode_typed_batches, api="Fetch"), typed_schema("Fetch")),
        (decode_record_batches, RECORDS),
        (decode_forwarded_batches, FORWARDED),
        (pair_exchanges_table, EXCHANGES),
        (hide_secrets, FRAMES),
    )
    for make, schema in tables:
        for frames in (iter(()), read_frames([]), read_frames(none), read_frames(of_others, [1])):
            table = pa.Table.from_batches(make(frames))
            assert (table.num_rows, table.schema) == (0, schema)


@each_row("ports", [(), (PORT,), (FLOW.client_port,), (1, 2, 65_535)])
def test_wrong_ports_give_no_wrong_frames(tmp_path: Path, ports: tuple[int, ...]) -> None:
    # The client's port named, the wrong side is the server: what opens it says who is the client.
    path = written(tmp_path / "x.pcap", FORMS["pcap"])
    frames, _ = everything(path, ports)
    assert said_in(frames) == (Counter() if 1 in ports else Counter(SAID))


@pytest.mark.programs
def test_files_are_read_in_the_order_of_their_times_whatever_the_order_of_their_names(tmp_path: Path) -> None:
    editcap = shutil.which("editcap")
    assert editcap is not None
    subprocess.run([editcap, "-F", "pcap", "-c", "500", CONTROLLER, tmp_path / "ring.pcap"], check=True)
    ring = sorted(tmp_path.iterdir())
    assert len(ring) == 10
    places = ["packet_first", "packet_last"]
    whole = table_of(CONTROLLER, {19093}).drop_columns(places)
    keys = [(name, "ascending") for name in ("conn_id", "incarnation", "is_response", "frame_no")]
    for seed in range(3):
        named = Random(seed).sample(ring, len(ring))
        batches = list(read_frames(named, {19093}))
        found = pa.Table.from_batches(batches, schema=FRAMES).drop_columns(places)
        assert found.sort_by(keys) == whole.sort_by(keys)


@each_row(
    "options",
    [{"ports": ["9092"]}, {"ports": [99_999]}, {"on_error": "quarantin"}, {"chunk_bytes": 0}, {"frame_bytes_max": 0}],
)
def test_wrong_options_are_refused(options: dict[str, Any]) -> None:
    name, value = next(iter(options.items()))
    with pytest.raises(ValueError, match=f"{name}: .*{value[0] if isinstance(value, list) else value}"):
        next(read_frames(CONTROLLER, **options))


def test_finding_the_time_of_a_file_reads_its_first_packet_only_and_keeps_the_limit(tmp_path: Path) -> None:
    not_tcp = Packet(5_000, bytes(200_000))
    path = written(tmp_path / "x.pcap.gz", gzip.compress(pcap([not_tcp, *packets(conversation(SAID))])))
    assert _first_time_ns(str(path), None) == 5_000
    assert _first_time_ns(str(path), 100_000) == 0
    with pytest.raises(CaptureError, match="decompresses to more than 100000 bytes"):
        list(read_frames([path, CONTROLLER], [19093], decompressed_bytes_max=100_000))


UNPACKED_BYTES = 250_000_000
READ = """
import resource, sys
from mockraft.spark_replay import read_frames

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

small, bomb, limit = sys.argv[1:]
list(read_frames(small))
before, events = peak(), []
frames = sum(batch.num_rows for batch in read_frames(
    bomb, file_events=events, on_error="quarantine", decompressed_bytes_max=int(limit)
))
print(frames, peak() - before, [(row["kind"], row["detail"]) for row in events])
"""


@each_row("compression", sample(["gzip", "zstd"], 1))
@each_row("limit", sample([UNPACKED_BYTES * 2, UNPACKED_BYTES // 4], 1))
def test_decompression_bomb_needs_memory_for_few_chunks(tmp_path: Path, compression: str, limit: int) -> None:
    segments = conversation([request(1, bytes(1200))])
    small = written(tmp_path / "small", pcap(packets(segments)))
    # The last packet, again and again.
    record = pcap(packets(segments[-1:]))[24:]
    part = record * 10_000
    bomb = tmp_path / "bomb"
    with pa.CompressedOutputStream(str(bomb), compression) as out:
        out.write(small.read_bytes())
        for _ in range(UNPACKED_BYTES // len(part)):
            out.write(part)
    assert bomb.stat().st_size < UNPACKED_BYTES / 100
    command = [sys.executable, "-c", READ, str(small), str(bomb), str(limit)]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    frames, grown, events = ended.stdout.split(maxsplit=2)
    assert frames == "1"
    assert int(grown) < 150_000_000
    stopped = f"[('corrupt', 'decompresses to more than {limit} bytes (decompressed_bytes_max)')]"
    assert events.strip() == (stopped if limit < UNPACKED_BYTES else "[]")


@each_row("codec", sample([*CODECS], 2))
def test_a_captured_batch_that_would_expand_enormously_stays_compressed(tmp_path: Path, codec: str) -> None:
    data = PartitionProduceData(index=0, records=bomb(codec))
    body = ProduceRequest(acks=1, topic_data=[TopicProduceData(topic_id=bytes(16), partition_data=[data])])
    frame = write_request(body, 13, 1, "producer")[4:]
    path = written(tmp_path / "x", pcap(packets(conversation([Said(True, frame)]))))
    tracemalloc.start()
    try:
        frames, _ = everything(path)
        (message,) = [each for batch in decode_batches(read_frames(path, (PORT,))) for each in batch.to_pylist()]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (frames.num_rows, message["api_key"], message["decode_status"]) == (1, 0, "ok")
    assert peak < UNPACKED_BYTES // 4


def peak_bytes(path: Path, connections: int) -> int:
    syn = [Segment(Flow(), True, 0, 7, 0, SYN, b"")]
    whole = []
    for number in range(connections):
        flow = Flow(f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}")
        whole.append(Packet(1_700_000_000_000_000_000 + number * 1000, link(ip(syn[0]._replace(flow=flow)))))
    path.write_bytes(pcap(whole))
    reassembler = Reassembler(limits=Limits(connections_max=500))
    gc.collect()
    tracemalloc.start()
    for chunk in read_segments(path, chunk_bytes=1 << 15):
        assert list(reassembler.receive(make_runs(chunk))) == []
        reassembler.take_events()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def bytes_per_connection(path: Path) -> float:
    # The first run fills tables that stay. Between the other two no dict grows (at 10,922 and 21,845 entries).
    _, few, many = (peak_bytes(path, count) for count in (100, 12_000, 20_000))
    return (many - few) / 8_000


@soak
def test_one_packet_connections_need_little_memory(tmp_path: Path) -> None:
    # A kept connection takes at least 1,500 bytes, each time. A table of the process may grow in one of the two.
    assert min(bytes_per_connection(tmp_path / "x.pcap") for _ in range(2)) < 700
