"""`MOCKRAFT_CODEC`, with and without the accelerator: never a silent fallback."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from mockraft.cli.exit_codes import ExitCode

PROGRAM = "from mockraft.wire import codec_path; print(codec_path.path)"
FITS = "TABLE_FORMAT = 3\n__version__ = '9'\ndef accelerate(structs, namespace): pass\n"
MISSING = "import mockraft_speed_is_missing\n"
BROKEN = "raise ImportError('undefined symbol: PyLong')\n"
HIDE = """
import sys
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name == "mockraft_speed":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Hidden())
"""
OTHER = "TABLE_FORMAT = 4\n__version__ = '9'\n"


def run(folder: Path, package: str | None, codec: str | None) -> subprocess.CompletedProcess[str]:
    """Import the codec in a process that has this text as the package mockraft_speed; None hides an installed one."""
    hide = HIDE if package is None else ""
    if package is not None:
        (folder / "mockraft_speed.py").write_text(package)
    environment = {name: value for name, value in os.environ.items() if name != "MOCKRAFT_CODEC"}
    environment |= {"PYTHONPATH": str(folder)} | ({} if codec is None else {"MOCKRAFT_CODEC": codec})
    command = [sys.executable, "-W", "default", "-c", hide + PROGRAM]
    return subprocess.run(command, capture_output=True, text=True, env=environment)


@pytest.mark.parametrize(
    ("package", "codec", "path"),
    [
        (None, None, "pure"),
        (None, "auto", "pure"),
        (None, "pure", "pure"),
        (FITS, None, "speed"),
        (FITS, "auto", "speed"),
        (FITS, "speed", "speed"),
        (FITS, "pure", "pure"),
        (BROKEN, "pure", "pure"),
    ],
)
def test_the_path_is_the_one_asked_for(tmp_path: Path, package: str | None, codec: str | None, path: str) -> None:
    ended = run(tmp_path, package, codec)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, f"{path}\n", "")


@pytest.mark.parametrize(
    ("package", "reason"),
    [
        (BROKEN, "mockraft-speed cannot be used (undefined symbol: PyLong): install it again"),
        (MISSING, "mockraft-speed cannot be used (No module named 'mockraft_speed_is_missing'): install it again"),
        (OTHER, "mockraft-speed 9 is for another mockraft: install both in one version"),
    ],
)
def test_an_accelerator_that_cannot_be_used_gives_one_warning(tmp_path: Path, package: str, reason: str) -> None:
    ended = run(tmp_path, package, None)
    assert (ended.returncode, ended.stdout) == (0, "pure\n")
    assert ended.stderr.count(f"RuntimeWarning: {reason}; until then the codec runs in pure Python\n") == 1
    assert ended.stderr.count("Warning") == 1


@pytest.mark.parametrize(
    ("package", "codec", "error"),
    [
        (None, "speed", "MOCKRAFT_CODEC=speed: mockraft-speed is not installed: pip install"),
        (
            BROKEN,
            "speed",
            "MOCKRAFT_CODEC=speed: mockraft-speed cannot be used (undefined symbol: PyLong): install it again",
        ),
        (OTHER, "speed", "MOCKRAFT_CODEC=speed: mockraft-speed 9 is for another mockraft: install both in one version"),
    ],
)
def test_what_cannot_be_had_is_an_error(tmp_path: Path, package: str | None, codec: str, error: str) -> None:
    ended = run(tmp_path, package, codec)
    assert ended.returncode == 1
    assert f"ImportError: {error}" in ended.stderr.splitlines()[-1]


@pytest.mark.accelerated
@pytest.mark.parametrize("module", ["_captures", "_codec"])
def test_one_module_that_cannot_be_loaded_is_a_reason(tmp_path: Path, module: str) -> None:
    import mockraft_speed

    copy = tmp_path / "mockraft_speed"
    shutil.copytree(Path(mockraft_speed.__file__).parent, copy, ignore=shutil.ignore_patterns(f"{module}*", "*.pyi"))
    ended, refused = run(tmp_path, "", None), run(tmp_path, "", "speed")
    assert (ended.returncode, ended.stdout) == (0, "pure\n")
    assert ended.stderr.count("Warning: mockraft-speed cannot be used (") == 1
    assert f"mockraft_speed.{module}" in ended.stderr or f"name '{module}'" in ended.stderr
    assert "ImportError: MOCKRAFT_CODEC=speed: mockraft-speed cannot be used (" in refused.stderr


def test_an_unknown_path_is_an_error(tmp_path: Path) -> None:
    ended = run(tmp_path, FITS, "fast")
    assert ended.returncode == 1
    assert ended.stderr.splitlines()[-1] == "ValueError: MOCKRAFT_CODEC=fast: want one of auto, pure, speed"


@pytest.mark.parametrize(("codec", "exit_code"), [("speed", ExitCode.MISSING), ("fast", ExitCode.USAGE)])
def test_the_command_line_says_it_in_one_line(codec: str, exit_code: int) -> None:
    command = [sys.executable, "-c", f"{HIDE}from mockraft.cli import main; main()", "messages", "list"]
    environment = {**os.environ, "MOCKRAFT_CODEC": codec}
    ended = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert ended.returncode == exit_code
    assert ended.stderr.startswith(f"mockraft: MOCKRAFT_CODEC={codec}: ")
    assert "Traceback" not in ended.stderr


def test_the_command_line_warns_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "mockraft_speed.py").write_text(BROKEN)
    command = [sys.executable, "-c", "from mockraft.cli import main; main()", "--version"]
    environment = {name: value for name, value in os.environ.items() if name != "MOCKRAFT_CODEC"}
    environment |= {"PYTHONPATH": str(tmp_path), "PYTHONWARNINGS": "default"}
    ended = subprocess.run(command, capture_output=True, text=True, env=environment)
    reason = "mockraft-speed cannot be used (undefined symbol: PyLong): install it again"
    assert ended.stderr == f"mockraft: {reason}; until then the codec runs in pure Python\n"
    assert (ended.returncode, ended.stdout.endswith(", codec pure\n")) == (0, True)
