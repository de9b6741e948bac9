"""What a failing test says of its doubles, in its report and in files."""

import json
from collections.abc import Callable

import pytest

pytest_plugins = "pytester"

Run = Callable[..., pytest.RunResult]

FAILING = """
    import pytest

    @pytest.mark.mockraft(brokers=1)
    def test_broken(mockraft):
        assert mockraft.bootstrap == "elsewhere"

    def test_fine(mockraft):
        assert mockraft.bootstrap
    """


def test_a_failing_test_shows_what_was_asked(run_pytest: Run) -> None:
    result = run_pytest(FAILING)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*mockraft journal (mockraft)*", "*BrokerRegistration*"])


def test_the_report_is_as_long_as_wanted(run_pytest: Run) -> None:
    result = run_pytest(FAILING, "--mockraft-journal-lines=2")
    result.stdout.fnmatch_lines(["*mockraft journal*", "*earlier*"])
    result = run_pytest(FAILING, "-o", "mockraft_journal_lines=0")
    result.stdout.no_fnmatch_line("*mockraft journal*")


def test_journals_of_failing_tests_are_kept_in_a_folder(run_pytest: Run, pytester: pytest.Pytester) -> None:
    run_pytest(FAILING, "--mockraft-journal-dir=journals")
    (written,) = sorted((pytester.path / "journals").glob("*.jsonl"))
    assert "test_broken" in written.name
    assert written.with_suffix(".pcapng").exists()
    apis = [json.loads(line).get("api") for line in written.read_text().splitlines()]
    assert "BrokerRegistration" in apis
