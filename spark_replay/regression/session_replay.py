"""Replay one cluster session of any length: exchanges and results are on disk, memory holds a batch of each."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
from mockraft.spark_replay.regression.captured import Captured, of_batches
from mockraft.spark_replay.regression.replay import ExchangeResult, Live, Options, replay_steps
from mockraft.spark_replay.regression.rows import REPLAYED, batch_of, row_of, split
from mockraft.spark_replay.regression.send_order import survey
from mockraft.spark_replay.regression.targets import Target
from mockraft.spark_replay.schemas import EXCHANGES

ROWS_AT_ONCE = 500


class Run(NamedTuple):
    """Settings shared by all sessions of a replay; `run_id` is in every row."""

    run_id: str
    target: Target
    options: Options = Options()


class Spill:
    """Record batches of one schema in a temporary Arrow file, which the end of the `with` block deletes.

    The file is written once, and then read as often as needed, a batch at a time.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="mockraft-replay-")
        self._path = Path(self._folder.name) / "rows.arrow"
        self._writer = pa.ipc.new_stream(str(self._path), schema)

    def __enter__(self) -> Spill:
        return self

    def __exit__(self, *_: object) -> None:
        self._writer.close()
        self._folder.cleanup()

    def write(self, batch: pa.RecordBatch) -> None:
        """Add a batch."""
        self._writer.write_batch(batch)

    def written(self) -> None:
        """Finish writing; call it before reading."""
        self._writer.close()

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield all batches from the first on."""
        with pa.OSFile(str(self._path)) as file, pa.ipc.open_stream(file) as reader:
            yield from reader


def replay_session(
    exchanges: Iterable[pa.RecordBatch], run: Run, session: str
) -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch]]:
    """Yield batches of REPLAY_RESULTS, with their DIFFS, for a session's EXCHANGES in the order of sending.

    Raises TargetError if the target cannot be started, and DisconnectedError if nothing listens there.
    """
    for batch in replayed(exchanges, run, session):
        yield split(batch)


def replayed(
    exchanges: Iterable[pa.RecordBatch],
    run: Run,
    session: str,
    *,
    on_outcome: Callable[[ExchangeResult], None] = lambda _: None,
) -> Iterator[pa.RecordBatch]:
    """Yield the results as batches of `rows.REPLAYED`."""
    with Spill(EXCHANGES) as kept, Spill(REPLAYED) as found:
        for batch in exchanges:
            kept.write(batch.select(EXCHANGES.names).cast(EXCHANGES))
        kept.written()

        def source() -> Iterator[Captured]:
            return of_batches(kept.batches())

        known = survey(source(), run.options.kept)
        rows: list[dict[str, object]] = []

        def keep(outcome: ExchangeResult) -> None:
            rows.append(row_of(outcome, run.run_id, session, run.options))
            on_outcome(outcome)
            if len(rows) >= ROWS_AT_ONCE:
                found.write(batch_of(rows))
                rows.clear()

        with run.target.open(known, run.options.order) as address:
            asyncio.run(replay_steps(source, Live(*address), run.options, keep, known))
        if rows:
            found.write(batch_of(rows))
        found.written()
        yield from found.batches()
