"""Every option of every command that names a file: whatever is there, one line, an exit code, and bounded memory."""

from __future__ import annotations

import re
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Final

import pytest
from mockraft import Controller
from mockraft.cli.exit_codes import ExitCode

from ..budgets import SOAKS
from .bad_files import STARTED, PathOption, make_bad_files, make_bad_folders, path_options, run_limited
from .cli import invoke

OPTIONS: Final = list(path_options())
DISTINCT: Final = list({(each.option.flag, each.option.help): each for each in OPTIONS}.values())
"""One of those that several commands share."""

CAPTURE: Final = Path(__file__).parents[1] / "captures" / "controller-4.3.1.pcap"
CODES: Final = {*ExitCode} - {ExitCode.INTERRUPTED, ExitCode.CANNOT_CONTINUE}
MEBIBYTES_MAX: Final = 600
STDERR_MAX: Final = 8_000
NEEDS_SPARK: Final = "spark"
REFUSED: Final = re.compile(r"/pipe: .*not a regular file.*\n\Z")
HANGS_S: Final = 60


@pytest.fixture
def good(tmp_path: Path) -> dict[str, str]:
    """Values of options that must be given, by flag."""
    data_dir, key = tmp_path / "good", tmp_path / "key"
    with Controller.sync(data_dir=data_dir):
        pass
    key.write_text("0123456789abcdef0")
    return {
        **dict.fromkeys(("--from", "SOURCE", "--data-dir"), str(data_dir)),
        **dict.fromkeys(("--capture", "--captures"), str(CAPTURE)),
        "--key-file": str(key),
        "--out": str(tmp_path / "out"),
        "--html": str(tmp_path / "out.html"),
        "--cluster-id": "AAAAAAAAAAAAAAAAAAAAAQ",
    }


@pytest.fixture
def no_hang() -> Iterator[None]:
    """Raise TimeoutError in a test that waits for a file."""

    def end(_: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"waits at {frame}")

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(HANGS_S)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.usefixtures("no_hang")
def test_every_option_that_names_a_file_refuses_pipes(tmp_path: Path, good: dict[str, str]) -> None:
    files = make_bad_files(tmp_path / "bad")
    wrong = []
    for option in DISTINCT:
        if option.is_for_folders or NEEDS_SPARK in option.command:
            continue
        found = invoke(*option.arguments(files["pipe"], good))
        if found.exit_code not in CODES or not REFUSED.search(found.stderr):
            wrong.append(f"{option}: {found}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.soak
@pytest.mark.parametrize("option", OPTIONS if SOAKS else [], ids=str)
def test_no_file_or_folder_stops_a_command(option: PathOption, tmp_path: Path, good: dict[str, str]) -> None:
    """Each in a process of its own, with limits of time and memory."""

    def copy(path: Path) -> None:
        shutil.copytree(good["--data-dir"], path)

    bad = make_bad_files(tmp_path / "files")
    bad |= make_bad_folders(tmp_path / "folders", copy) if option.is_for_folders else {"folder": tmp_path / "files"}
    wrong = []
    for kind, path in bad.items():
        found = run_limited(option.arguments(path, good), tmp_path)
        is_ended = found.code in CODES or found.code == STARTED
        is_short = "Traceback" not in found.stderr and len(found.stderr) <= STDERR_MAX
        if not is_ended or not is_short or found.mebibytes > MEBIBYTES_MAX:
            wrong.append(f"{kind}: {found.code}, {found.mebibytes} MiB, {found.stderr[-400:]}")
    assert not wrong, "\n".join(wrong)
