"""One trial: the command, once, with a controller of its own under a schedule."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mockraft.testing.controller import SyncController
    from mockraft.wire.json_form import Tree

STUBS, OUTPUT = "stubs.json", "output.txt"
"""The files of a trial's folder, beside the journals `*.jsonl`."""

OUTPUT_BYTES_MAX = 64 * 1024
"""Size of the end of the command's output that is kept in memory."""

BROKERS_S = 10.0
"""Time in which simulated brokers should run before the command begins."""

LAB_VARIABLE = "MOCKRAFT_LAB"
"""Environment variable of the pytest plugin: the trial's folder, for the controllers of its fixtures."""

TIMED_OUT = None
"""Exit code of a command that did not end in time."""


@dataclass(frozen=True)
class Subject:
    """A command to test, the maximum seconds of a run, and its controller: simulated brokers and options."""

    command: Sequence[str]
    timeout_s: float = 60
    brokers: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class TrialResult:
    """The result of a trial; `requests` are journal entries as the admin API has them, in the order of their times."""

    exit_code: int | None
    seconds: float
    output: str
    requests: Sequence[Tree]

    @property
    def failed(self) -> bool:
        """Return True if the command failed, or did not end in time."""
        return self.exit_code != 0

    def __str__(self) -> str:
        ended = "did not end" if self.exit_code is TIMED_OUT else f"exit code {self.exit_code}"
        return f"{'failed' if self.failed else 'passed'}, {ended} after {self.seconds:.1f} s"


def run(subject: Subject, stubs: Tree, folder: Path) -> TrialResult:
    """Run the command with these stubs, in a folder that is made for the trial's files. OSError if it cannot start."""
    from mockraft.testing.controller import Controller

    folder.mkdir(parents=True)
    (folder / STUBS).write_text(json.dumps(stubs, indent=1) + "\n")
    with Controller.sync(admin_port=0, assert_all_used=False, stubs=folder / STUBS, **subject.options) as controller:
        for broker_id in range(1, subject.brokers + 1):
            controller.start_broker(broker_id, wait=None)
        with suppress(TimeoutError):  # the schedule may keep them from it
            controller.wait_until(lambda: _unfenced(controller) == subject.brokers, BROKERS_S)
        environment = {
            "COLUMNS": "200",  # so that pytest cuts no line
            **os.environ,
            "MOCKRAFT_BOOTSTRAP": controller.bootstrap,
            "MOCKRAFT_CLUSTER_ID": controller.cluster_id,
            "MOCKRAFT_ADMIN": controller.admin_url,
            LAB_VARIABLE: str(folder.resolve()),
        }
        began = time.monotonic()
        with (folder / OUTPUT).open("wb") as output:
            exit_code = _exit_code(subject, environment, output.fileno())
        seconds = time.monotonic() - began
        controller.write_journal(folder / "controller.jsonl")
    return TrialResult(exit_code, seconds, _end_of(folder / OUTPUT), _requests(folder))


def _unfenced(controller: SyncController) -> int:
    return sum(not each.fenced for each in controller.state.brokers())


def _exit_code(subject: Subject, environment: Mapping[str, str], output: int) -> int | None:
    process = subprocess.Popen(
        subject.command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        start_new_session=True,  # so that all its processes can be ended
    )
    try:
        return process.wait(subject.timeout_s)
    except subprocess.TimeoutExpired:
        return TIMED_OUT
    finally:
        with suppress(ProcessLookupError, PermissionError):  # nobody is left in it; the second on macOS
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _end_of(path: Path) -> str:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - OUTPUT_BYTES_MAX))
        return file.read().decode(errors="replace")


def _requests(folder: Path) -> list[Tree]:
    """Read the journals of the trial's controllers."""
    entries = [
        json.loads(line) for path in sorted(folder.glob("*.jsonl")) for line in path.read_text().splitlines() if line
    ]
    return sorted((each for each in entries if "api" in each), key=lambda each: each["receivedMs"])
