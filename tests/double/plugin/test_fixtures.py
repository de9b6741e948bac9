"""Fixtures as a test suite uses them, in pytest runs of their own."""

from collections.abc import Callable

import pytest

pytest_plugins = "pytester"

Run = Callable[..., pytest.RunResult]


def test_async_suite_awaits_its_controller(run_pytest: Run) -> None:
    source = """
        import pytest

        MARK

        async def test_one(mockraft_async):
            broker = await mockraft_async.start_broker(1)
            assert broker.state.name == "RUNNING"
        """
    asyncio_plugin = {"plugins": ("pytest_asyncio.plugin",)}
    strict = source.replace("MARK", "pytestmark = pytest.mark.asyncio")
    ini = ("-o", "asyncio_default_fixture_loop_scope=function")
    run_pytest(strict, "-o", "asyncio_mode=strict", *ini, **asyncio_plugin).assert_outcomes(passed=1)
    auto = source.replace("MARK", "")
    run_pytest(auto, "-o", "asyncio_mode=auto", *ini, **asyncio_plugin).assert_outcomes(passed=1)
    backend = "pytestmark = pytest.mark.anyio\n\n        anyio_backend = pytest.fixture(lambda: 'asyncio')"
    anyio = source.replace("MARK", backend)
    run_pytest(anyio, plugins=("anyio.pytest_plugin",)).assert_outcomes(passed=1)


def test_a_real_broker_that_cannot_run_skips_the_test_or_fails_it(
    run_pytest: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    source = """
        def test_one(mockraft_real_broker):
            mockraft_real_broker()
        """
    result = run_pytest(source, "-rs")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["*SKIPPED*a real Kafka broker cannot run here*"])
    run_pytest(source, "--mockraft-real-broker=fail").assert_outcomes(failed=1)
