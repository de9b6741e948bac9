"""Columns go between numpy and Arrow as `pa.array` and `to_numpy` would have them."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from mockraft.spark_replay.arrow_columns import as_arrow, as_numpy, no_rows, texts
from mockraft.spark_replay.schemas import FRAMES, RUNS
from mockraft.spark_replay.streams.slices import Slices

CAPTURE = Path(__file__).parents[1] / "captures" / "controller-4.3.1.pcap"
NUMBERS = np.array([0, 1, 5, 0, 7, 1, 1, 0, 9, 3, 0])
NULLS = NUMBERS == 0


@pytest.mark.parametrize("kind", [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint64(), pa.bool_()])
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


@pytest.mark.parametrize("rows", [[], [0], [1, 2, 4, 7], list(range(8))])
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
