"""Replay one cluster session: rows in, rows out, whatever its length.

The session's exchanges and results are on disk (`spill`); memory holds a batch of each, the unanswered steps, and the
pairs learnt.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import pyarrow as pa
from mockraft.spark_replay.regression.captured import Captured, of_batches
from mockraft.spark_replay.regression.replay import Options, Outcome, replay_steps
from mockraft.spark_replay.regression.rows import REPLAYED, batch_of, row_of, split
from mockraft.spark_replay.regression.send_order import survey
from mockraft.spark_replay.regression.spill import Spill
from mockraft.spark_replay.regression.targets import Target
from mockraft.spark_replay.schemas import EXCHANGES

ROWS_AT_ONCE = 500


class Run(NamedTuple):
    """Settings shared by all sessions of a replay; `run_id` is in every row."""

    run_id: str
    target: Target
    options: Options = Options()


def replay_session(
    exchanges: Iterable[pa.RecordBatch], run: Run, session: str
) -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch]]:
    """Yield batches of REPLAY_RESULTS, with their DIFFS, for a session's EXCHANGES in the order of sending.

    Raises:
        TargetError: the target cannot be started.
        DisconnectedError: nothing listens there.
    """
    for batch in replayed(exchanges, run, session):
        yield split(batch)


def replayed(
    exchanges: Iterable[pa.RecordBatch],
    run: Run,
    session: str,
    *,
    on_outcome: Callable[[Outcome], None] = lambda _: None,
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

        def keep(outcome: Outcome) -> None:
            rows.append(row_of(outcome, run.run_id, session, run.options.order))
            on_outcome(outcome)
            if len(rows) >= ROWS_AT_ONCE:
                found.write(batch_of(rows))
                rows.clear()

        with run.target.open(known) as (host, port):
            asyncio.run(replay_steps(source, host, port, run.options, keep, known))
        if rows:
            found.write(batch_of(rows))
        found.written()
        yield from found.batches()
