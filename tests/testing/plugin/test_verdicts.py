"""Tests in which nothing happened, or something broke, fail and say why, although no assertion of theirs does."""

from __future__ import annotations

from collections.abc import Callable

import pytest

pytest_plugins = "pytester"

HEAD = """\
import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from mockraft.wire.messages.delete_topics_response import DeleteTopicsResponse

def create(mockraft):
    admin = AdminClient({"bootstrap.servers": mockraft.bootstrap_servers})
    assert admin.create_topics([NewTopic("a", 1, 1)])["a"].exception(20) is not None

@pytest.mark.mockraft(brokers=1, create_topic_policy=lambda topic: pytest.fail("a policy"))
def test_it(mockraft):
"""

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
    "pytest's own failure in a stub's function": (
        """
        def expect(request):
            pytest.fail("must not create")

        mockraft.stub("CreateTopics").once().answers(expect)
        create(mockraft)
        """,
        ["Failed: must not create", '*pytest.fail("must not create")*'],
    ),
    "a function that exits": (
        """
        def leave(request):
            raise SystemExit(3)

        mockraft.stub("BrokerHeartbeat").times(1).answers(leave)
        mockraft.wait_for("BrokerHeartbeat", 2, since=mockraft.mark())
        """,
        ["SystemExit: 3", "*raise SystemExit(3)*"],
    ),
    "a match that pytest skips": (
        """
        def skip(broker_id):
            raise pytest.skip.Exception("no")

        mockraft.stub("BrokerHeartbeat", broker_id=skip).times(1)
        mockraft.wait_for("BrokerHeartbeat", 2, since=mockraft.mark())
        """,
        ["Skipped: no", "*(raised by the match of stub stub-1)"],
    ),
    "a condition that pytest fails": (
        """
        mockraft.wait_until(lambda: pytest.fail("in the condition"), timeout_s=2)
        """,
        ["*Failed: in the condition"],
    ),
    "a condition that ends the thread": (
        """
        def stop():
            raise SystemExit(3)

        for _ in range(2):
            with pytest.raises(RuntimeError, match="SystemExit"):
                mockraft.wait_until(stop)

        def interrupt(request):
            raise KeyboardInterrupt

        mockraft.stub("BrokerHeartbeat").times(1).answers(interrupt)
        mockraft.wait_for("BrokerHeartbeat", 3, since=mockraft.mark())
        """,
        ["*RuntimeError: KeyboardInterrupt() was raised in the thread of the controller"],
    ),
    "a policy that pytest fails": (
        """
        create(mockraft)
        """,
        ["Failed: a policy"],
    ),
    "a response of another API to a client of a broker": (
        """
        mockraft.stub("CreateTopics").once().answers(lambda request: DeleteTopicsResponse())
        create(mockraft)
        """,
        ["*StubError: CreateTopics: expected a CreateTopicsResponse, got DeleteTopicsResponse"],
    ),
    "a match that nothing can meet": (
        """
        mockraft.wait_for("BrokerHeartbeat")
        mockraft.verify(0, "Fetch", broker=9)
        """,
        ["*match.broker: no broker 9: there are*"],
    ),
    "requests of a broker that is not there": (
        """
        assert mockraft.requests("Produce", broker=7) == []
        """,
        ["*match.broker: no broker 7: there are*"],
    ),
    "a listener that is not there": (
        """
        mockraft.verify(0, "CreateTopics", listener="CONTROLER")
        """,
        ["*match.listener: no listener CONTROLER: did you mean CONTROLLER[?]"],
    ),
    "a function of a stub in a block without a fixture": (
        """
        from mockraft import Controller

        def expect(request):
            assert request.want_shut_down, "in the block"

        with Controller.sync(brokers=1) as other:
            other.stub("BrokerHeartbeat").times(1).answers(expect)
            other.wait_for("BrokerHeartbeat", 2, since=other.mark())
        """,
        ["*AssertionError: AssertionError: in the block*"],
    ),
    "a stub that a block without a fixture did not use": (
        """
        from mockraft import Controller

        with Controller.sync(assert_all_used=False) as other:
            other.stub("CreateTopics")
        with pytest.raises(KeyError, match="of the test"), Controller.sync() as other:
            other.stub("CreateTopics")
            raise KeyError("of the test")
        with Controller.sync() as other:
            other.stub("CreateTopics", topic="orders").inject_error("POLICY_VIOLATION")
        """,
        [
            ">       with Controller.sync() as other:",
            "E       AssertionError: stub stub-1 was never used: CreateTopics*",
        ],
    ),
    "a listener to the journal that pytest fails": (
        """
        def watch(entry):
            pytest.fail("in the listener")

        mockraft.call(mockraft.inside.journal.subscribe, watch)
        mockraft.wait_for("BrokerHeartbeat", 2, since=mockraft.mark())
        """,
        ["Failed: in the listener", '*pytest.fail("in the listener")*'],
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
    result = run_pytest(HEAD + body.replace("\n        ", "\n    "))
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(said)
