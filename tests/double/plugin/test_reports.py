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
