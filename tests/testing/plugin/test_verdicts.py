"""Tests in which nothing happened, or something broke, fail and say why, although no assertion of theirs does."""

from __future__ import annotations

from collections.abc import Callable

import pytest

pytest_plugins = "pytester"

VERDICTS = {
    "a fault of a broker that is not there": (
        """
        with mockraft.faults.fence(7):
            mockraft.wait_for("BrokerHeartbeat")
        """,
        ["*ValueError: broker 7 is not registered; there are [[]1[]]*"],
    ),
    "an assertion in a stub's function": (
        """
        def expect(request):
            assert request.want_shut_down, "it was to shut down"

        mockraft.stub("BrokerHeartbeat").times(1).answers(expect)
        mockraft.wait_for("BrokerHeartbeat", 2, since=mockraft.mark())
        """,
        ["*BrokerHeartbeat *UNKNOWN_SERVER_ERROR*", '*assert request.want_shut_down, "it was to shut down"*'],
    ),
    "a match that nothing can meet": (
        """
        mockraft.wait_for("BrokerHeartbeat")
        mockraft.verify(0, "Fetch", broker=9)
        """,
        ["*match.broker: no broker 9: there are*"],
    ),
    "a condition that raises": (
        """
        mockraft.stub("BrokerHeartbeat", broker_id=lambda broker_id: broker_id.name).times(1)
        mockraft.wait_for("BrokerHeartbeat", 2, since=mockraft.mark())
        """,
        ["*'int' object has no attribute 'name'*"],
    ),
}


@pytest.mark.parametrize("about", VERDICTS)
def test_a_test_fails_for_what_it_does_not_see(run_pytest: Callable[..., pytest.RunResult], about: str) -> None:
    body, said = VERDICTS[about]
    head = "import pytest\n\n@pytest.mark.mockraft(brokers=1)\ndef test_it(mockraft):\n"
    result = run_pytest(head + body.replace("\n        ", "\n    "))
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(said)
