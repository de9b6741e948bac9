"""Own tests of Kafka clients on real brokers with mockraft behind them; what fails is run on Kafka's controller too."""

from pathlib import Path

import pytest

from tools.client_suites.comparison import run
from tools.client_suites.suites import SUITES, Suite

from ..budgets import soak

# Several use the same fixed ports.
pytestmark = [pytest.mark.real_kafka, soak, pytest.mark.xdist_group("client suites"), pytest.mark.timeout(3600)]


@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.name)
def test_a_client_suite_finds_no_difference_from_kafkas_controller(suite: Suite, tmp_path: Path) -> None:
    ours = run(suite, "mockraft", tmp_path / "mockraft")
    assert any(test["outcome"] == "passed" for test in ours.values())
    failed = {
        name: test.get("reason", "")
        for name, test in ours.items()
        if test["outcome"] == "failed" and name not in suite.races
    }
    if failed:
        kafkas = run(suite, "kafka", tmp_path / "kafka", list(failed))
        assert {name: reason for name, reason in failed.items() if kafkas[name]["outcome"] == "passed"} == {}
