"""Fixtures for pytest: a controller, a quorum, simulated and real brokers, stopped at the end of the test.

pytest loads it in every run where mockraft is installed, so it imports nothing until a fixture is used.
PYTEST_DONT_REWRITE
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Generator, Iterator
from typing import TYPE_CHECKING

import pytest
from mockraft.testing.plugin_settings import LIVE, OPTIONS, setting

if TYPE_CHECKING:
    from mockraft.kafka.processes import KafkaBroker
    from mockraft.testing.broker import SyncSimulatedBroker
    from mockraft.testing.controller import AwaitedController, SyncController
    from mockraft.testing.quorum import SyncQuorum


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--mockraft-…`, and the same in the ini file."""
    group = parser.getgroup("mockraft", "mockraft: a Kafka KRaft controller for tests")
    for name, (default, _, about) in OPTIONS.items():
        option = f"mockraft_{name}"
        flag = f"--{option.replace('_', '-')}"
        group.addoption(flag, dest=option, metavar="X", help=f"{about} (ini: {option}; {default or 'none'})")
        parser.addini(option, about, default=default)


def _marker_options() -> list[str]:
    """Return the names of the marker's options; those of the controller are in the table of options."""
    from mockraft.server.config import OPTIONS

    of_the_fixtures = ["brokers=1", "controllers=3", "observers=1", "strict=True", "assert_all_used=False"]
    return [*of_the_fixtures, *(f"{row.name}=…" for row in OPTIONS)]


def pytest_configure(config: pytest.Config) -> None:
    """The marker; and asserts of mockraft's own modules stay as they are."""
    names = _marker_options() if config.getoption("markers", False) else ["…"]
    config.addinivalue_line(
        "markers",
        f"mockraft({', '.join(names)}): options of the controller or quorum that the test's mockraft fixtures start",
    )
    config.stash[LIVE] = []
    for name, (default, pattern, about) in OPTIONS.items():
        # Patterns are compiled only for what somebody given: that takes longer than all else here.
        if (text := setting(config, name)) != default and not re.fullmatch(pattern, text, re.IGNORECASE):
            raise pytest.UsageError(f"mockraft_{name}={text!r} ({about}): it is {pattern}")
    # As the owner of a plugin all of mockraft would have its asserts rewritten, which takes seconds once and slows
    # what they guard for good. There is no public way to say no.
    getattr(getattr(config.pluginmanager, "rewrite_hook", None), "_must_rewrite", set()).discard("mockraft")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Fail a test that passed for the complaints of its doubles: unused stubs, unexpected requests."""
    if live := item.config.stash[LIVE]:
        from mockraft.testing.fixtures import begin

        begin(item, live)
    result = yield
    if live:
        from mockraft.testing.fixtures import complaint

        if text := complaint(item, live):
            pytest.fail(text, pytrace=False)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """The report of a failing test ends at the test's own line, and has its doubles' journals."""
    error = None if call.excinfo is None else call.excinfo.value
    # After the teardown the doubles of the test are gone, and that of the session was reset.
    live = [] if call.when == "teardown" else item.config.stash[LIVE]
    if error is not None and "mockraft.testing.double" in sys.modules:
        from mockraft.testing.fixtures import shorten

        shorten(error, item, live)
    report = yield
    if report.failed and live:
        from mockraft.testing.fixtures import add_journals

        try:
            add_journals(report, item, live, error)
        except Exception as problem:
            # An error here would end the run, and hide the test's own.
            report.sections.append(("mockraft journal", f"it cannot be had: {type(problem).__name__}: {problem}"))
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    """Reset the session's controller, so that stubs of a test do not affect the next one."""
    try:
        return (yield)
    finally:
        for watched in item.config.stash[LIVE]:
            watched.double.reset()


@pytest.fixture(scope="session")
def mockraft_options() -> dict[str, object]:
    """Options of every controller and quorum that fixtures start; for you to override. A test's marker goes first."""
    return {}


@pytest.fixture
def mockraft(request: pytest.FixtureRequest, mockraft_options: dict[str, object]) -> Iterator[SyncController]:
    """A controller of this test, on a free port, with the options of `@pytest.mark.mockraft(…)`."""
    from mockraft.testing.controller import SyncController
    from mockraft.testing.fixtures import running_controller

    yield from running_controller(request, mockraft_options, SyncController)


@pytest.fixture
def mockraft_async(request: pytest.FixtureRequest, mockraft_options: dict[str, object]) -> Iterator[AwaitedController]:
    """The same for an `async def` test, whichever plugin runs it: what waits is awaited."""
    from mockraft.testing.controller import AwaitedController
    from mockraft.testing.fixtures import running_controller

    yield from running_controller(request, mockraft_options, AwaitedController)


@pytest.fixture(scope="session")
def mockraft_session(request: pytest.FixtureRequest, mockraft_options: dict[str, object]) -> Iterator[SyncController]:
    """A controller of the whole session; stubs, faults and journal are reset after each test, its state is not."""
    from mockraft.testing.controller import SyncController
    from mockraft.testing.fixtures import running_controller

    yield from running_controller(request, mockraft_options, SyncController)


@pytest.fixture
def mockraft_quorum(request: pytest.FixtureRequest, mockraft_options: dict[str, object]) -> Iterator[SyncQuorum]:
    """Yield a quorum of three controllers, or as many as the marker sets (`controllers=5`)."""
    from mockraft.testing.fixtures import running_quorum

    yield from running_quorum(request, mockraft_options)


@pytest.fixture
def mockraft_broker(request: pytest.FixtureRequest) -> Callable[..., SyncSimulatedBroker]:
    """Return `mockraft_broker(broker_id=1, of=…, **options)`, which starts a simulated broker of the test.

    It joins the controller or quorum given as `of`, else that of the test. Options are those of `start_broker`; what it
    returns is awaited with `mockraft_async`.
    """
    from mockraft.testing.fixtures import simulated_brokers

    return simulated_brokers(request)


@pytest.fixture
def mockraft_real_broker(request: pytest.FixtureRequest) -> Iterator[Callable[..., KafkaBroker]]:
    """Yield `mockraft_real_broker(broker_id=1, of=…, **options)`, which starts one of Kafka's own broker processes.

    It joins the controller or quorum given as `of`, else the one of the test. Options are those of
    `mockraft.kafka.processes.KafkaBroker`: `version="4.1.1"`, `properties={…}`. It sends a heartbeat each 100 ms.
    Without Java 17 or Maven the test is skipped, or fails with `--mockraft-real-broker=fail`.
    """
    from mockraft.testing.fixtures import real_brokers

    yield from real_brokers(request)
