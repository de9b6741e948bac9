"""Summary of a replay: counts by API, and each kind of difference with its frequency and first example."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from mockraft.spark_replay.regression.diff import (
    ABSENT,
    CHANGED,
    EXTRA,
    MISSING,
    NO_ANSWER,
    Absent,
    Difference,
    any_element,
)
from mockraft.spark_replay.regression.renaming import Renaming
from mockraft.spark_replay.regression.replay import ExchangeResult, Replayed
from mockraft.wire.json_form import Json


class ApiCount(NamedTuple):
    """Outcomes of one API; the median latency is that of live responses, in milliseconds."""

    api: str
    sent: int
    same: int
    different: int
    failed: int
    median_ms: float


class Finding(NamedTuple):
    """One kind of difference: path (array elements as `[]`), both values, count, and the first exchange."""

    api: str
    path: str
    captured: Json | Absent
    live: Json | Absent
    occurrences: int
    first: int


class Report(NamedTuple):
    """The whole summary; `to_json` is the output of `mockraft replay --json`."""

    apis: list[ApiCount]
    findings: list[Finding]
    left_out: Counter[tuple[str, str]]
    renaming: Renaming

    @property
    def sent(self) -> int:
        """Number of requests sent."""
        return sum(each.sent for each in self.apis)

    @property
    def same(self) -> int:
        """Number of responses equal to the captured ones."""
        return sum(each.same for each in self.apis)

    def to_json(self, target: str, session: str) -> dict[str, Json]:
        """Return the report as a JSON tree, as `mockraft spark replay` does; `session` names the capture."""
        return {
            "target": target,
            "sent": self.sent,
            "same": self.same,
            "apis": [
                {
                    "api": each.api,
                    "sent": each.sent,
                    "equal": each.same,
                    "differences": each.different + each.failed,
                    "failed": each.failed,
                    "medianMs": round(each.median_ms, 3),
                }
                for each in self.apis
            ],
            "differences": [
                {
                    "api": each.api,
                    "path": each.path,
                    "kind": EXTRA if each.captured is ABSENT else MISSING if each.live is ABSENT else CHANGED,
                    "expected": _json(each.captured),
                    "actual": _json(each.live),
                    "count": each.occurrences,
                    "first": {"exchange": each.first, "session": session},
                }
                for each in self.findings
            ],
            "leftOut": [{"api": api, "why": why, "count": count} for (api, why), count in self.left_out.items()],
            "bound": {kind: len(pairs) for kind, pairs in self.renaming.pairs.items()},
        }


def report(replayed: Replayed) -> Report:
    """Summarise a replay."""
    by_api: dict[str, list[ExchangeResult]] = {}
    findings: dict[tuple[str, str, str, str], Finding] = {}
    for outcome in replayed.outcomes:
        by_api.setdefault(outcome.api, []).append(outcome)
        found = list(outcome.differences)
        if outcome.failure is not None:
            found = [Difference(NO_ANSWER, MISSING, ABSENT, outcome.failure)]
        for each in found:
            path = any_element(each.path)
            key = outcome.api, path, repr(each.captured), repr(each.live)
            made = Finding(outcome.api, path, each.captured, each.live, 0, outcome.captured.number)
            known = findings.get(key, made)
            findings[key] = known._replace(occurrences=known.occurrences + 1)
    counts = [_count(api, outcomes) for api, outcomes in by_api.items()]
    return Report(
        sorted(counts, key=lambda each: (-each.sent, each.api)),
        sorted(findings.values(), key=lambda each: (-each.occurrences, each.api, each.path)),
        replayed.left_out,
        replayed.renaming,
    )


def _count(api: str, outcomes: list[ExchangeResult]) -> ApiCount:
    latencies_ns = sorted(each.latency_ns for each in outcomes if each.failure is None)
    median_ms = latencies_ns[len(latencies_ns) // 2] / 1e6 if latencies_ns else 0.0
    same = sum(each.is_same for each in outcomes)
    failed = sum(each.failure is not None for each in outcomes)
    return ApiCount(api, len(outcomes), same, len(outcomes) - same - failed, failed, median_ms)


def _json(value: Json | Absent) -> Json:
    return None if isinstance(value, Absent) else value
