"""The pytest test that a plan becomes, with the state that it begins with in a file beside it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mockraft.twin import twin_state, write_twin

if TYPE_CHECKING:
    from mockraft.double.plan.steps import Step
    from mockraft.twin import History

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


def write_test(
    path: Path, history: History, at: str | None, steps: Sequence[Step], which: str, session_timeout_ms: int
) -> list[Path]:
    """Write a test that fails while the plan is not safe, and its state without secrets; return both paths. OSError."""
    moment = history.moment(at)
    state = path.with_suffix(".checkpoint")
    write_twin(state, twin_state(history, moment), moment.timestamp_ms, show_secrets=False)
    listed = ", ".join(repr({each.kind: each.argument}) for each in steps)
    name = re.sub(r"\W", "_", path.stem if path.stem.startswith("test_") else f"test_{path.stem}")
    source = json.dumps(str(history.source), ensure_ascii=False)[1:-1]
    path.write_text(
        _TEST.format(
            source=source,
            point=moment.point,
            steps=listed,
            name=name,
            which=which,
            session_timeout_ms=session_timeout_ms,
        )
    )
    return [path, state]
