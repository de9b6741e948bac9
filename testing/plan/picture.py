"""The picture of a plan: an HTML page with what partitions lacked over virtual time, and the steps."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from mockraft.testing import pages
from mockraft.testing.plan.availability import Availability

if TYPE_CHECKING:
    from mockraft.testing.plan.outcome import PlanOutcome
    from mockraft.wire.json_form import Tree

_MEASURES = (("offline", "bad"), ("under min ISR", "warn"), ("under-replicated", "less"))
_NAMES_SHOWN = 5
_TICKS = 4


class _Bar(NamedTuple):
    """Partitions that lack something from one time to another, in seconds."""

    start: float
    end: float
    lacking: int
    text: str


def write_page(outcome: PlanOutcome, source: str, path: Path) -> None:
    """Write the page; `source` says of what state. OSError; ModuleNotFoundError without Jinja2."""
    length = sum(step.lasted for step in outcome.steps) or 1
    steps, began = [], 0.0
    for number, step in enumerate(outcome.steps, start=1):
        place = {"number": number, "left": 100 * began / length, "width": 100 * step.lasted / length}
        steps.append({"step": step, "began": _time(began), **place})
        began += step.lasted
    content = {
        "outcome": outcome,
        "source": source,
        "steps": steps,
        "measures": _measures(outcome, length),
        "ticks": [_time(length * number / _TICKS) for number in range(_TICKS + 1)],
    }
    pages.write_page(path, "plan", "picture.html.j2", content)


def _measures(outcome: PlanOutcome, length: float) -> list[Tree]:
    """Return the bars of each measure: one for each time in which the same partitions lacked it."""
    moments, began = [(0.0, outcome.before)], 0.0
    for step in outcome.steps:
        moments += [(began + at, found) for at, found in step.changes]
        began += step.lasted
    found: list[Tree] = []
    for index, (name, kind) in enumerate(_MEASURES):
        most = max(len(each[index]) for _, each in moments)
        bars: list[Tree] = [
            {
                "left": 100 * bar.start / length,
                "width": 100 * (bar.end - bar.start) / length,
                "height": 100 * bar.lacking / most,
                "count": bar.lacking,
                "text": bar.text,
            }
            for bar in _bars(moments, index, length)
        ]
        found.append({"name": name, "kind": kind, "most": most, "bars": bars})
    return found


def _bars(moments: list[tuple[float, Availability]], index: int, end: float) -> list[_Bar]:
    bars: list[_Bar] = []
    names: frozenset[str] = frozenset()
    ends = [at for at, _ in moments[1:]] + [end]
    for (at, found), until in zip(moments, ends, strict=True):
        if bars and found[index] == names and names:
            bars[-1] = bars[-1]._replace(end=until)
        elif found[index]:
            shown = ", ".join(sorted(found[index])[:_NAMES_SHOWN])
            more = f" and {len(found[index]) - _NAMES_SHOWN} more" if len(found[index]) > _NAMES_SHOWN else ""
            bars.append(_Bar(at, until, len(found[index]), f"from {_time(at)}: {shown}{more}"))
        names = found[index]
    return bars


def _time(seconds: float) -> str:
    whole = round(seconds)
    if whole < 120:
        return f"{whole} s"
    return f"{whole // 60}:{whole % 60:02} min" if whole < 7200 else f"{whole // 3600}:{whole % 3600 // 60:02} h"
