"""Output of `mockraft spark replay`."""

import pytest
from mockraft.cli.spark.replay import _show

API = {"api": "Fetch", "sent": 1, "equal": 0, "rawEqual": 0, "failed": 0, "medianMs": 1, "capturedMedianMs": 2}
FINDING = {
    "api": "Fetch",
    "path": "responses[].errorCode",
    "kind": "changed",
    "count": 1,
    "expected": 74,
    "actual": 0,
    "first": {"session": "cluster", "exchange": 1},
}
FOUND = {"apis": [API], "leftOut": [], "differences": [FINDING], "rules": [], "known": 0, "gone": 0}


def test_difference_names_error_codes_and_lines_are_not_cut(capsys: pytest.CaptureFixture[str]) -> None:
    _show({**FOUND, "same": 0, "sent": 1, "sessions": 1})
    result = capsys.readouterr().out
    assert "captured  74 FENCED_LEADER_EPOCH\n" in result
    assert "live      0 NONE\n" in result
    assert "identical bytes  no response  median ms  captured ms\n" in result
    assert result.endswith("0 of 1 responses as captured, in 1 session\n")


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
