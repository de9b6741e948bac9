"""The terminal screen of `mockraft fleet`."""

from __future__ import annotations

import io
import re
import signal
from collections import Counter
from typing import Any

from mockraft import Controller
from mockraft.brokers.fleet.figures import Figures, Histogram
from mockraft.brokers.fleet.plan import Do, ScriptStep, plan
from mockraft.brokers.fleet.summary import Course
from mockraft.cli.fleet.screen import FleetScreen
from rich.console import Console

from .cli import in_a_terminal

DEADLINE_S = 60
RACKS: dict[int, str | None] = dict.fromkeys(range(1, 1001))
STEPS = (ScriptStep(do=Do.KILL, at_s=5, percent=5.0, back_after_s=20), ScriptStep(do=Do.DISCONNECT, at_s=2, over_s=3))
ALL_FOUR_RUN = re.compile(rb" 4 +4 +4 +0 ")
"""Started, registered, unfenced and fenced brokers."""
ACTIONS = plan(RACKS, 1000, STEPS, 1)


def figures(answered: int = 500, **fields: Any) -> Figures:
    latency = Histogram()
    for number in range(answered):
        latency.add(0.001 * (1 + number % 7))
    known = {"brokers": 1000, "started": 1000, "registered": 1000, "unfenced": 950, "fenced": 50}
    return Figures(**{**known, "answered": answered, "latency": latency, **fields})


def drawn(now: Figures, width: int = 110) -> str:
    course = Course()
    course.see(figures(200), 1.0)
    course.see(now, 2.0)
    console = Console(file=io.StringIO(), width=width, height=30, force_terminal=False)
    console.print(FleetScreen("127.0.0.1:9093", 2, ACTIONS, lambda: now, course))
    written = console.file
    assert isinstance(written, io.StringIO)
    return written.getvalue()


def test_the_newest_figures_stand_in_a_table() -> None:
    screen = drawn(figures())
    assert "mockraft fleet  1,000 brokers in 2 processes on 127.0.0.1:9093  up 0:02" in screen
    assert re.search(r"s +started +registered +unfenced +fenced +heartbeats/s +p50 ms +p99 ms +errors", screen)
    assert re.search(r"2 +1,000 +1,000 +950 +50 +300 +4\.\d +7\.\d +0", screen)


def test_next_step_is_shown() -> None:
    assert "in 1 s: disconnect 333\n in 2 s: disconnect 333" in re.sub(r" +\n", "\n", drawn(figures()))


def test_problems_are_shown() -> None:
    trouble: dict[str, Any] = {
        "errors": Counter({"STALE_BROKER_EPOCH": 7}),
        "mistakes": Counter({3: 1}),
        "died": {4: "it is over"},
    }
    screen = drawn(figures(**trouble))
    assert "errors: 7x STALE_BROKER_EPOCH" in screen
    assert "fenced by mistake: 1 brokers" in screen
    assert "died: 1 brokers; 4: it is over" in screen


def test_in_a_terminal_it_is_a_table_and_ctrl_c_ends_it() -> None:
    with Controller.sync() as controller:
        options = ("--brokers", "4", "--bootstrap-controller", controller.bootstrap)
        with in_a_terminal("fleet", *options) as (process, output):
            seen, is_told = b"", False
            for data in output:
                seen += data
                if not is_told and ALL_FOUR_RUN.search(re.sub(rb"\x1b\[[0-9;]*m", b"", seen)):
                    process.send_signal(signal.SIGINT)
                    is_told = True
            assert process.wait(DEADLINE_S) == 0, seen.decode(errors="replace")
    assert b"\x1b[?1049h" in seen, "the alternate screen"
