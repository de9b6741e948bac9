"""Reports of a failing test about its doubles, in the terminal and in files."""

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

SECRET = """
    import pytest
    from mockraft.server.stubs.match import Match
    from mockraft.wire.messages.incremental_alter_configs_request import *

    VALUE = "hun" + "ter2"
    CONFIG = AlterableConfig(name="ssl.key.password", value=VALUE)
    RESOURCE = AlterConfigsResource(resource_type=4, resource_name="", configs=[CONFIG])

    @pytest.mark.parametrize("compares", [False, True])
    def test_broken(mockraft, compares):
        mockraft.ask(IncrementalAlterConfigsRequest(resources=[RESOURCE]))
        match = Match("IncrementalAlterConfigs", where={"resources[].configs[].value": VALUE})
        (exchange,) = mockraft.requests(match)
        assert exchange.request.resources[0].configs[0].value == VALUE
        if compares:
            assert exchange.request is mockraft.state.configs()
        mockraft.verify(2, match)
    """


def test_a_failing_test_reports_its_requests(run_pytest: Run) -> None:
    result = run_pytest(FAILING)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*mockraft journal (mockraft)*", "*BrokerRegistration*"])


def test_the_report_is_as_long_as_wanted(run_pytest: Run) -> None:
    result = run_pytest(FAILING, "--mockraft-journal-lines=2")
    result.stdout.fnmatch_lines(["*mockraft journal*", "*earlier*"])
    result = run_pytest(FAILING, "-o", "mockraft_journal_lines=0")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.no_fnmatch_line("*mockraft journal*")


def test_journals_of_failing_tests_are_kept_in_a_folder(run_pytest: Run, pytester: pytest.Pytester) -> None:
    run_pytest(FAILING, "--mockraft-journal-dir=journals")
    (written,) = sorted((pytester.path / "journals").glob("*.jsonl"))
    assert "test_broken" in written.name
    assert written.with_suffix(".pcapng").exists()
    apis = [json.loads(line).get("api") for line in written.read_text().splitlines()]
    assert "BrokerRegistration" in apis


def test_a_folder_that_cannot_be_had_does_not_hide_the_failure(run_pytest: Run, pytester: pytest.Pytester) -> None:
    (pytester.path / "journals").write_text("a file")
    result = run_pytest(FAILING, "--mockraft-journal-dir=journals")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*elsewhere*", "*mockraft journal*", "*cannot be had*journals*"])


def test_a_teardown_that_fails_too_keeps_the_journals_of_the_test(run_pytest: Run, pytester: pytest.Pytester) -> None:
    run_pytest(
        """
        import pytest
        from mockraft.wire import messages

        @pytest.fixture
        def broken():
            yield
            assert not "torn down"

        def test_broken(mockraft_session, broken):
            mockraft_session.ask(messages.by_name("DescribeClusterRequest")(endpoint_type=2))
            assert not "run"

        def test_last(mockraft_session):
            assert mockraft_session.port
        """,
        "--mockraft-journal-dir=journals",
    )
    (written,) = (pytester.path / "journals").glob("*.jsonl")
    assert "DescribeCluster" in written.read_text()


TYPOS = {
    "mockraft.stub('BrokerHartbeat')": "BrokerHeartbeat",
    "mockraft.stub('BrokerHeartbeat', brokr_epoch=1)": "brokerEpoch",
    "mockraft.stub('BrokerHeartbeat').inject_error('NOT_CONTROLER')": "NOT_CONTROLLER",
    "mockraft.verify(1, 'BrokerHeartbeat', brokr_epoch=1)": "brokerEpoch",
    "mockraft.wait_for('BrokerHartbeat')": "BrokerHeartbeat",
    "mockraft.wait_for('BrokerHeartbeat', timeout_s=0.01, sinse=1)": "sinse",
    "mockraft.faults.latensy()": "latency",
    "mockraft.faults.add('latensy')": "latency",
    "mockraft.faults.latency(latensy_ms=3)": "latensy_ms",
    "mockraft.faults.fence()": "broker_id",
    "mockraft.start_broker(1, rak='a')": "rack",
    "mockraft.start_broker(1, wait='runing')": "running",
    "mockraft.start_broker(1).wait_until('running')": "BrokerState.RUNNING",
    "mockraft.state.elect('orders', 0, leadr=1)": "leadr",
    "mockraft.state.broker(7)": "7",
    "mockraft.remove('stub-7')": "stub",
    "mockraft.as_version('3.10')": "3.9",
    "mockraft.load_stubs('stubs.json')": "stubs.json",
    "BrokerState.RUNING": "RUNING",
    "Controller(sesion_timeout_ms=3)": "session_timeout_ms",
}
"""What a test may mistype, and what its report names."""


@pytest.mark.parametrize("call", TYPOS)
def test_a_typo_is_reported_in_three_lines_at_the_line_of_the_test(run_pytest: Run, call: str) -> None:
    result = run_pytest(
        f"""
        from mockraft import BrokerState, Controller

        def test_one(mockraft):
            {call}
        """
    )
    result.assert_outcomes(failed=1)
    text = result.stdout.str()
    shown = text.partition("def test_one")[2].partition("=====")[0].splitlines()[1:]
    report = [line for line in shown if line.strip(" ^")]
    line, *errors, place = report[:3]
    assert line == f">       {call}"
    assert all(each.startswith("E  ") and TYPOS[call] in each for each in errors), report
    assert place.startswith("test_a_typo"), report
    assert report[3:] == [] or "journal" in report[3], report


def test_full_trace_shows_the_frames_of_mockraft(run_pytest: Run) -> None:
    result = run_pytest("def test_one(mockraft): mockraft.stub('BrokerHartbeat')", "--full-trace")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*double.py:*", "E*BrokerHeartbeat*"])


def test_a_defect_of_mockraft_keeps_its_frames(run_pytest: Run) -> None:
    result = run_pytest(
        """
        def test_one(mockraft, monkeypatch):
            monkeypatch.setattr(type(mockraft.inside), "now_ms", property(lambda self: {}["nothing"]))
            mockraft.now_ms
        """
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*facades.py:*", "E*KeyError: 'nothing'"])


@pytest.mark.parametrize("call", ["Color(7)", "mockraft.stub('BrokerHartbeat')"])
def test_error_that_the_test_was_handling_is_shown_too(run_pytest: Run, call: str) -> None:
    result = run_pytest(
        f"""
        from enum import Enum

        Color = Enum("Color", ["RED"])

        def test_one(mockraft):
            try:
                1 / 0
            except ZeroDivisionError:
                {call}
        """
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E*ZeroDivisionError*", "During handling*", f">*{call}"])


@pytest.mark.parametrize("call", ["verify(2, 'BrokerHeartbeat')", "wait_for('BrokerHeartbeat', n=9, timeout_s=0.01)"])
def test_a_failed_wait_or_verification_shows_the_journal_once(run_pytest: Run, call: str) -> None:
    source = f"""
        from mockraft import Controller
        from mockraft.wire.messages.describe_cluster_request import DescribeClusterRequest

        def test_one(mockraft):
            mockraft.ask(DescribeClusterRequest(endpoint_type=2))
            mockraft.{call}
        """
    shown = run_pytest(source).stdout.str()
    assert (shown.count("DescribeCluster v2 endpoint"), shown.count("mockraft journal (mockraft)")) == (1, 1)
    assert run_pytest(source, "--mockraft-journal-lines=0").stdout.str().count("DescribeCluster v2 endpoint") == 1


def test_a_failed_verification_of_a_controller_without_fixture_has_its_journal(run_pytest: Run) -> None:
    result = run_pytest(
        """
        from mockraft import Controller

        def test_one(mockraft):
            with Controller.sync() as own:
                own.verify(1, "BrokerHeartbeat")
        """
    )
    result.stdout.fnmatch_lines(["E*The journal is empty*"])


def test_traceback_points_at_the_test_line_without_frames_of_mockraft(run_pytest: Run) -> None:
    result = run_pytest(
        """
        import asyncio

        import pytest
        from mockraft import Controller, stub

        def test_verify(mockraft):
            mockraft.verify(2, "BrokerHeartbeat")  # here

        def test_wait_for(mockraft):
            mockraft.wait_for("BrokerHeartbeat", timeout_s=0.01)  # here

        def test_unused(mockraft):
            mockraft.stub("Fetch").drop()
            mockraft.assert_all_stubs_used()  # here

        def test_unfired(mockraft):
            mockraft.faults.down(enabled=False)
            mockraft.assert_all_faults_fired()  # here

        def test_in_a_loop():
            async def wait():
                async with Controller() as controller:
                    await controller.wait_for("BrokerHeartbeat", timeout_s=0.01)  # here
            asyncio.run(wait())
        """,
        "--mockraft-journal-lines=0",
    )
    result.assert_outcomes(failed=5)
    text = result.stdout.str()
    assert sum(line.startswith(">") and line.endswith("# here") for line in text.splitlines()) == 5
    assert "front/" not in text


@pytest.mark.parametrize("marker", ["", "@pytest.mark.mockraft(show_secrets=True)"])
def test_reports_show_secrets_only_on_request(run_pytest: Run, pytester: pytest.Pytester, marker: str) -> None:
    result = run_pytest(SECRET.replace("def test", f"{marker}\n    def test"), "--mockraft-journal-dir=journals")
    result.assert_outcomes(failed=2)
    assert ("hunter2" in result.stdout.str()) is bool(marker)
    files = list((pytester.path / "journals").iterdir())
    assert len(files) == 4
    assert [b"hunter2" in path.read_bytes() for path in files] == [bool(marker)] * 4
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}
