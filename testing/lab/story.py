"""The story of a failing trial: as text, and as one HTML page with a timeline."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mockraft.testing import pages
from mockraft.testing.lab.schedule import Schedule
from mockraft.testing.lab.search import FailingSchedule

if TYPE_CHECKING:
    from mockraft.wire.json_form import Tree

OUTPUT_LINES = 15
REQUESTS_SHOWN_MAX = 2_000
_LEAST_WIDTH = 0.25
"""Percent of the timeline for the bar of a request that took no time."""


def as_lines(found: FailingSchedule) -> Iterator[str]:
    """Yield the story in lines: the disturbances of the smallest schedule, then the end of the output."""
    requests = found.outcome.requests
    for index, disturbance in enumerate(found.schedule, 1):
        met = next((each for each in requests if each["matched"] == f"lab-{index}"), None)
        when = "not reached" if met is None else f"+{_seconds(met, requests):.3f} s, connection {met['connection']}"
        yield f"{disturbance}  ({when})"
    yield ""
    yield from [f"| {line}" for line in found.outcome.output.splitlines()[-OUTPUT_LINES:]]


def write_page(found: FailingSchedule, command: str, repeat: str, path: Path) -> None:
    """Write the HTML page; `repeat` is the command that repeats the failure. ModuleNotFoundError without Jinja2."""
    shown = found.outcome.requests[:REQUESTS_SHOWN_MAX]
    length_ms = max((_ms(each, "answeredMs") - _ms(shown[0], "receivedMs") for each in shown), default=0)
    content = {
        "found": found,
        "command": command,
        "repeat": repeat,
        "rows": _rows(shown, length_ms, found.schedule),
        "shown": len(shown),
        "length_s": length_ms / 1_000,
        "output": "\n".join(found.outcome.output.splitlines()[-200:]),
    }
    pages.write_page(path, "lab", "story.html.j2", content)


def _rows(shown: Sequence[Tree], length_ms: int, schedule: Schedule) -> dict[str, list[Tree]]:
    """Return the timeline's bars by who asked; places and widths are percent of its length."""
    texts = {f"lab-{index}": str(each) for index, each in enumerate(schedule, 1)}
    rows: dict[str, list[Tree]] = {}
    for each in shown:
        who = f"broker {each['brokerId']}" if each["brokerId"] is not None else str(each["clientId"] or "client")
        took_ms = _ms(each, "answeredMs") - _ms(each, "receivedMs")
        rows.setdefault(f"{who}, connection {each['connection']}", []).append(
            {
                "left": round(100 * _seconds(each, shown) * 1_000 / max(length_ms, 1), 3),
                "width": round(max(_LEAST_WIDTH, 100 * took_ms / max(length_ms, 1)), 3),
                "at": f"+{_seconds(each, shown):.3f} s",
                "text": f"{each['api']} v{each['apiVersion']} → {_answer(each)}, {took_ms} ms",
                "disturbed": texts.get(str(each["matched"]), ""),
                "error": each["error"],
            }
        )
    return rows


def _answer(request: Tree) -> str:
    return str(request["error"] or request["reason"] or "ok")


def _seconds(request: Tree, requests: Sequence[Tree]) -> float:
    return (_ms(request, "receivedMs") - _ms(requests[0], "receivedMs")) / 1_000


def _ms(request: Tree, name: str) -> int:
    found = request[name]
    assert isinstance(found, int)
    return found
