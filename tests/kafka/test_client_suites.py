import json

from tools.client_suites.comparison import PAGE, Kept, as_markdown, read, verdict
from tools.client_suites.outcomes import CaseOutcome, of_go_tests, of_pytest
from tools.client_suites.suites import SUITES
from tools.pages.marked_text import marked

from ..rows import each_row

PASSED: Kept = {"outcome": "passed"}
FAILED: Kept = {"outcome": "failed", "reason": "a_test.go:3: no leader"}


def _go(action: str, test: str, output: str = "") -> str:
    return json.dumps({"Action": action, "Test": test, "Output": output})


def test_the_page_shows_the_kept_results() -> None:
    """`python -m tools.client_suites.comparison` writes it anew."""
    assert marked(PAGE.read_text()) == as_markdown(read()) + "\n"


def test_every_suite_has_results_on_both_controllers() -> None:
    results = read()
    assert sorted(results) == sorted(suite.name for suite in SUITES)
    for suite in SUITES:
        found = results[suite.name]
        assert found["version"] == suite.version
        assert len(found["controllers"]["mockraft"]) == len(found["controllers"]["kafka"]) > 0


def test_no_test_of_a_suite_differs() -> None:
    for suite in SUITES:
        controllers = read()[suite.name]["controllers"]
        verdicts = {test: verdict(test, controllers, suite.races) for test in controllers["mockraft"]}
        differing = [test for test, found in verdicts.items() if found in ("differs", "not compared")]
        assert not [test for test in differing if controllers["mockraft"][test]["outcome"] == "failed"], suite.name


def test_does_not_judge_a_race() -> None:
    assert verdict("a", {"mockraft": {"a": FAILED}, "kafka": {"a": PASSED}}, races={"a": "reads too soon"}) == "a race"


def test_reads_the_outcome_and_the_reason_of_a_go_test() -> None:
    report = [
        _go("output", "TestA", "=== RUN   TestA\n"),
        _go("output", "TestA", "    a_test.go:3: no leader\n"),
        _go("output", "TestA", "--- FAIL: TestA (0.00s)\n"),
        _go("fail", "TestA"),
        _go("pass", "TestB"),
        _go("output", "TestC", "    a_test.go:9: needs a newer broker\n"),
        _go("skip", "TestC"),
        json.dumps({"Action": "fail"}),
    ]
    assert of_go_tests(report) == {
        "TestA": CaseOutcome("failed", "a_test.go:3: no leader"),
        "TestB": CaseOutcome("passed"),
        "TestC": CaseOutcome("skipped", "a_test.go:9: needs a newer broker"),
    }


def test_counts_subtests_and_not_the_go_test_around_them() -> None:
    report = [_go("pass", "TestA/x"), _go("fail", "TestA/y/z"), _go("fail", "TestA/y"), _go("fail", "TestA")]
    assert of_go_tests(report) == {"TestA/x": CaseOutcome("passed"), "TestA/y/z": CaseOutcome("failed")}


def test_counts_a_go_test_that_fails_itself_although_its_subtests_pass() -> None:
    assert set(of_go_tests([_go("pass", "TestA/x"), _go("fail", "TestA")])) == {"TestA", "TestA/x"}


def test_leaves_out_a_go_test_that_did_not_end() -> None:
    assert of_go_tests([_go("run", "TestA"), _go("output", "TestA", "panic: closed\n")]) == {}


def test_reads_a_junit_report_by_pytests_names() -> None:
    report = """<testsuites><testsuite>
      <testcase classname="test.integration.test_admin" name="test_a[x]"/>
      <testcase classname="test.integration.test_admin" name="test_b"><failure message="1 == 0&#10;more"/></testcase>
      <testcase classname="test.integration.test_admin" name="test_c"><skipped message="needs lz4"/></testcase>
    </testsuite></testsuites>"""
    assert of_pytest(report) == {
        "test/integration/test_admin.py::test_a[x]": CaseOutcome("passed"),
        "test/integration/test_admin.py::test_b": CaseOutcome("failed", "1 == 0"),
        "test/integration/test_admin.py::test_c": CaseOutcome("skipped", "needs lz4"),
    }


@each_row(
    ("ours", "kafkas", "expected"),
    [
        (PASSED, PASSED, "passes on both"),
        (FAILED, FAILED, "fails on both"),
        (FAILED, PASSED, "differs"),
        (PASSED, FAILED, "differs"),
        ({"outcome": "skipped"}, {"outcome": "skipped"}, "skipped on both"),
        (PASSED, None, "not compared"),
    ],
)
def test_compares_a_test_on_both_controllers(ours: Kept, kafkas: Kept | None, expected: str) -> None:
    assert verdict("a", {"mockraft": {"a": ours}, "kafka": {} if kafkas is None else {"a": kafkas}}) == expected
