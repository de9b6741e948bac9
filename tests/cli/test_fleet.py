"""`mockraft fleet` as a process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from mockraft import Controller, SyncController

from ..rows import each_row
from .cli import DEADLINE_S, completed, invoke, one_line


@pytest.fixture(scope="module")
def controller() -> Iterator[SyncController]:
    with Controller.sync() as controller:
        yield controller


def test_a_fleet_registers_heartbeats_and_leaves(controller: SyncController, tmp_path: Path) -> None:
    where = ["--bootstrap-controller", controller.bootstrap, "--json", str(tmp_path / "run.json")]
    done = completed(
        "fleet", "--brokers", "30", "--ramp", "0.1", "--processes", "2", "--racks", "a,b", "--for", "4", *where
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "mockraft fleet: 30 brokers in 2 processes" in done.stdout
    assert "registered 30, unfenced 30, fenced 0" in done.stdout
    summary = json.loads((tmp_path / "run.json").read_text())
    assert (summary["brokers"], summary["processes"], summary["died"]) == (30, 2, {})
    assert summary["samples"][-1]["unfenced"] == 30
    assert summary["heartbeats"]["answered"] >= 30
    brokers = controller.call(lambda: controller.running.controller.image.cluster.brokers)
    assert {broker_id: brokers[broker_id].rack for broker_id in (1, 2, 29, 30)} == {1: "a", 2: "b", 29: "a", 30: "b"}


def test_ctrl_c_has_all_of_them_leave(controller: SyncController) -> None:
    where = ["--first-id", "100", "--bootstrap-controller", controller.bootstrap]
    with subprocess.Popen(
        [sys.executable, "-m", "mockraft", "fleet", "--brokers", "5", *where],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    ) as process:
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            lines.append(line)
            if "unfenced 5" in line:
                process.send_signal(signal.SIGINT)
        assert process.wait(DEADLINE_S) == 0, "".join(lines)
    assert "the brokers ask the controller for leave; Ctrl-C stops them at once\n" in lines


@each_row(
    ("arguments", "code", "said"),
    [
        (["--bootstrap-controller", "127.0.0.1:1"], 6, "mockraft fleet: cannot connect to 127.0.0.1:1"),
        (["--bootstrap-controller", "nowhere"], 2, "'nowhere' is not host:port"),
        (["--bootstrap-controller", "a:1", "--script", "none.json"], 2, "none.json: No such file"),
        (["--bootstrap-controller", "a:1", "--json", "/none/x"], 2, "cannot write /none/x: No such file"),
        (["--bootstrap-controller", "a:1", "--replication", "both"], 2, "'both' is neither own nor shared"),
    ],
)
def test_invalid_options_are_reported(arguments: list[str], code: int, said: str) -> None:
    done = invoke("fleet", *arguments)
    assert (done.exit_code, done.stdout) == (code, "")
    assert said in one_line(done.stderr)
