"""The tables of docs/stubs.md equal the code."""

import json
from pathlib import Path

import pytest
from mockraft import Stub
from mockraft.server.stubs.actions import known_actions
from mockraft.server.stubs.match import SCOPES
from mockraft.server.stubs.predicates import OPERATORS
from mockraft.server.stubs.triggers import TRIGGERS

PAGE = (Path(__file__).parents[3] / "docs" / "stubs.md").read_text()
IN_PYTHON = {
    "everyTime": "every_time()",
    "once": "once()",
    "times": "times(n)",
    "onCall": "on_call(n)",
    "withProbability": "with_probability(p, seed)",
}


def rows() -> list[str]:
    found = [f"| `{name}` | {summary} |" for name, summary in SCOPES.items()]
    found += [f"| `{operator.name}` | {operator.summary} |" for operator in OPERATORS.values()]
    found += [f"| `{IN_PYTHON[name]}` | `{name}` | {kind.summary} |" for name, kind in TRIGGERS.items()]
    for name, kind in known_actions().items():
        example = f'"{name}"' if kind.example is True else json.dumps({name: kind.example})
        found.append(f"| `{example}` | {kind.summary} |")
    return found


@pytest.mark.parametrize("row", rows())
def test_the_page_has_a_row_for_each_match_operator_trigger_and_action(row: str) -> None:
    assert row in PAGE


def test_every_trigger_and_action_has_a_method_of_that_name() -> None:
    names = {"".join(f"_{c.lower()}" if c.isupper() else c for c in name) for name in (*TRIGGERS, *known_actions())}
    assert {name for name in names if not callable(getattr(Stub, name, None))} == set()
