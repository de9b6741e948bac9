"""Runs of pytest inside a test, with mockraft's plugin and no other."""

from collections.abc import Callable

# Here, so that no run within has to import it all again.
import mockraft.testing.fixtures
import pytest


@pytest.fixture
def run_pytest(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Callable[..., pytest.RunResult]:
    """`run_pytest(source, *options, conftest="", plugins=())`: the result of a run in this process."""
    assert mockraft.testing.fixtures is not None
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.delenv("CI", raising=False)  # With it pytest's summary repeats each error as a whole.

    def run(source: str, *options: str, conftest: str = "", plugins: tuple[str, ...] = ()) -> pytest.RunResult:
        if conftest:
            pytester.makeconftest(conftest)
        pytester.makepyfile(source)
        loaded = [part for name in ("mockraft.pytest_plugin", *plugins) for part in ("-p", name)]
        return pytester.runpytest_inprocess(*loaded, "-p", "no:cacheprovider", "--strict-markers", *options)

    return run
