"""`.ci/pytest` runs failed tests with Kafka's processes once more, two at most, and no others."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from .rows import each_row

pytestmark = pytest.mark.one_python

CI = Path(__file__).parents[1] / ".ci"

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
CASE = """<testcase file="{file}" classname="{module}" name="test_it"><failure/></testcase>"""


def test_two_tests_with_kafka_may_pass_on_the_second_try_and_are_named(tmp_path: Path) -> None:
    folder = tmp_path / "tests" / "real_kafka"
    folder.mkdir(parents=True)
    (tmp_path / "pytest.ini").write_text("[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    (folder / "test_it.py").write_text(FAILS_AT_FIRST)
    done = subprocess.run(
        [str(CI / "pytest"), "-q", "tests/real_kafka/test_it.py"],
        cwd=tmp_path,
        env={**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    named = done.stdout.partition("passed on the second try only:\n")[2].splitlines()
    assert named == [f"tests/real_kafka/test_it.py::TestInAClass::test_fails_at_first[{w}]" for w in ("a b", "c::d[e]")]


@each_row(
    "files",
    {
        "none": [],
        "without Kafka": ["tests/server/test_a.py"],
        "one without Kafka": ["tests/real_kafka/test_a.py", "tests/server/test_a.py"],
        "three": [f"tests/real_kafka/test_{name}.py" for name in "abc"],
    },
)
def test_other_failures_are_final(tmp_path: Path, files: list[str]) -> None:
    cases = [CASE.format(file=file, module=file.removesuffix(".py").replace("/", ".")) for file in files]
    (tmp_path / "report.xml").write_text(f"<testsuites>{''.join(cases)}</testsuites>")
    command = [sys.executable, str(CI / "failed_tests.py"), str(tmp_path / "report.xml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("no second try:")
