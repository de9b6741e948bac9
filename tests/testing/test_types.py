"""Types and help texts of the test double, as mypy and `help()` see them."""

import dataclasses
import inspect
import pydoc
import re
import subprocess
import sys
from pathlib import Path

import pytest
from mockraft import Controller, Quorum, SimulatedBroker, SyncQuorum, SyncSimulatedBroker
from mockraft.server.stubs.match import Match

from ..budgets import soak

USES = Path(__file__).with_name("typed_uses.py")


@soak
@pytest.mark.programs
def test_pyright_finds_the_errors_that_mypy_finds(tmp_path: Path) -> None:
    """`make check` runs mypy on the file."""
    lines = re.sub("# type: ignore", "# error", USES.read_text()).splitlines()
    (tmp_path / "uses.py").write_text("\n".join(lines))
    command = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "uses.py"]
    checked = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    errors = {int(each[1]) for each in re.finditer(r"uses\.py:(\d+):.* error: ", checked.stdout)}
    expected = {number for number, line in enumerate(lines, 1) if "# error" in line}
    assert errors == expected, checked.stdout + checked.stderr


def test_conditions_of_matches_have_a_type() -> None:
    declared = Path(__file__).parents[2].joinpath("server", "request_types.pyi").read_text()
    assert [each.name for each in dataclasses.fields(Match) if f"    {each.name}: " not in declared] == ["api"]


def test_blocking_methods_keep_signature_and_docstring() -> None:
    assert inspect.signature(SyncQuorum.elect) == inspect.signature(Quorum.elect)
    assert SyncSimulatedBroker.kill.__doc__ == SimulatedBroker.kill.__doc__


def test_help_and_repr_show_what_runs() -> None:
    assert re.fullmatch("<SyncQuorum of <Quorum of 3 controllers, not running>>", repr(Quorum.sync(3)))
    assert re.fullmatch("<SyncController of <Controller 3000, not running>>", repr(Controller.sync()))
    with Controller.sync(brokers=1, assert_all_used=False) as controller:
        shown = {
            controller: r"<SyncController of <Controller 3000, at 127\.0\.0\.1:\d+, 1 brokers>>",
            controller.brokers[1]: "<SyncSimulatedBroker of <SimulatedBroker 1, RUNNING>>",
            controller.state: "<StateFacade of <State of nodes 3000>>",
            controller.faults: "<ControllerFaultsFacade of <faults, 1 active>>",
            controller.faults.latency(
                latency_ms=0, client_id="nobody"
            ): "<SwitchedOnFacade of <SwitchedOn latency-1, fired 0 times>>",
        }
        for each, pattern in shown.items():
            assert re.fullmatch(pattern, repr(each)), repr(each)
            public = {name: getattr(type(each), name, None) for name in dir(type(each)) if not name.startswith("_")}
            assert [name for name, member in public.items() if not inspect.getdoc(member)] == []
        assert "Fence a broker" in pydoc.render_doc(controller.state)
        assert "timeout_s" in pydoc.render_doc(controller.wait_for)
