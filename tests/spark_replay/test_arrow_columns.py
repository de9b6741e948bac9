"""Columns go between numpy and Arrow as `pa.array` and `to_numpy` would have them."""

import gzip
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from mockraft.spark_replay.arrow_columns import as_arrow, as_numpy, no_rows, texts
from mockraft.spark_replay.formats import CaptureError
from mockraft.spark_replay.frames import read_frames
from mockraft.spark_replay.schemas import FILE_EVENTS, FRAMES, PACKETS, RUNS
from mockraft.spark_replay.spark.options import SourceOptions
from mockraft.spark_replay.spark.partition_reading import SCHEMAS, Predicate, new_reassembler, read_partition, splits_of
from mockraft.spark_replay.streams.slices import Slices

from ..budgets import sample
from ..rows import each_row
from .packetiser import PORT, Flow, Said, conversation, exchanges, packets, request
from .ring_files import damaged, ring_files
from .streams.reassembled import in_order, written

CAPTURE = Path(__file__).parents[1] / "captures" / "controller-4.3.1.pcap"
NUMBERS = np.array([0, 1, 5, 0, 7, 1, 1, 0, 9, 3, 0])
NULLS = NUMBERS == 0


@each_row("kind", [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint64(), pa.bool_()])
def test_a_column_of_numpy_is_the_same_in_arrow_with_and_without_nulls_and_back(kind: pa.DataType) -> None:
    column = NUMBERS.astype(str(kind))
    assert as_arrow(column, kind).equals(pa.array(column, kind))
    assert as_arrow(column, kind, NULLS).equals(pa.array(column, kind, mask=NULLS))
    assert as_numpy(as_arrow(column, kind).slice(3, 6)).tolist() == column[3:9].tolist()
    assert len(as_numpy(as_arrow(column[:0], kind))) == 0


def test_texts_of_any_script_are_a_column_of_arrow() -> None:
    values = ["", "10.0.0.1", "контроллер", "::1"]
    assert texts(values).equals(pa.array(values, pa.string()))


def test_a_batch_without_rows_has_the_columns() -> None:
    assert no_rows(FRAMES).schema == FRAMES
    assert no_rows(RUNS).to_pylist() == []


@each_row("rows", [[], [0], [1, 2, 4, 7], list(range(8))])
def test_slices_of_several_buffers_keep_their_bytes(rows: list[int]) -> None:
    data = np.arange(100, dtype=np.uint8)
    at, size = np.array([0, 10, 95, 100]), np.array([10, 2, 5, 30])
    is_null = np.array([False, False, False, True])
    wanted = [None if null else bytes(data[a : a + s]) for a, s, null in zip(at, size, is_null, strict=True)]
    of_much = Slices.of(data, at, size, is_null)
    of_little = Slices.of(data[:12], at[:2], size[:2], is_null[:2])
    both = Slices.concatenated([of_much, of_little, of_little])
    expected = wanted + wanted[:2] * 2
    assert both.nbytes == sum(len(each or b"") for each in expected)
    assert both.take(np.array(rows, np.int64)).to_arrow().to_pylist() == [expected[row] for row in rows]


def test_reading_frames_does_not_import_pandas() -> None:
    program = (
        "import sys; from mockraft.spark_replay.frames import read_frames; "
        f"print(sum(batch.num_rows for batch in read_frames({str(CAPTURE)!r}, [19093])), 'pandas' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1726", "False"]


CONTROLLER = Path(__file__).parents[1] / "captures" / "controller-4.3.1.pcap"
BROKERS = Path(__file__).parents[1] / "captures" / "brokers-4.3.1.pcap"
_PLACES = {"packet_first", "packet_last"}


def read_level(paths: Path | list[Path], *predicates: Predicate, **options: str) -> pa.Table:
    """All splits of files at a level."""
    given = SourceOptions.read(options)
    files = paths if isinstance(paths, list) else [paths]
    splits = [split for path in files for split in splits_of(str(path), given)]
    return pa.Table.from_batches(
        [batch for split in splits for batch in read_partition(split, given, predicates)], schema=SCHEMAS[given.level]
    )


def reassembled(paths: Path | list[Path], rows: int = 7, **options: str) -> list[dict[str, Any]]:
    """Frames of runs that are shuffled and sorted as on Spark, in one partition."""
    runs = read_level(paths, **options)
    order = [("conn_id", "ascending"), ("first_ts_ns", "ascending"), ("file", "ascending")]
    marks = [("file_offset", "ascending"), ("syn", "descending"), ("fin", "ascending"), ("rst", "ascending")]
    shuffled = runs.take(pc.sort_indices(pc.random(runs.num_rows, initializer=1)))
    reassembler = new_reassembler(SourceOptions.read(options), sorted_by_connection=True)
    found = []
    for batch in shuffled.sort_by(order + marks).combine_chunks().to_batches(max_chunksize=rows):
        found += list(reassembler.receive(batch))
    found += list(reassembler.finish())
    return in_order(pa.Table.from_batches(found, schema=FRAMES))


def alone(path: Path, *ports: int, **options: Any) -> list[dict[str, Any]]:
    return in_order(pa.Table.from_batches(list(read_frames(path, ports, **options)), schema=FRAMES))


def rows_of(table: pa.Table) -> Counter[str]:
    return Counter(str(row) for row in table.to_pylist())


@each_row(
    ("split_bytes", "chunk_bytes", "index"),
    [("1m", "8m", "auto"), ("300k", "50k", "off"), ("64k", "1m", "exact"), ("40k", "5k", "auto")],
)
def test_any_splits_and_chunks_give_the_frames_of_one_machine(split_bytes: str, chunk_bytes: str, index: str) -> None:
    options: dict[str, Any] = {"splitBytes": split_bytes, "chunkBytes": chunk_bytes, "splitIndex": index}
    assert len(splits_of(str(CONTROLLER), SourceOptions.read(options))) >= {"1m": 1, "300k": 2}.get(split_bytes, 10)
    assert reassembled(CONTROLLER, ports="19093", **options) == alone(CONTROLLER, 19093)
    assert reassembled(BROKERS, **options) == alone(BROKERS)


@each_row("chunk_bytes", ["8m", "20k"])
def test_connections_go_on_over_the_files_of_a_ring_buffer(tmp_path: Path, chunk_bytes: str) -> None:
    files = ring_files(CONTROLLER, tmp_path, 6)
    found = reassembled(files, ports="19093", chunkBytes=chunk_bytes)
    whole = alone(CONTROLLER, 19093)
    assert [{k: v for k, v in row.items() if k not in _PLACES} for row in found] == [
        {k: v for k, v in row.items() if k not in _PLACES} for row in whole
    ]
    by_file = read_level(files, level="frames", ports="19093")
    assert by_file.num_rows < len(whole)


@each_row("packed", ["gzip", "zstd"])
def test_compressed_captures_are_one_split_with_the_same_frames(tmp_path: Path, packed: str) -> None:
    path = tmp_path / f"x.pcap.{packed}"
    data = CONTROLLER.read_bytes()
    path.write_bytes(gzip.compress(data, 1) if packed == "gzip" else pa.compress(data, codec="zstd", asbytes=True))
    assert len(splits_of(str(path), SourceOptions.read({"splitBytes": "50k"}))) == 1
    assert reassembled(path, ports="19093", splitBytes="50k") == alone(CONTROLLER, 19093)


FILTERS = [
    ("packets", "sport", "=", 19192, "<"),
    ("packets", "dport", "in", (19192, 7), "<"),
    ("packets", "ts_ns", ">=", 1_795_166_150_000_000_000, "<"),
    ("packets", "ts_ns", "<", 1_795_166_150_000_000_000, "<"),
    ("packets", "src", "=", "10.0.0.1", "<"),
    ("packets", "payload_len", ">", 1000, "="),
    ("runs", "server_port", "=", 19292, "<"),
    ("runs", "client", "=", "127.0.0.1", "="),
    ("runs", "file", "=", "elsewhere.pcap", "<"),
    ("frames", "client_port", "<=", 40_000, "="),
    ("frames", "server_port", "in", (19292,), "<"),
    ("frames", "api_key", "=", 3, "="),
]


@pytest.mark.parametrize(("level", "column", "operator", "value", "parsed"), FILTERS)
def test_pushed_filter_gives_same_rows_as_later_filter_and_parses_less(
    monkeypatch: pytest.MonkeyPatch, level: str, column: str, operator: str, value: Any, parsed: str
) -> None:
    from mockraft.spark_replay.spark import partition_reading

    counts: list[int] = []

    def counted(make: Callable[..., Any]) -> Callable[..., Any]:
        def counting(segments: Any, *more: Any) -> Any:
            counts.append(len(segments))
            return make(segments, *more)

        return counting

    for name in ("packets", "make_runs"):
        monkeypatch.setattr(partition_reading, name, counted(getattr(partition_reading, name)))
    everything = read_level(BROKERS, level=level, splitBytes="200k")
    of_all, counts[:] = sum(counts), []
    predicate = Predicate(column, operator, value)
    found = read_level(BROKERS, predicate, level=level, splitBytes="200k")
    masks = [predicate.mask(batch) for batch in everything.to_batches()]
    later = everything.filter(pa.chunked_array(masks, pa.bool_()))
    # At level runs this column is the first packet's that was kept of a chunk: what is sorted by, whatever it is.
    unsorted = [name for name in found.schema.names if (level, name) != ("runs", "first_ts_ns")]
    assert rows_of(found.select(unsorted)) == rows_of(later.select(unsorted))
    assert sum(counts) < of_all if parsed == "<" else sum(counts) == of_all


def test_each_level_has_its_columns() -> None:
    for level, schema in {"runs": RUNS, "packets": PACKETS, "frames": FRAMES, "file_events": FILE_EVENTS}.items():
        assert read_level(CONTROLLER, level=level).schema.equals(schema)
    assert read_level(CONTROLLER, level="packets", splitBytes="90k").num_rows == 4727


def test_times_are_from_here_on_and_up_to_there(tmp_path: Path) -> None:
    start = 1_700_000_000_000_000_000
    path = written(tmp_path / "x.pcap", conversation(exchanges(9), start_ns=start))
    times = read_level(path, level="packets")["ts_ns"].to_pylist()
    low, high = times[4], times[10]
    found = read_level(path, level="packets", timeFrom=str(low), timeTo=str(high))["ts_ns"].to_pylist()
    assert found == [each for each in times if low <= each < high]
    early = read_level(path, level="runs", timeTo=str(high))
    assert max(max(each) for each in early["seg_ts_ns"].to_pylist()) < high
    assert 0 < read_level(path, level="frames", timeTo=str(high)).num_rows < 9


def test_clients_are_those_of_the_connection(tmp_path: Path) -> None:
    segments = [each for host in ("10.0.0.7", "10.0.0.8") for each in conversation(exchanges(3), Flow(host))]
    path = written(tmp_path / "x.pcap", segments)
    for level, column in (("packets", "src"), ("runs", "client"), ("frames", "client")):
        some = read_level(path, level=level, clients="10.0.0.8, 10.0.0.9")
        assert "10.0.0.7" not in some[column].to_pylist()
        assert 2 * some.num_rows == read_level(path, level=level).num_rows > 0
    assert {row["client"] for row in reassembled(path, clients="10.0.0.7")} == {"10.0.0.7"}


def test_options_reach_reassembler_and_parser(tmp_path: Path) -> None:
    said = [request(number, bytes(900)) for number in range(8)]
    segments = conversation(said)
    path = written(tmp_path / "gap.pcap", segments[:4] + segments[5:])
    ports = str(PORT)
    assert len(reassembled(path, ports=ports)) == 7
    assert reassembled(path, ports=ports, maxFrameBytes="500") == []
    assert read_level(path, level="frames", ports=ports, apiKeys="Produce").num_rows == 0
    assert read_level(path, level="frames", ports=ports, includeBytes="false")["frame"].null_count == 7
    assert read_level(path, level="packets", linktype="101").num_rows == 0
    assert read_level(path, level="packets", linktype="1").num_rows == len(segments) - 1


@each_row("level", ["runs", "packets", "frames", "file_events"])
def test_damage_is_an_error_with_offset_or_skipped(tmp_path: Path, level: str) -> None:
    path = damaged(CONTROLLER, tmp_path / "x.pcap", 300_000, 400)
    with pytest.raises(CaptureError, match=rf"{path}: .*\(offset 299\d+|300000\)"):
        read_level(path, level=level)
    intact = read_level(CONTROLLER, level=level, splitBytes="100k")
    for on_error, result in (("quarantine", 1), ("skip", 0)):
        found = read_level(path, level=level, splitBytes="100k", onError=on_error)
        if level == "file_events":
            assert found["kind"].to_pylist().count("corrupt") == result
        else:
            assert abs(found.num_rows - intact.num_rows) < 0.1 * intact.num_rows


@each_row("split_bytes", sample(["30k", "100k", "271k"], 1))
def test_splits_of_damaged_file_keep_the_same_packets(tmp_path: Path, split_bytes: str) -> None:
    def kept(path: Path, split_bytes: str) -> Counter[str]:
        found = read_level(path, level="packets", splitBytes=split_bytes, onError="skip")
        return rows_of(found.drop_columns(["packet_no", "file"]))

    intact = kept(CONTROLLER, "1g")
    for at in (100_000, 200_011, 542_000):
        path = damaged(CONTROLLER, tmp_path / "x.pcap", at, 3_000)
        whole, split = kept(path, "1g"), kept(path, split_bytes)
        # Of the record that the damage starts in the header is whole, and the payload is not.
        assert (split - intact).total() <= 1
        assert whole <= split
        assert whole.total() > 0.8 * intact.total()


@each_row("level", ["runs", "packets", "frames", "file_events"])
def test_invalid_capture_is_an_error_or_a_row(tmp_path: Path, level: str) -> None:
    path = tmp_path / "x.pcap"
    path.write_bytes(b"GET / HTTP/1.1")
    with pytest.raises(CaptureError, match=f"{path}: not a pcap"):
        read_level(path, level=level)
    kinds = read_level(path, level=level, onError="quarantine").to_pylist()
    assert [row["kind"] for row in kinds] == (["quarantined"] if level == "file_events" else [])
    assert read_level(path, level=level, onError="skip").num_rows == 0


def test_non_tcp_counts_add_up_over_splits(tmp_path: Path) -> None:
    segments = packets(conversation(exchanges(400)))
    from .capture_bytes import pcap

    listed = [each._replace(data=each.data[:12] + b"\x08\x06" + each.data[14:]) for each in segments[::3]]
    path = tmp_path / "x.pcap"
    path.write_bytes(pcap([*segments, *listed]))
    for split_bytes in ("1g", "10k"):
        rows = read_level(path, level="file_events", splitBytes=split_bytes).to_pylist()
        assert sum(row["count"] for row in rows) == len(listed)
        assert {row["kind"] for row in rows} == {"not_tcp"}


def test_responses_and_requests_come_from_their_sides(tmp_path: Path) -> None:
    said = exchanges(5)
    path = written(tmp_path / "x.pcap", conversation(said))
    assert Counter(Said(not row["is_response"], row["frame"]) for row in reassembled(path)) == Counter(said)


def test_planning_imports_neither_pandas_nor_spark() -> None:
    program = (
        "import sys, mockraft.spark_replay.spark.partition_reading\n"
        "print([each for each in ('pandas', 'pyspark') if each in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout == "[]\n"
