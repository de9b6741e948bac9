"""The verdicts on a batch of frames as Arrow columns; equal verdicts are stored once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from mockraft.spark_replay.decoding.verdicts import Verdict
from mockraft.spark_replay.schemas import MESSAGES

Rows = npt.NDArray[np.int64]

COLUMNS = tuple(name for name in Verdict._fields if name != "body")


class VerdictColumns:
    """One verdict for each row, set in any order; rows with the same verdict can be set together."""

    def __init__(self, rows: int) -> None:
        self._numbers = np.zeros(rows, np.int32)
        self._verdicts: dict[Verdict, int] = {}
        self._bodies: dict[int, str] = {}
        self._body_columns: list[tuple[Rows, pa.Array]] = []

    def put(self, row: int, verdict: Verdict) -> None:
        """Set the verdict on one row, with its body."""
        if verdict.body is not None:
            self._bodies[row] = verdict.body
            verdict = verdict._replace(body=None)
        self._numbers[row] = self._verdicts.setdefault(verdict, len(self._verdicts))

    def put_all(self, rows: Rows, verdict: Verdict, bodies: pa.Array | None = None) -> None:
        """Set the verdict shared by several rows, and their bodies, if any, as a column of the same length."""
        self._numbers[rows] = self._verdicts.setdefault(verdict, len(self._verdicts))
        if bodies is not None:
            self._body_columns.append((rows, bodies))

    def columns(self) -> dict[str, pa.Array]:
        """Return every column of the verdicts, body included."""
        found: dict[str, pa.Array] = {}
        numbers = pa.array(self._numbers)
        for index, name in enumerate(COLUMNS):
            values = [verdict[index] for verdict in self._verdicts]
            found[name] = pa.array(values, MESSAGES.field(name).type).take(numbers)
        found["body"] = self._body_column()
        return found

    def _body_column(self) -> pa.Array:
        single = list(self._bodies)
        columns = [*self._body_columns, (np.array(single, np.int64), pa.array(self._bodies.values(), pa.string()))]
        # Index of each row's body in the concatenated bodies; null without one.
        places = np.full(len(self._numbers), -1, np.int64)
        start = 0
        for rows, bodies in columns:
            places[rows] = np.arange(start, start + len(rows))
            start += len(bodies)
        wanted = pa.array(places, mask=places < 0)
        return pa.concat_arrays([bodies for _, bodies in columns]).take(wanted)
