"""What fails once in CI gets one second try, alone; what fails twice, or by the dozen, fails."""

import subprocess
from pathlib import Path

import pytest

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


def tried(folder: Path, text: str, *options: str) -> subprocess.CompletedProcess[str]:
    (folder / "pytest.ini").write_text("[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    (folder / "test_it.py").write_text(text)
    return subprocess.run(
        [str(ROOT / ".ci" / "pytest"), "-q", *options, "test_it.py"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_test_that_workers_had_as_one_of_a_group_is_tried_by_its_own_name(tmp_path: Path) -> None:
    grouped = FAILS_AT_FIRST.replace("class Test", '@pytest.mark.xdist_group("browser")\nclass Test')
    done = tried(tmp_path, grouped, "-n", "1", "--dist", "loadgroup")
    assert done.returncode == 0, done.stdout
    named = done.stdout.partition("unsteady (passed on the second try only):\n")[2].splitlines()
    assert named == [f"test_it.py::TestInAClass::test_fails_at_first[{what}]" for what in ("a b", "c::d[e]")]


def test_what_passes_on_the_second_try_is_named_as_unsteady(tmp_path: Path) -> None:
    done = tried(tmp_path, FAILS_AT_FIRST)
    assert done.returncode == 0, done.stdout
    named = done.stdout.partition("unsteady (passed on the second try only):\n")[2].splitlines()
    assert named == [f"test_it.py::TestInAClass::test_fails_at_first[{what}]" for what in ("a b", "c::d[e]")]


SEVEN_FAIL = """
import pytest
@pytest.mark.parametrize("n", range(7))
def test_fails(n):
    assert False
"""


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("def test_fails():\n    assert False\n", "failed twice: test_it.py::test_fails"),
        (
            "import pytest\n@pytest.mark.parametrize('n', range(7))\ndef test_fails(n):\n    assert False\n",
            "7 tests failed",
        ),
        ("import nothing_of_this_name\n", ""),
    ],
)
def test_what_fails_twice_or_by_the_dozen_or_cannot_be_read_fails(tmp_path: Path, text: str, why: str) -> None:
    done = tried(tmp_path, text)
    assert done.returncode != 0
    assert why in done.stderr
