"""The summary of a run."""

from __future__ import annotations

import json
from collections import Counter

from mockraft.brokers.fleet.figures import Figures
from mockraft.brokers.fleet.histogram import Histogram
from mockraft.brokers.fleet.plan import plan
from mockraft.brokers.fleet.script import Do, Step
from mockraft.brokers.fleet.summary import Course, done_to


def figures(answered_ms: list[float], **fields: object) -> Figures:
    latency = Histogram()
    for each in answered_ms:
        latency.add(each / 1000)
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
    last = figures([500.0] * 5 + [2.0] * 40, memory_bytes=8000, **ready)
    course.see(last, 5.0)
    summary = course.summary(last, [])
    assert summary["heartbeats_once_all_were_unfenced"]["latency_ms"]["p99"] < 3
    assert summary["heartbeats_once_all_were_unfenced"]["per_s"] == 10.0
    assert summary["heartbeats"]["latency_ms"]["max"] == 500.0
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
    steps = (Step(do=Do.KILL, at_s=2, back_after_s=1.5), Step(do=Do.DISCONNECT, at_s=3, count=1))
    assert done_to(plan(racks, 1000, steps, 1)) == [
        {"at_s": 2, "act": "kill", "brokers": 4},
        {"at_s": 3, "act": "disconnect", "brokers": 1},
        {"at_s": 3, "act": "start", "brokers": 4},
    ]
