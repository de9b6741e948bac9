"""Replay one cluster session of any length: exchanges and results are on disk, memory holds a batch of each.

Results are rows of the tables `schemas.REPLAY_RESULTS` and `schemas.DIFFS`.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
from mockraft.spark_replay.regression.captured import Captured, of_batches
from mockraft.spark_replay.regression.diff import ABSENT, MISSING, NO_ANSWER, Difference
from mockraft.spark_replay.regression.replay import LEFT_OUT, OK, ExchangeResult, Live, Options, replay_steps
from mockraft.spark_replay.regression.send_order import survey
from mockraft.spark_replay.regression.targets import Target
from mockraft.spark_replay.schemas import DIFFS, EXCHANGES, REPLAY_RESULTS
from mockraft.wire.redaction.messages import masked_response

VALUE_CHARS_MAX = 4096
"""Longest value in a row of DIFFS; the complete responses are in REPLAY_RESULTS."""

_OF_DIFFERENCE = ("path", "kind", "expected", "actual", "rule")
OF_EXCHANGE = tuple(name for name in DIFFS.names if name not in _OF_DIFFERENCE)
"""The columns of DIFFS that name the exchange."""

REPLAYED = pa.schema(
    [*REPLAY_RESULTS, ("differences", pa.list_(pa.struct([DIFFS.field(name) for name in _OF_DIFFERENCE])))]
)
"""REPLAY_RESULTS with each row's DIFFS nested: a task returns both at once, since an exchange is sent only once."""


def row_of(outcome: ExchangeResult, run_id: str, session: str, options: Options) -> dict[str, object]:
    """Return one row of REPLAYED."""
    captured, shows = outcome.captured, options.show_secrets
    found = [*outcome.differences, *outcome.excused]
    row: dict[str, object] = {
        **{name: getattr(captured, name) for name in captured._fields if name not in ("request", "response")},
        "run_id": run_id,
        "session": session,
        "mode": options.order,
        "sent_ns": outcome.sent_ns or None,
        "recv_ns": outcome.received_ns or None,
        "captured_latency_ns": captured.latency_ns,
        "latency_ns": outcome.latency_ns if outcome.status == OK else None,
        "status": outcome.status,
        "detail": outcome.failure,
        "raw_equal": outcome.response == captured.response if outcome.status == OK else None,
        "equal": outcome.is_same if outcome.status != LEFT_OUT else None,
        "captured_response": captured.response if shows else _hidden(captured.response, captured),
        "live_response": outcome.response if shows else _hidden(outcome.response, captured),
        "differences": [_difference(each) for each in found],
    }
    if outcome.status not in (OK, LEFT_OUT):
        lost = {"path": NO_ANSWER, "kind": MISSING, "expected": "an answer", "actual": outcome.failure}
        row["differences"] = [{**lost, "rule": NO_ANSWER}]
    return row


def _hidden(response: bytes | None, captured: Captured) -> bytes | None:
    """Return a response with asterisks in place of secrets."""
    if response is None:
        return None
    return masked_response(response, captured.api_key, captured.api_version, request_frame=captured.request)


def batch_of(rows: list[dict[str, object]]) -> pa.RecordBatch:
    """Return a batch of REPLAYED."""
    return pa.RecordBatch.from_pylist(rows, schema=REPLAYED)


def split(replayed: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    """Split a batch of REPLAYED into REPLAY_RESULTS and DIFFS."""
    results = replayed.select(REPLAY_RESULTS.names)
    lists = replayed.column("differences")
    rows = replayed.select(list(OF_EXCHANGE)).take(pa.compute.list_parent_indices(lists))
    parts = lists.flatten()
    fields = dict(zip(_OF_DIFFERENCE, parts.flatten(), strict=True))
    columns = [fields[name] if name in fields else rows.column(name) for name in DIFFS.names]
    return results, pa.RecordBatch.from_arrays(columns, schema=DIFFS)


def _difference(difference: Difference) -> dict[str, str | None]:
    return {
        "path": difference.path,
        "kind": difference.kind,
        "expected": text_of(difference.captured),
        "actual": text_of(difference.live),
        "rule": difference.rule,
    }


def text_of(value: object) -> str | None:
    """Return a value as JSON, cut to `VALUE_CHARS_MAX`; None for an absent one."""
    if value is ABSENT:
        return None
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= VALUE_CHARS_MAX else text[: VALUE_CHARS_MAX - 1] + "…"


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


def replayed(exchanges: Iterable[pa.RecordBatch], run: Run, session: str) -> Iterator[pa.RecordBatch]:
    """Yield the results as batches of REPLAYED."""
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
            if len(rows) >= ROWS_AT_ONCE:
                found.write(batch_of(rows))
                rows.clear()

        with run.target.open(known, run.options.order) as address:
            asyncio.run(replay_steps(source, Live(*address), run.options, keep, known))
        if rows:
            found.write(batch_of(rows))
        found.written()
        yield from found.batches()
