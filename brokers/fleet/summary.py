"""The course of a fleet's run: one sample a second, and the totals at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from mockraft.brokers.fleet.figures import Figures, Histogram
from mockraft.brokers.fleet.plan import Act, Action

PERCENTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99_9": 0.999, "max": 1.0}


class Sample(NamedTuple):
    """The figures of one moment; rates and latencies (ms, None without heartbeats) are since the previous sample."""

    at_s: float
    started: int
    registered: int
    unfenced: int
    fenced: int
    heartbeats_per_s: float
    p50_ms: float | None
    p99_ms: float | None
    errors: int
    mistakes: int


@dataclass(slots=True)
class Course:
    """The samples of a run so far; call :meth:`see` from time to time."""

    samples: list[Sample] = field(default_factory=list)
    memory_bytes_per_broker: float | None = None
    _before: Figures = field(default_factory=Figures)
    _at_unfenced: Figures | None = None
    _at_unfenced_s: float = 0.0
    _last_s: float = 0.0

    def see(self, figures: Figures, at_s: float) -> Sample:
        """Record the current figures, so many seconds after the start."""
        latency = figures.latency.minus(self._before.latency)
        passed_s = max(at_s - (self.samples[-1].at_s if self.samples else 0.0), 1e-9)
        sample = Sample(
            round(at_s, 3),
            figures.started,
            figures.registered,
            figures.unfenced,
            figures.fenced,
            round((figures.answered - self._before.answered) / passed_s, 1),
            _rounded(latency.percentile_ms(0.5)),
            _rounded(latency.percentile_ms(0.99)),
            figures.errors.total(),
            figures.mistakes.total(),
        )
        self.samples.append(sample)
        self._before, self._last_s = figures, at_s
        if self._at_unfenced is None and figures.unfenced_s is not None:
            self._at_unfenced, self._at_unfenced_s = figures, at_s
        if figures.running == figures.brokers > 0:
            self.memory_bytes_per_broker = figures.memory_bytes / figures.brokers
        return sample

    def summary(self, figures: Figures, lost: list[str]) -> dict[str, Any]:
        """Return the run's JSON form; `figures` are the last ones, after the controlled shutdown."""
        steady = None
        if self._at_unfenced is not None:
            since_s = max(self._last_s - self._at_unfenced_s, 1e-9)
            steady = _heartbeats(
                self._before.latency.minus(self._at_unfenced.latency),
                (self._before.answered - self._at_unfenced.answered) / since_s,
            )
        per_broker = self.memory_bytes_per_broker
        joining = (self._at_unfenced or self._before).latency
        return {
            "brokers": figures.brokers,
            "went_wrong": bool(figures.mistakes or figures.died or lost or figures.unfenced_s is None),
            "all_registered_after_s": _rounded(figures.registered_s),
            "all_unfenced_after_s": _rounded(figures.unfenced_s),
            "heartbeats": _heartbeats(figures.latency, figures.answered / max(self._last_s, 1e-9)),
            "heartbeats_until_all_were_unfenced": _latencies(joining),
            "heartbeats_once_all_were_unfenced": steady,
            "heartbeats_of_the_shutdown": _latencies(figures.latency.minus(self._before.latency)),
            "errors": dict(figures.errors),
            "fenced_by_mistake": dict(figures.mistakes),
            "died": figures.died,
            "lost_processes": lost,
            "memory_bytes_per_broker": None if per_broker is None else round(per_broker),
            "cpu_s": round(figures.cpu_s, 2),
            "samples": [sample._asdict() for sample in self.samples],
        }


def done_to(actions: Iterable[Action]) -> list[dict[str, Any]]:
    """Return the number of brokers per action and second, without the starts of the ramp."""
    counts: Counter[tuple[int, str]] = Counter()
    seen: set[int] = set()
    for action in actions:
        if action.act is Act.START and action.broker_id not in seen:
            seen.add(action.broker_id)
        else:
            counts[action.at_ms // 1000, action.act.value] += 1
    return [{"at_s": at_s, "act": act, "brokers": count} for (at_s, act), count in sorted(counts.items())]


def _heartbeats(latency: Histogram, per_s: float) -> dict[str, Any]:
    return {"per_s": round(per_s, 1), **_latencies(latency)}


def _latencies(latency: Histogram) -> dict[str, Any]:
    return {
        "answered": latency.total,
        "latency_ms": {name: _rounded(latency.percentile_ms(share)) for name, share in PERCENTILES.items()},
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 2)
