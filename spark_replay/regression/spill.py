"""A table on disk for a session replay: written once, read as often as needed, a batch at a time."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

import pyarrow as pa


class Spill:
    """Record batches of one schema in a temporary Arrow file, deleted at the end of the `with` block."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self._folder = tempfile.TemporaryDirectory(prefix="mockraft-replay-")
        self._path = Path(self._folder.name) / "rows.arrow"
        self._writer = pa.ipc.new_stream(str(self._path), schema)
        self.rows = 0

    def __enter__(self) -> Spill:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._writer.close()
        self._folder.cleanup()

    def write(self, batch: pa.RecordBatch) -> None:
        """Add a batch."""
        self._writer.write_batch(batch)
        self.rows += batch.num_rows

    def written(self) -> None:
        """Finish writing; call it before reading."""
        self._writer.close()

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Iterate over all batches from the first on."""
        with pa.OSFile(str(self._path)) as file, pa.ipc.open_stream(file) as reader:
            yield from reader
