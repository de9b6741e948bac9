"""Output of `mockraft spark replay`."""

import pytest
from mockraft.commands.spark.replay import _show

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


def test_difference_names_error_codes_and_lines_are_not_cut(
    capsys: pytest.CaptureFixture[str],
) -> None:
    _show({**FOUND, "same": 0, "sent": 1, "sessions": 1})
    result = capsys.readouterr().out
    assert "captured  74 FENCED_LEADER_EPOCH\n" in result
    assert "live      0 NONE\n" in result
    assert "identical bytes  no response  median ms  captured ms\n" in result
    assert result.endswith("0 of 1 responses as captured, in 1 session\n")
