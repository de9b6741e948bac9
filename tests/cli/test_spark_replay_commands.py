"""Output of `mockraft spark replay`."""

import pytest
from mockraft.cli.spark.replay import _show

API = {"api": "Fetch", "sent": 1, "equal": 0, "rawEqual": 0, "failed": 0, "medianMs": 1, "capturedMedianMs": 2}
PLACE = {"frame": 3, "connection": "c:1 → h:2", "correlationId": 5, "time": "2026-11-20T09:13:12.778157Z"}
FINDING = {
    "api": "Fetch",
    "path": "responses[].errorCode",
    "kind": "changed",
    "count": 1,
    "expected": 74,
    "actual": 0,
    "first": {"session": "cluster", "exchange": 1, **PLACE},
}
PARTS = {"differences": [FINDING], "intended": [], "masked": [], "notes": [], "releases": []}
FOUND = {**PARTS, "apis": [API], "leftOut": [], "rules": [], "known": 0, "gone": 0}


def test_output_begins_with_what_changed_in_lines_that_are_not_cut(capsys: pytest.CaptureFixture[str]) -> None:
    _show({**FOUND, "same": 0, "sent": 1, "sessions": 1})
    result = capsys.readouterr().out
    assert result.startswith(
        "Changed (1)\n"
        "  Fetch responses[].errorCode: 74 FENCED_LEADER_EPOCH → 0 NONE  1x\n"
        "    first #1 of cluster: request 3 of c:1 → h:2, correlation id 5, 2026-11-20T09:13:12.778157Z\n\n"
    )
    assert "identical bytes  no response  median ms  captured ms\n" in result
    assert result.endswith("0 of 1 responses as captured, in 1 session\n")


def test_known_changes_and_masked_values_stand_apart(capsys: pytest.CaptureFixture[str]) -> None:
    known = {**FINDING, "path": "apiKeys[Vote]", "kind": "missing", "expected": {"minVersion": 0, "maxVersion": 2}}
    found = {**FOUND, "differences": [], "intended": [{**known, "why": "Vote: 0 to 2 → —"}], "notes": ["look"]}
    found |= {"masked": [{"class": "time", "why": "a point in time", "count": 2, "fields": []}]}
    _show({**found, "releases": [{"captured": "4.3", "live": "4.4"}], "same": 1, "sent": 1, "sessions": 1})
    result = capsys.readouterr().out
    assert result.startswith(
        "Changed (0)\n  Note: look\nKnown changes of Kafka 4.3 to 4.4 (1)\n"
        "  Fetch apiKeys[Vote]: 0 to 2 → absent  1x\n    Vote: 0 to 2 → —\n"
        "Masked (2 values)\n  2 time: a point in time\n"
    )
    assert result.endswith("1 of 1 responses as captured or as their releases are known to differ, in 1 session\n")


def test_summary_tells_what_excuses_differences(capsys: pytest.CaptureFixture[str]) -> None:
    rule = {"rule": "Fetch:responses[].errorCode", "class": "ignored", "override": True, "fired": 2}
    found = {**FOUND, "differences": [], "same": 8, "sent": 8, "sessions": 1}
    _show({**found, "known": 4, "gone": 1})
    assert capsys.readouterr().out.endswith(
        "of the fields that differ in the baseline 4 still differ and 1 no longer do\n\n"
        "8 of 8 responses as captured or as in the baseline, in 1 session\n"
    )
    _show({**found, "rules": [rule]})
    assert capsys.readouterr().out.endswith("8 of 8 responses as captured or as your rules permit, in 1 session\n")
    _show({**found, "gone": 4, "rules": [{**rule, "fired": 0}]})
    assert capsys.readouterr().out.endswith("8 of 8 responses as captured, in 1 session\n")
