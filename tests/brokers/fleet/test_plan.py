"""Scripts of a fleet, the plan made of a script and a seed, latencies in buckets, and the summary of a run."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mockraft.brokers.fleet.figures import Figures, Histogram
from mockraft.brokers.fleet.plan import Act, Action, Do, ScriptError, ScriptStep, plan, read_script, steps_of
from mockraft.brokers.fleet.summary import Course, done_to
from mockraft.files.trees import GivenFileError

from ...rows import each_row

RACKS: dict[int, str | None] = {1: "a", 2: "b", 3: "a", 4: "b"}
A_RAMP = [Action(0, 1, Act.START), Action(250, 2, Act.START), Action(500, 3, Act.START), Action(750, 4, Act.START)]


def planned(*steps: ScriptStep, seed: int = 1) -> list[Action]:
    """Steps after the ramp."""
    return [action for action in plan(RACKS, 0, steps, seed) if action.at_ms or action.act is not Act.START]


def test_starts_are_spread_over_the_ramp() -> None:
    assert plan(RACKS, 1000, (), 1) == A_RAMP


def test_without_a_ramp_all_start_at_once() -> None:
    assert plan(RACKS, 0, (), 1) == [Action(0, broker_id, Act.START) for broker_id in RACKS]


@each_row(
    ("do", "first", "last"),
    [
        (Do.KILL, Act.KILL, Act.START),
        (Do.STOP, Act.STOP, Act.START),
        (Do.FREEZE, Act.FREEZE, Act.THAW),
        (Do.DISCONNECT, Act.DISCONNECT, None),
        (Do.FAIL_LOG_DIR, Act.FAIL_LOG_DIR, None),
    ],
)
def test_step_is_executed_and_reverted_later(do: Do, first: Act, last: Act | None) -> None:
    back_after_s = None if last is None else 2.0
    actions = planned(ScriptStep(do=do, at_s=1, brokers=(2, 3), back_after_s=back_after_s))
    back = [] if last is None else [Action(3000, 2, last), Action(3000, 3, last)]
    assert actions == [Action(1000, 2, first), Action(1000, 3, first), *back]


@each_row(
    ("step", "actions"),
    {
        "without a return": (ScriptStep(do=Do.KILL, at_s=1, brokers=(2,)), [Action(1000, 2, Act.KILL)]),
        "ids and racks": (ScriptStep(do=Do.KILL, at_s=1, brokers=(1, 2), racks=("b",)), [Action(1000, 2, Act.KILL)]),
        "spread over time": (
            ScriptStep(do=Do.DISCONNECT, at_s=1, over_s=2, racks=("b",)),
            [Action(1000, 2, Act.DISCONNECT), Action(2000, 4, Act.DISCONNECT)],
        ),
        "a rolling restart, three at once": (
            ScriptStep(do=Do.ROLLING_RESTART, at_s=1, at_once=3, every_s=10, back_after_s=0.5),
            [
                *(Action(1000, broker_id, Act.STOP) for broker_id in (1, 2, 3)),
                *(Action(1500, broker_id, Act.START) for broker_id in (1, 2, 3)),
                Action(11_000, 4, Act.STOP),
                Action(11_500, 4, Act.START),
            ],
        ),
    },
)
def test_step_has_its_actions(step: ScriptStep, actions: list[Action]) -> None:
    assert planned(step) == actions


def test_drawn_brokers_depend_on_the_seed_only() -> None:
    drawn = [planned(ScriptStep(do=Do.KILL, at_s=1, count=2), seed=seed) for seed in range(20)]
    assert drawn == [planned(ScriptStep(do=Do.KILL, at_s=1, count=2), seed=seed) for seed in range(20)]
    assert len({tuple(each) for each in drawn}) > 1
    assert all(len(each) == 2 for each in drawn)


@each_row(
    ("asked", "many"), [({"percent": 50.0}, 2), ({"percent": 0.0}, 0), ({"percent": 100.0}, 4), ({"count": 99}, 4)]
)
def test_a_draw_takes_no_more_than_there_are(asked: dict[str, Any], many: int) -> None:
    assert len(planned(ScriptStep(do=Do.KILL, at_s=1, **asked))) == many


@each_row(
    ("step", "said"),
    [
        (ScriptStep(do=Do.KILL, brokers=(1, 5)), "steps[0].brokers: the fleet has no broker 5"),
        (ScriptStep(do=Do.KILL, racks=("c",)), "steps[0].racks: no broker is in rack c"),
    ],
)
def test_missing_broker_is_named(step: ScriptStep, said: str) -> None:
    with pytest.raises(ScriptError) as refused:
        planned(step)
    assert str(refused.value) == said


STEPS = st.builds(
    ScriptStep,
    do=st.sampled_from(Do),
    at_s=st.floats(0, 100),
    over_s=st.floats(0, 100),
    percent=st.none() | st.floats(0, 100),
    back_after_s=st.none() | st.floats(0, 100),
    at_once=st.integers(1, 10),
    every_s=st.floats(0, 10),
)


@given(st.integers(1, 40), st.lists(STEPS, max_size=5), st.integers(0, 5), st.integers(0, 5000))
def test_every_plan_is_in_order_and_about_brokers_of_the_fleet(
    count: int, steps: list[ScriptStep], seed: int, ramp_ms: int
) -> None:
    racks = dict.fromkeys(range(count))
    actions = plan(racks, ramp_ms, steps, seed)
    assert [each.at_ms for each in actions] == sorted(each.at_ms for each in actions)
    assert {each.broker_id for each in actions} == set(racks)
    assert actions == plan(racks, ramp_ms, steps, seed)


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
        ScriptStep(do=Do.KILL, at_s=20.0, percent=5.0, back_after_s=30.0, over_s=2.5),
        ScriptStep(do=Do.ROLLING_RESTART, at_s=40.0, racks=("a",), at_once=5, every_s=2.0, back_after_s=1.0),
        ScriptStep(do=Do.FAIL_LOG_DIR, brokers=(1, 2)),
        ScriptStep(do=Do.DISCONNECT),
        ScriptStep(do=Do.FREEZE, count=3),
    )


def test_a_file_is_json_or_toml(tmp_path: Path) -> None:
    (tmp_path / "script.json").write_text(json.dumps(TREE))
    (tmp_path / "script.toml").write_text(TOML)
    assert read_script(tmp_path / "script.json") == steps_of(TREE)
    assert read_script(tmp_path / "script.toml") == steps_of(TREE)[:1]


@each_row(
    ("tree", "said"),
    [
        ([], 'a script is one object with one list, {"steps": […]}'),
        ({"steps": {}}, 'a script is one object with one list, {"steps": […]}'),
        ({"steps": [], "more": 1}, 'a script is one object with one list, {"steps": […]}'),
        ({"steps": [1]}, "steps[0] is no object"),
        ({"steps": [{"at_s": 1}]}, "steps[0].do is null; it can be kill, stop, rolling-restart, freeze"),
        ({"steps": [{"do": "explode"}]}, 'steps[0].do is "explode"; it can be kill'),
        ({"steps": [{"do": ["kill"]}]}, 'steps[0].do is ["kill"]; it can be kill'),
        ({"steps": [{"do": "kill"}, {"do": "kill", "at_once": 1}]}, "steps[1].at_once is not for kill; that takes "),
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


@each_row(
    ("name", "content", "said"),
    [
        ("s.json", b"{", "s.json, line 1: not JSON: Expecting property name"),
        ("s.json", b"\xff", "s.json: not UTF-8: "),
        ("s.json", b"[" * 100_000, "s.json: not JSON: "),
        ("s.toml", b"steps = ", "s.toml: not TOML: "),
        ("s.json", b'{"steps": [{"do": 1}]}', "s.json: steps[0].do is 1"),
    ],
)
def test_a_bad_file_is_named(tmp_path: Path, name: str, content: bytes, said: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises((ScriptError, GivenFileError)) as refused:
        read_script(tmp_path / name)
    assert str(refused.value).startswith(f"{tmp_path}/{said}")


def of(*seconds: float) -> Histogram:
    histogram = Histogram()
    for each in seconds:
        histogram.add(each)
    return histogram


@each_row("share", [0.01, 0.5, 0.9, 0.99, 1.0])
def test_a_percentile_is_at_most_a_bucket_above_the_exact_one(share: float) -> None:
    rng = random.Random(1)
    values = sorted(rng.expovariate(50) for _ in range(1000))
    exact_ms = 1000 * values[max(0, round(share * 1000) - 1)]
    assert exact_ms <= (of(*values).percentile_ms(share) or 0) <= exact_ms * 2 ** (1 / 16) * 1.0001


def test_parts_add_up_to_the_whole_and_can_be_taken_away_again() -> None:
    first, second = of(0.001, 0.002, 0.1), of(0.002, 3.0)
    both = first.plus(second)
    assert (both.total, both.counts, both.largest_s) == (5, of(0.001, 0.002, 0.1, 0.002, 3.0).counts, 3.0)
    assert both.minus(first).counts == second.counts


def test_an_empty_one_has_no_percentile() -> None:
    assert Histogram().percentile_ms(0.5) is None
    assert of(0.1).minus(of(0.1)).percentile_ms(0.99) is None


def test_less_than_a_microsecond_is_a_microsecond() -> None:
    assert of(0.0, 1e-9).counts == {0: 2}


def figures(answered_ms: list[float], **fields: object) -> Figures:
    latency = of(*(each / 1000 for each in answered_ms))
    return Figures(brokers=2, answered=len(answered_ms), latency=latency, **fields)  # type: ignore[arg-type]


def test_a_sample_is_about_the_time_since_the_one_before() -> None:
    course = Course()
    course.see(figures([1.0] * 10, started=2), 1.0)
    sample = course.see(figures([1.0] * 10 + [100.0] * 30, started=2, unfenced=2, registered=2), 3.0)
    assert (sample.heartbeats_per_s, sample.unfenced, sample.errors) == (15.0, 2, 0)
    assert sample.p50_ms == sample.p99_ms == 100.0


def test_without_heartbeats_there_is_no_latency() -> None:
    sample = Course().see(figures([]), 1.0)
    assert (sample.heartbeats_per_s, sample.p50_ms, sample.p99_ms) == (0.0, None, None)


def test_latencies_count_from_when_all_were_unfenced() -> None:
    course = Course()
    ready = {"registered": 2, "unfenced": 2, "running": 2, "registered_s": 0.7, "unfenced_s": 0.9}
    course.see(figures([500.0] * 5, memory_bytes=8000, **ready), 1.0)
    course.see(figures([500.0] * 5 + [2.0] * 40, memory_bytes=8000, **ready), 5.0)
    last = figures([500.0] * 5 + [2.0] * 40 + [900.0] * 2, memory_bytes=8000, **ready)
    summary = course.summary(last, [])
    before, after = summary["heartbeats_until_all_were_unfenced"], summary["heartbeats_of_the_shutdown"]
    assert (before["answered"], before["latency_ms"]["p99"]) == (5, 500.0)
    assert (after["answered"], after["latency_ms"]["p99"]) == (2, 900.0)
    assert summary["heartbeats_once_all_were_unfenced"]["latency_ms"]["p99"] < 3
    assert summary["heartbeats_once_all_were_unfenced"]["per_s"] == 10.0
    assert summary["heartbeats"]["latency_ms"]["max"] == 900.0
    assert (summary["all_registered_after_s"], summary["all_unfenced_after_s"]) == (0.7, 0.9)
    assert summary["memory_bytes_per_broker"] == 4000
    assert not summary["went_wrong"]
    assert json.loads(json.dumps(summary))["samples"][0]["at_s"] == 1.0


def test_summary_reports_what_failed() -> None:
    course = Course()
    ready = {"registered_s": 1.0, "unfenced_s": 1.0}
    for wrong in ({"mistakes": Counter({3: 1})}, {"died": {4: "it is over"}}):
        assert course.summary(figures([], **ready, **wrong), [])["went_wrong"]
    assert course.summary(figures([], **ready), ["process 1 of 1 ended"])["went_wrong"]
    assert course.summary(figures([]), [])["went_wrong"], "not all were ever unfenced"
    assert not course.summary(figures([], **ready), [])["went_wrong"]


def test_actions_are_summarized_by_second() -> None:
    racks: dict[int, str | None] = dict.fromkeys(range(1, 5))
    steps = (ScriptStep(do=Do.KILL, at_s=2, back_after_s=1.5), ScriptStep(do=Do.DISCONNECT, at_s=3, count=1))
    assert done_to(plan(racks, 1000, steps, 1)) == [
        {"at_s": 2, "act": "kill", "brokers": 4},
        {"at_s": 3, "act": "disconnect", "brokers": 1},
        {"at_s": 3, "act": "start", "brokers": 4},
    ]
