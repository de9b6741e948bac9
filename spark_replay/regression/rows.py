"""Replay results as rows of the tables `schemas.REPLAY_RESULTS` and `schemas.DIFFS`."""

from __future__ import annotations

import json

import pyarrow as pa
from mockraft.spark_replay.regression.captured import Captured
from mockraft.spark_replay.regression.diff import ABSENT, MISSING, NO_ANSWER, Difference
from mockraft.spark_replay.regression.replay import LEFT_OUT, OK, ExchangeResult, Options
from mockraft.spark_replay.schemas import DIFFS, REPLAY_RESULTS
from mockraft.wire.redaction.messages import masked_response

VALUE_CHARS_MAX = 4096
"""Longest value in a row of DIFFS; the complete responses are in REPLAY_RESULTS."""

_OF_DIFFERENCE = ("path", "kind", "expected", "actual", "rule")
OF_EXCHANGE = tuple(name for name in DIFFS.names if name not in _OF_DIFFERENCE)
"""The columns of DIFFS that name the exchange."""

REPLAYED = pa.schema(
    [
        *REPLAY_RESULTS,
        ("differences", pa.list_(pa.struct([DIFFS.field(name) for name in _OF_DIFFERENCE]))),
    ]
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
