"""The test that a plan becomes, for pytest or JUnit, with the state that it begins with in a file."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mockraft.twin import twin_state, write_twin
from mockraft.wire.printable import printable

if TYPE_CHECKING:
    from mockraft.testing.plan.steps import Step
    from mockraft.twin.history import History, Moment

_TEST = """\
\"""Written by `mockraft twin plan` from {source}, {point}.\"""

from pathlib import Path

from mockraft import Controller

SOURCE = Path(__file__).with_suffix(".checkpoint")
STEPS = [{steps}]


def {name}() -> None:
    options = {{"clock": "virtual", "twin_brokers": "{which}", "session_timeout_ms": {session_timeout_ms}}}
    with Controller.sync(twin_of=SOURCE, **options) as twin:
        outcome = twin.plan(STEPS)
    assert outcome.is_safe, str(outcome)
"""


_JUNIT = """\
{package}import io.github.mockraft.TwinPlan;
import org.junit.jupiter.api.Test;

/** Written by {{@code mockraft twin plan}} from {about}. */
class {name} {{
    @Test
    void thePlanIsSafe() throws Exception {{
        TwinPlan.on({name}.class.getResource("{name}.checkpoint"){options}).assertSafe(\"""
                {steps}
                \""");
    }}
}}
"""

SESSION_TIMEOUT_MS = 9_000
"""Default of `mockraft twin plan`."""

_JAVA_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SOURCES, _RESOURCES = ("src", "test", "java"), ("src", "test", "resources")


def _quoted(path: Path) -> str:
    """Return a path as it may be within a text or comment: its quotes, backslashes and line breaks are escaped."""
    return printable(json.dumps(str(path), ensure_ascii=False))[1:-1]


def _write_junit(
    path: Path, history: History, moment: Moment, steps: Sequence[Step], which: str, session_timeout_ms: int
) -> list[Path]:
    """Write a JUnit test; its state is a resource, in Maven's folder for them if the test is in that for sources."""
    name = path.stem
    about = f"{_quoted(history.source)}, {moment.point}"
    if not _JAVA_NAME.fullmatch(name):
        raise ValueError(f"{path.name}: {name} is no name for a class")
    parts, package, state = path.absolute().parent.parts, "", path.with_suffix(".checkpoint")
    starts = [n for n in range(len(parts)) if parts[n : n + 3] == _SOURCES]
    if starts:
        inside = parts[starts[-1] + 3 :]
        if wrong := next((part for part in inside if not _JAVA_NAME.fullmatch(part)), None):
            raise ValueError(f"{path}: {wrong} is no name for a package")
        package = f"package {'.'.join(inside)};\n\n" if inside else ""
        state = Path(*parts[: starts[-1]], *_RESOURCES, *inside, state.name)
    options = ["--all"] * (which == "all")
    if session_timeout_ms != SESSION_TIMEOUT_MS:
        options += ["--session-timeout-ms", str(session_timeout_ms)]
    text = _JUNIT.format(
        package=package,
        # A backslash may begin a Unicode escape, even in a comment.
        about=about.replace("\\", "/").replace("*/", "* /"),
        name=name,
        options="".join(f', "{each}"' for each in options),
        steps=json.dumps([{each.kind: each.argument} for each in steps]).replace("\\", "\\\\"),
    )
    for each in (path, state):
        each.parent.mkdir(parents=True, exist_ok=True)
    write_twin(state, twin_state(history, moment), moment.timestamp_ms, show_secrets=False)
    path.write_text(text, encoding="utf-8")
    state.chmod(path.stat().st_mode)
    return [path, state]


def write_test(
    path: Path, history: History, moment: Moment, steps: Sequence[Step], which: str, session_timeout_ms: int
) -> list[Path]:
    """Write a test that fails while the plan is not safe, and its state without secrets; return both paths. OSError.

    A `.java` file is a JUnit test; ValueError if no class can have its name.
    """
    if path.suffix == ".java":
        return _write_junit(path, history, moment, steps, which, session_timeout_ms)
    state = path.with_suffix(".checkpoint")
    write_twin(state, twin_state(history, moment), moment.timestamp_ms, show_secrets=False)
    listed = ", ".join(repr({each.kind: each.argument}) for each in steps)
    name = re.sub(r"\W", "_", path.stem if path.stem.startswith("test_") else f"test_{path.stem}")
    text = _TEST.format(
        source=_quoted(history.source),
        point=moment.point,
        steps=listed,
        name=name,
        which=which,
        session_timeout_ms=session_timeout_ms,
    )
    path.write_text(text, encoding="utf-8")
    # It has no secrets, and is committed with the test.
    state.chmod(path.stat().st_mode)
    return [path, state]
