"""Fixtures as a test suite uses them, in pytest runs of their own, and the package by which pytest finds the plugin."""

import tomllib
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest

pytest_plugins = "pytester"

Run = Callable[..., pytest.RunResult]


def test_a_test_has_a_controller_of_its_own(run_pytest: Run) -> None:
    result = run_pytest(
        """
        seen = []

        def test_one(mockraft):
            seen.append((mockraft.port, mockraft.cluster_id))
            assert mockraft.bootstrap == f"127.0.0.1:{mockraft.port}"

        def test_two(mockraft):
            assert (mockraft.port, mockraft.cluster_id) not in seen
        """
    )
    result.assert_outcomes(passed=2)


def test_the_nearest_marker_takes_precedence(run_pytest: Run) -> None:
    result = run_pytest(
        """
        import pytest

        @pytest.mark.mockraft(session_timeout_ms=2000, node_id=7)
        class TestIt:
            @pytest.mark.mockraft(session_timeout_ms=3000)
            def test_one(self, mockraft):
                config = mockraft.running.config
                assert (config.session_timeout_ms, config.node_id) == (3000, 7)

            def test_two(self, mockraft):
                assert mockraft.running.config.session_timeout_ms == 2000
        """
    )
    result.assert_outcomes(passed=2)


def test_a_suite_gives_options_to_all_its_controllers(run_pytest: Run) -> None:
    result = run_pytest(
        """
        import pytest

        @pytest.fixture(scope="session")
        def mockraft_options():
            return {"session_timeout_ms": 4000, "seed": 5}

        def test_one(mockraft, mockraft_session):
            assert mockraft.running.config.session_timeout_ms == 4000
            assert mockraft_session.running.config.session_timeout_ms == 4000
        """
    )
    result.assert_outcomes(passed=1)


def test_an_option_that_is_none_is_an_error_that_names_those_like_it(run_pytest: Run) -> None:
    result = run_pytest(
        """
        import pytest

        @pytest.mark.mockraft(sesion_timeout_ms=2000)
        def test_one(mockraft): pass

        @pytest.mark.mockraft(2000)
        def test_two(mockraft): pass

        @pytest.mark.mockraft(metadata_version="nine")
        def test_three(mockraft): pass

        @pytest.mark.mockraft(brokers="2")
        def test_four(mockraft): pass

        @pytest.mark.mockraft(controllers="2")
        def test_five(mockraft_quorum): pass

        @pytest.mark.mockraft(controllers=3)
        def test_six(mockraft): pass

        @pytest.mark.mockraft(broker=3)
        def test_seven(mockraft): pass

        @pytest.mark.mockraft(controler=3)
        def test_eight(mockraft_quorum): pass

        @pytest.mark.mockraft(strict="no")
        def test_nine(mockraft): pass
        """
    )
    result.assert_outcomes(errors=9)
    result.stdout.fnmatch_lines(
        [
            "*sesion_timeout_ms*did you mean session_timeout_ms*",
            "*takes options by name*",
            "*nine*",
            "*brokers='2': it must be an integer",
            "*controllers='2': it must be an integer",
            "*controllers=3: several controllers are the fixture mockraft_quorum",
            "@pytest.mark.mockraft or mockraft_options: there is no option broker; did you mean brokers*",
            "@pytest.mark.mockraft or mockraft_options: there is no option controler; did you mean controllers*",
            "@pytest.mark.mockraft or mockraft_options: strict='no': it must be True or False",
        ]
    )
    result.stdout.no_fnmatch_line("*During handling*")
    result.stdout.no_fnmatch_line("*Traceback*")
    result.stdout.no_fnmatch_line("*front/*.py:*")


def test_brokers_run_beside_the_controller(run_pytest: Run) -> None:
    result = run_pytest(
        """
        import pytest
        from mockraft import BrokerState

        @pytest.mark.mockraft(brokers=1)
        def test_one(mockraft, mockraft_broker):
            assert mockraft.brokers[1].state is BrokerState.RUNNING
            assert mockraft_broker(2, rack="b").state is BrokerState.RUNNING
            assert sorted(mockraft.brokers) == [1, 2]
        """
    )
    result.assert_outcomes(passed=1)


def test_marker_sets_the_number_of_controllers(run_pytest: Run) -> None:
    result = run_pytest(
        """
        import pytest
        from mockraft import BrokerState

        @pytest.mark.mockraft(controllers=2)
        def test_one(mockraft_quorum, mockraft_broker):
            assert len(mockraft_quorum.node_ids) == 2
            assert mockraft_broker(of=mockraft_quorum).state is BrokerState.RUNNING
        """
    )
    result.assert_outcomes(passed=1)


def test_a_controller_of_the_session_is_the_same_in_every_test(run_pytest: Run) -> None:
    result = run_pytest(
        """
        import pytest

        seen = set()

        @pytest.fixture(scope="session")
        def system_under_test(mockraft_session):
            return mockraft_session.bootstrap

        @pytest.mark.parametrize("n", [1, 2])
        def test_one(n, mockraft_session, system_under_test):
            seen.add(mockraft_session.bootstrap)
            assert seen == {system_under_test}
        """
    )
    result.assert_outcomes(passed=2)


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


def test_a_unittest_case_uses_the_fixture_too(run_pytest: Run) -> None:
    result = run_pytest(
        """
        import unittest
        import pytest
        from mockraft import Controller

        class TestWithFixture(unittest.TestCase):
            @pytest.fixture(autouse=True)
            def _controller(self, mockraft):
                self.controller = mockraft

            def test_one(self):
                self.assertIn(":", self.controller.bootstrap)

        class TestWithout(unittest.TestCase):
            def setUp(self):
                self.controller = self.enterContext(Controller.sync())

            def test_one(self):
                self.assertIn(":", self.controller.bootstrap)
        """
    )
    result.assert_outcomes(passed=2)


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


def test_simulated_broker_is_closed_with_its_test(run_pytest: Run) -> None:
    result = run_pytest(
        """
        import pytest

        @pytest.mark.mockraft(controllers=1, session_timeout_ms=600_000)
        def test_one(mockraft_broker, mockraft_quorum):
            mockraft_broker(1, of=mockraft_quorum)
            mockraft_quorum.stub("BrokerHeartbeat").drop()
            mockraft_quorum.wait_for("BrokerHeartbeat", since=mockraft_quorum.mark())
        """
    )
    result.assert_outcomes(passed=1)


ROOT = Path(__file__).parents[3]


def project(folder: Path) -> dict[str, object]:
    read: dict[str, object] = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    return read


def test_package_names_the_plugin_and_matches_its_version() -> None:
    package, mockraft = project(ROOT / "pytest_mockraft"), project(ROOT)
    assert package["entry-points"] == {"pytest11": {"mockraft.pytest_plugin": "mockraft.pytest_plugin"}}
    assert hasattr(import_module("mockraft.pytest_plugin"), "pytest_addoption")
    assert [package[name] for name in ("version", "requires-python")] == [
        mockraft[name] for name in ("version", "requires-python")
    ]


def test_mockraft_itself_has_no_plugin_so_that_pytest_does_not_read_its_thousand_files() -> None:
    assert "entry-points" not in project(ROOT)
