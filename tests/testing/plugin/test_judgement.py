"""Checks that a controller adds to a test that would pass."""

from collections.abc import Callable

import pytest

pytest_plugins = "pytester"

Run = Callable[..., pytest.RunResult]

UNUSED = """
    def test_one(mockraft):
        mockraft.stub("BrokerHeartbeat", broker_id=1).inject_error("STALE_BROKER_EPOCH")
        mockraft.ask(__import__("mockraft.wire.messages").wire.messages.by_name("BrokerHeartbeatRequest")(broker_id=2))
    """
UNEXPECTED = """
    import pytest
    from mockraft.wire import messages

    @pytest.mark.mockraft(strict=True)
    def test_one(mockraft):
        mockraft.stub("AllocateProducerIds", broker_id=1)
        for broker_id in (1, 2):
            mockraft.ask(messages.by_name("AllocateProducerIdsRequest")(broker_id=broker_id))
    """


def test_an_unused_stub_fails_the_test_with_near_misses(run_pytest: Run) -> None:
    result = run_pytest(UNUSED)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "stub stub-1 was never used: BrokerHeartbeat brokerId=1",
            "*✗ brokerId: wanted 1, there was 2",
            "*mockraft journal*",
        ]
    )


@pytest.mark.parametrize(
    ("options", "marked"),
    [
        (("--mockraft-assert-all-used=no",), ""),
        (("-o", "mockraft_assert_all_used=false"), ""),
        ((), "import pytest\n    @pytest.mark.mockraft(assert_all_used=False)"),
    ],
    ids=["option", "ini", "marker"],
)
def test_assert_all_used_off_accepts_unused_stubs(run_pytest: Run, options: tuple[str, ...], marked: str) -> None:
    run_pytest(UNUSED.replace("def test_one", f"{marked}\n    def test_one", 1), *options).assert_outcomes(passed=1)


def test_unexpected_request_fails_a_strict_test(run_pytest: Run) -> None:
    result = run_pytest(UNEXPECTED)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["request #* was not expected*", "*✗ brokerId: wanted 1, there was 2", "*UNEXPECTED*"])
    run_pytest(UNEXPECTED.replace("strict=True", "strict=False")).assert_outcomes(passed=1)
    run_pytest(UNEXPECTED.replace("strict=True", ""), "--mockraft-strict=yes").assert_outcomes(failed=1)


def test_failed_test_reports_only_its_own_failure(run_pytest: Run) -> None:
    result = run_pytest(UNUSED + "\n        assert 0, 'my own'")
    result.stdout.fnmatch_lines(["*my own*"])
    result.stdout.no_fnmatch_line("*was never used*")


@pytest.mark.parametrize("said", ["strict=perhaps", "journal_lines=many", "real_broker=never"])
def test_a_wrong_setting_on_the_command_line_is_refused(run_pytest: Run, said: str) -> None:
    result = run_pytest("def test_one(): pass", f"--mockraft-{said.replace('_', '-')}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    name, _, text = said.partition("=")
    result.stderr.fnmatch_lines([f"*mockraft_{name}='{text}' (*): it is *"])


def test_a_controller_of_the_session_is_reset_between_tests_and_judged_by_each(run_pytest: Run) -> None:
    result = run_pytest(
        """
        import pytest
        from mockraft.wire import messages

        HEARTBEAT = messages.by_name("BrokerHeartbeatRequest")(broker_id=1)

        @pytest.mark.mockraft(strict=True)
        def test_one(mockraft_session):
            mockraft_session.stub("BrokerHeartbeat").inject_error("NOT_CONTROLLER")
            assert mockraft_session.ask(HEARTBEAT).error_code == 41

        def test_two(mockraft_session):
            assert mockraft_session.stubs == [] and mockraft_session.requests() == []
            assert not mockraft_session.strict
            assert mockraft_session.ask(HEARTBEAT).error_code == 77

        def test_three(mockraft_session):
            mockraft_session.stub("BrokerHeartbeat")

        def test_four():
            assert True
        """
    )
    result.assert_outcomes(passed=3, failed=1)
    result.stdout.fnmatch_lines(["*test_three*", "stub stub-* was never used*"])


def test_a_quorum_is_judged_as_one(run_pytest: Run) -> None:
    result = run_pytest(
        """
        import pytest

        @pytest.mark.mockraft(controllers=2)
        def test_one(mockraft_quorum):
            mockraft_quorum.stub("BrokerHeartbeat", node=3001)
        """
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["stub stub-1 was never used: BrokerHeartbeat node=3001", "*mockraft journal*"])


def test_unused_fault_fails_the_test(run_pytest: Run) -> None:
    result = run_pytest(
        """
        def test_one(mockraft):
            with mockraft.faults.latency(latency_ms=5, client_id="nobody"):
                pass
        """
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["fault latency-1 never met anything*"])


def test_session_controller_requested_at_run_time_is_verified(run_pytest: Run) -> None:
    result = run_pytest(
        """
        def test_by_argument(mockraft_session):
            assert mockraft_session.port

        def test_by_name(request):
            request.getfixturevalue("mockraft_session").stub("Vote").drop()

        def test_without(request):
            assert request.node
        """
    )
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["*test_by_name*", "*was never used: Vote*"])
