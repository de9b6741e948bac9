"""Controllers of a task's sessions, forked from one process that has imported mockraft."""

import json
import os
import subprocess
import sys
from urllib.request import urlopen

import psutil
import pyarrow as pa
import pytest
from mockraft.spark_replay.exchanges import read_exchanges
from mockraft.spark_replay.regression.captured import Captured, to_batch
from mockraft.spark_replay.regression.send_order import CAUSAL, PACED, survey
from mockraft.spark_replay.regression.session_replay import Run, replay_session
from mockraft.spark_replay.regression.targets import FreshProcess, Target, TargetError

from .conftest import CAPTURE

SERVE = (sys.executable, "-m", "mockraft", "serve", "--port", "0")


def children(pid: int) -> list[psutil.Process]:
    """Return the processes that this one started. psutil's own `children` compares times of a clock that is set."""
    return [each for each in psutil.process_iter(["ppid", "cmdline"]) if each.info["ppid"] == pid]


def differences(exchanges: list[Captured], target: Target) -> list[str]:
    found = pa.Table.from_batches([diffs for _, diffs in replay_session([to_batch(exchanges)], Run("r", target), "s")])
    return [kind for kind in found["kind"].to_pylist() if kind != "volatile_ok"]


def test_each_session_has_a_controller_of_its_own(exchanges: list[Captured]) -> None:
    with FreshProcess(SERVE).for_sessions() as target:
        assert target.name == "mockraft"
        for _ in range(2):  # on the first one's controller the second would find its topics
            assert differences(exchanges, target) == []
        (forking,) = (each for each in children(os.getpid()) if "mockraft.cli.forking" in each.info["cmdline"])
        with target.open(survey(read_exchanges(CAPTURE, {19093})), CAUSAL) as opened:
            assert len(children(forking.pid)) == 1
            with urlopen(f"{opened.admin}/v1/clock") as answer:
                assert json.load(answer)["virtual"]
    assert not forking.is_running()


def test_refused_options_and_failed_starts_are_errors_with_their_output(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(complaint: str, *options: str) -> None:
        with FreshProcess([*SERVE, *options]).for_sessions() as target, pytest.raises(TargetError, match=complaint):
            target.open(survey([]), PACED).__enter__()

    fails("'LOUD' is none of debug, info", "--log-level", "LOUD")
    monkeypatch.setattr("mockraft.spark_replay.regression.forked_processes.FORKING", "mockraft.no_module")
    fails("No module named mockraft.no_module")


def test_controllers_end_with_a_killed_task() -> None:
    task = (
        "import tempfile, time\n"
        "from mockraft.spark_replay.regression.forked_processes import ForkingProcess\n"
        "forking = ForkingProcess()\n"  # the process ends with this object
        "fork = forking.fork(['serve', '--port', '0', '--until-stdin-ends'], tempfile.TemporaryFile())\n"
        "print(fork.pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", task], stdout=subprocess.PIPE) as running:
        assert running.stdout is not None
        controller = psutil.Process(int(running.stdout.readline()))
        started = [controller, psutil.Process(controller.ppid())]
        assert "mockraft.cli.forking" in started[1].cmdline()
        running.kill()
    assert psutil.wait_procs(started, timeout=30)[1] == []
