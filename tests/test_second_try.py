"""`.ci/pytest` runs recorded unsteady tests twice, and at most two others."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from .named_tests import names_in

pytestmark = pytest.mark.one_python

ROOT = Path(__file__).parents[1]

FAILS_AT_FIRST = """
import pathlib, pytest

class TestInAClass:
    @pytest.mark.parametrize("what", ["a b", "c::d[e]"])
    def test_fails_at_first(self, what):
        seen = pathlib.Path(__file__).parent / f"seen-{what[0]}"
        was_there = seen.exists()
        seen.touch()
        assert was_there

def test_passes():
    assert True
"""
RECORDED = "test_it.py::TestInAClass::test_fails_at_first"
NOT_RECORDED = "failed, and not recorded as unsteady:\ntest_it.py::TestInAClass"


def tried(folder: Path, text: str, *options: str, recorded: str = RECORDED) -> subprocess.CompletedProcess[str]:
    (folder / "pytest.ini").write_text("[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    (folder / "test_it.py").write_text(text)
    (folder / "unsteady.toml").write_text(f'[[unsteady]]\ntest = "{recorded}"\ncause = "for this test"\n')
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        [str(ROOT / ".ci" / "pytest"), "-q", "-p", "no:schemathesis", *options, "test_it.py"],
        cwd=folder,
        env={**os.environ, "PATH": path, "UNSTEADY_TESTS": "unsteady.toml"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("options", [(), ("-n", "1", "--dist", "loadgroup")])
def test_recorded_tests_may_pass_on_the_second_try(tmp_path: Path, options: tuple[str, ...]) -> None:
    text = FAILS_AT_FIRST.replace("class Test", '@pytest.mark.xdist_group("browser")\nclass Test')
    done = tried(tmp_path, text, *options)
    assert done.returncode == 0, done.stdout
    named = done.stdout.partition("unsteady (passed on the second try only):\n")[2].splitlines()
    assert named == [f"{RECORDED}[{what}]" for what in ("a b", "c::d[e]")]


def test_two_others_may_pass_on_the_second_try_and_are_named(tmp_path: Path) -> None:
    done = tried(tmp_path, FAILS_AT_FIRST, recorded="test_it.py::test_passes")
    assert done.returncode == 0, done.stdout
    assert NOT_RECORDED in done.stderr


@pytest.mark.parametrize(
    ("text", "recorded", "message"),
    [
        ("def test_fails():\n    assert False\n", "test_it.py::test_fails", "failed twice: test_it.py::test_fails"),
        (FAILS_AT_FIRST.replace('["a b"', '["3", "a b"'), "test_it.py::test_passes", NOT_RECORDED),
        ("import nothing_of_this_name\n", RECORDED, ""),
    ],
    ids=["fails twice", "three not recorded", "not importable"],
)
def test_other_failures_are_final(tmp_path: Path, text: str, recorded: str, message: str) -> None:
    done = tried(tmp_path, text, recorded=recorded)
    assert done.returncode != 0
    assert message in done.stderr


def test_recorded_tests_exist_use_real_kafka_and_have_a_cause() -> None:
    for each in tomllib.loads((ROOT / "tests" / "unsteady.toml").read_text()).get("unsteady", []):
        path, _, name = each["test"].partition("::")
        assert path.startswith("tests/real_kafka/")
        assert name.rpartition("::")[2] in names_in(path)
        assert len(each["cause"]) > 20
