"""Sums over replay results: outcomes by API, differences by API and path with their first example."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from mockraft.spark_replay.regression.diff import INDEX_OR_KEY
from mockraft.spark_replay.report.columns import count_rows, cut_texts, integers
from mockraft.spark_replay.report.sketches import LogHistogram, Tally, keep_first
from mockraft.spark_replay.report.traffic import known_api

EXCUSED = "volatile_ok"
"""The kind of a difference excused by a rule."""
_EXAMPLES_MAX = 500
_OUTCOME = ["api_key", "status", "equal", "raw_equal"]
_PLACE = ["api_key", "path", "kind"]
_EXAMPLE = ["session", "number", "conn_id", "incarnation", "request_frame_no", "api_key", "api_version", "path"]
_EXAMPLE += ["kind", "expected", "actual", "rule"]
RESULT_COLUMNS = [*_OUTCOME, "run_id", "session", "mode", "detail", "captured_latency_ns", "latency_ns"]
"""The columns of REPLAY_RESULTS used by `Replayed`."""

Place = tuple[int, str, str]


class Replayed:
    """Sums over REPLAY_RESULTS and DIFFS, whose batches may come in any order."""

    def __init__(self) -> None:
        self.outcomes: Tally[tuple[int, str, bool | None, bool | None]] = Tally()
        self.unanswered: Tally[tuple[int, str, str]] = Tally(200)
        self.sessions: Tally[str] = Tally(1_000)
        self.modes: Tally[str] = Tally(20)
        self.runs: Tally[str] = Tally(20)
        self.captured_ns: dict[int, LogHistogram] = {}
        self.live_ns: dict[int, LogHistogram] = {}
        self.places: Tally[Place] = Tally()
        self.examples: dict[Place, dict[str, Any]] = {}
        self.rules: Tally[str] = Tally()

    def add_results(self, batch: pa.RecordBatch) -> None:
        """Add rows of REPLAY_RESULTS."""
        batch = cut_texts(batch.select(RESULT_COLUMNS), "detail", "session")
        for row in count_rows(batch, _OUTCOME):
            outcome = known_api(row["api_key"]), row["status"], row["equal"], row["raw_equal"]
            self.outcomes.add(outcome, row["rows"])
        for tally, name in ((self.sessions, "session"), (self.modes, "mode"), (self.runs, "run_id")):
            for row in count_rows(batch, [name]):
                tally.add(row[name], row["rows"])
        missed = batch.filter(pc.not_equal(batch.column("status"), "ok"))
        for row in count_rows(missed, ["api_key", "status", "detail"]):
            self.unanswered.add((known_api(row["api_key"]), row["status"], row["detail"] or ""), row["rows"])
        keys = integers(batch, "api_key", -1)
        for histograms, name in ((self.captured_ns, "captured_latency_ns"), (self.live_ns, "latency_ns")):
            there = pc.is_valid(batch.column(name)).to_numpy(zero_copy_only=False)
            values = integers(batch, name)
            for key in np.unique(keys[there]).tolist():
                histograms.setdefault(known_api(key), LogHistogram()).add(values[there & (keys == key)])

    def add_diffs(self, batch: pa.RecordBatch) -> None:
        """Add rows of DIFFS."""
        if not batch.num_rows:
            return
        paths = pc.replace_substring_regex(batch.column("path"), INDEX_OR_KEY, "[]")
        general = batch.set_column(batch.schema.get_field_index("path"), "path", paths)
        for row in count_rows(general, ["rule"]):
            if row["rule"]:
                self.rules.add(row["rule"], row["rows"])
        for row in count_rows(general, _PLACE):
            self.places.add((known_api(row["api_key"]), row["path"], row["kind"]), row["rows"])
        self._examples(batch, paths)

    @property
    def sent(self) -> int:
        """Number of requests sent."""
        return sum(count for (_, status, *_), count in self.outcomes.counts.items() if status != "left_out")

    @property
    def same(self) -> int:
        """Number of responses equal to the captured ones, by the rules."""
        return sum(count for (_, status, equal, _), count in self.outcomes.counts.items() if status == "ok" and equal)

    @property
    def found(self) -> list[tuple[Place, int]]:
        """Return the places of differences that no rule excuses, the most frequent first."""
        return [(place, count) for place, count in self.places.most_common(10_000) if place[2] != EXCUSED]

    def _examples(self, batch: pa.RecordBatch, paths: pa.Array) -> None:
        table = pa.Table.from_batches([batch.select(_EXAMPLE)]).append_column("place", paths)
        table = table.append_column("row", pa.array(range(len(table)), pa.int64()))
        # Only the first row of each place in this batch becomes Python objects.
        keys = ["api_key", "place", "kind", "number"]
        first = table.group_by(keys[:3]).aggregate([("number", "min")]).rename_columns(keys)
        chosen = table.join(first, keys=keys, join_type="inner").combine_chunks()
        for row in chosen.to_pylist():
            place = (known_api(row["api_key"]), row.pop("place"), row["kind"])
            keep_first(self.examples, place, row, ("session", "number"), _EXAMPLES_MAX)
