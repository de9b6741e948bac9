"""Scripts as files: their fields, and the errors for invalid ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from mockraft.brokers.fleet.script import Do, ScriptError, Step, read_script, steps_of

TREE = {
    "steps": [
        {"at_s": 20, "do": "kill", "percent": 5, "back_after_s": 30, "over_s": 2.5},
        {"at_s": 40, "do": "rolling-restart", "racks": ["a"], "at_once": 5, "every_s": 2},
        {"do": "fail-log-dir", "brokers": [1, 2]},
        {"do": "disconnect"},
        {"do": "freeze", "count": 3},
    ]
}
TOML = """
[[steps]]
at_s = 20
do = "kill"
percent = 5
back_after_s = 30
over_s = 2.5
"""


def test_a_script_is_read() -> None:
    assert steps_of(TREE) == (
        Step(do=Do.KILL, at_s=20.0, percent=5.0, back_after_s=30.0, over_s=2.5),
        Step(do=Do.ROLLING_RESTART, at_s=40.0, racks=("a",), at_once=5, every_s=2.0, back_after_s=1.0),
        Step(do=Do.FAIL_LOG_DIR, brokers=(1, 2)),
        Step(do=Do.DISCONNECT),
        Step(do=Do.FREEZE, count=3),
    )


def test_a_file_is_json_or_toml(tmp_path: Path) -> None:
    (tmp_path / "script.json").write_text(json.dumps(TREE))
    (tmp_path / "script.toml").write_text(TOML)
    assert read_script(tmp_path / "script.json") == steps_of(TREE)
    assert read_script(tmp_path / "script.toml") == steps_of(TREE)[:1]


@pytest.mark.parametrize(
    ("tree", "said"),
    [
        ([], 'a script is one object with one list, {"steps": […]}'),
        ({"steps": {}}, 'a script is one object with one list, {"steps": […]}'),
        ({"steps": [], "more": 1}, 'a script is one object with one list, {"steps": […]}'),
        ({"steps": [1]}, "steps[0] is no object"),
        (
            {"steps": [{"at_s": 1}]},
            "steps[0].do is null; it can be kill, stop, rolling-restart, freeze",
        ),
        ({"steps": [{"do": "explode"}]}, 'steps[0].do is "explode"; it can be kill'),
        ({"steps": [{"do": ["kill"]}]}, 'steps[0].do is ["kill"]; it can be kill'),
        (
            {"steps": [{"do": "kill"}, {"do": "kill", "at_once": 1}]},
            "steps[1].at_once is not for kill; that takes ",
        ),
        ({"steps": [{"do": "kill", "count": 1, "percent": 1}]}, "steps[0] has count and percent; give one of them"),
        ({"steps": [{"do": "kill", "percent": 101}]}, "steps[0].percent is at most 100"),
        ({"steps": [{"do": "kill", "percent": True}]}, "steps[0].percent is a number from 0 on"),
        ({"steps": [{"do": "kill", "at_s": -1}]}, "steps[0].at_s is a number from 0 on"),
        ({"steps": [{"do": "kill", "at_s": float("inf")}]}, "steps[0].at_s is a number from 0 on"),
        ({"steps": [{"do": "kill", "count": 0}]}, "steps[0].count is a whole number from 1 on"),
        ({"steps": [{"do": "kill", "brokers": []}]}, "steps[0].brokers is a list of broker ids"),
        ({"steps": [{"do": "kill", "brokers": [True]}]}, "steps[0].brokers is a list of broker ids"),
        ({"steps": [{"do": "kill", "racks": "a"}]}, "steps[0].racks is a list of rack names"),
    ],
)
def test_invalid_script_is_refused_with_its_position(tree: Any, said: str) -> None:
    with pytest.raises(ScriptError) as refused:
        steps_of(tree)
    assert str(refused.value).startswith(said)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("s.json", b"{", "s.json is no JSON: Expecting property name"),
        ("s.json", b"\xff", "s.json is no JSON: 'utf-8' codec"),
        ("s.json", b"[" * 100_000, "s.json is no JSON: "),
        ("s.toml", b"steps = ", "s.toml is no TOML: "),
        ("s.json", b'{"steps": [{"do": 1}]}', "s.json: steps[0].do is 1"),
    ],
)
def test_a_bad_file_is_named(tmp_path: Path, name: str, content: bytes, said: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ScriptError) as refused:
        read_script(tmp_path / name)
    assert str(refused.value).startswith(f"{tmp_path}/{said}")
