from typing import Any

from mockraft.spark_replay.report import replay_sections
from mockraft.spark_replay.report.replayed import Replayed

from .rows import FETCH, HEARTBEAT, diffs, results


def test_outcomes_are_counted_by_api_and_left_out_ones_are_not_sent() -> None:
    replayed = Replayed()
    left_out = {"status": "left_out", "equal": None, "raw_equal": None, "detail": "no answer", "latency_ns": None}
    replayed.add_results(
        results({}, {"equal": False, "raw_equal": False}, {"status": "timeout", "equal": False}, left_out)
    )
    assert (replayed.sent, replayed.same) == (3, 1)
    result: dict[str, Any] = replay_sections.replay_totals(replayed)
    (row,) = result["apis"]
    assert (row["sent"], row["same"], row["different"], row["noAnswer"], row["leftOut"]) == (3, 1, 1, 1, 1)


def test_differences_are_grouped_by_path_with_first_example() -> None:
    first = Replayed()
    first.add_diffs(diffs({"number": 9, "path": "topics[4].name"}, {"number": 8, "path": "topics[foo].name"}))
    first.add_diffs(diffs({"number": 3, "path": "topics[1].name"}, {"api_key": FETCH, "path": "x"}))
    assert dict(first.found) == {(HEARTBEAT, "topics[].name", "changed"): 3, (FETCH, "x", "changed"): 1}
    assert first.examples[HEARTBEAT, "topics[].name", "changed"]["path"] == "topics[1].name"
    row: dict[str, Any] = replay_sections.differences(first)[0]
    assert (row["path"], row["total"], row["example"]["number"]) == ("topics[].name", 3, 3)


def test_excused_values_are_no_difference_and_unused_rules_are_reported() -> None:
    replayed = Replayed()
    replayed.add_diffs(diffs({"kind": "volatile_ok", "rule": "throttle"}, {"kind": "volatile_ok", "rule": "throttle"}))
    result: dict[str, Any] = replay_sections.rules(
        replayed, [{"rule": "throttle", "fired": 0}, {"rule": "epochs", "fired": 0}]
    )
    assert replayed.found == []
    assert result["fired"] == [{"rule": "throttle", "fired": 2}]
    assert [row["rule"] for row in result["never"]] == ["epochs"]
    assert not result["own"]


def test_rules_of_the_user_that_fired_are_told() -> None:
    own: dict[str, Any] = replay_sections.rules(Replayed(), [{"rule": "epochs", "fired": 1, "override": True}])
    unused: dict[str, Any] = replay_sections.rules(Replayed(), [{"rule": "epochs", "fired": 0, "override": True}])
    assert (own["own"], unused["own"]) == (True, False)
