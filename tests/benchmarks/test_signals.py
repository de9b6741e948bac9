"""Benchmarks that are ended by signals leave no process behind."""

import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from mockraft.kafka.child_process import wait_until

from ..budgets import soak

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
ENDS_WITHIN_S = 60
QUORUM = """
import os, signal, sys
from pathlib import Path
from failover import OURS, quorum
from result import end_on_signals

end_on_signals()
# A signal right before signal.pause() would be noticed at the next one only.
received, woken = os.pipe()
os.set_blocking(woken, False)
signal.set_wakeup_fd(woken)
with quorum(OURS, Path(sys.argv[1])) as controllers:
    print(*(each.pid for each in controllers.values()), flush=True)
    os.read(received, 1)
"""
WATCHED = """
import sys
from result import end_on_signals
from watched_processes import run

end_on_signals()
run(["bash", "-c", "sleep 600 & echo $$ $! > /proc/$PPID/fd/1; wait"], 600)
"""


def has_ended(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


@soak
@pytest.mark.parametrize("program", [QUORUM, WATCHED], ids=["quorum", "watched command"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signals_end_what_a_benchmark_started(tmp_path: Path, program: str, number: signal.Signals) -> None:
    command = [sys.executable, "-c", program, str(tmp_path)]
    log = tmp_path / "stderr"
    with log.open("wb") as errors:
        process = subprocess.Popen(command, cwd=BENCHMARKS, stdout=subprocess.PIPE, stderr=errors, text=True)
    try:
        assert process.stdout is not None
        started = [int(each) for each in process.stdout.readline().split()]
        assert len(started) > 1
        assert not any(map(has_ended, started))
        for each in (number, signal.SIGTERM):  # run.py sends the second one
            process.send_signal(each)
        # The pipe stays open until then: CPython exits with 120 if it cannot flush what it says about a second signal.
        process.wait(ENDS_WITHIN_S)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode in (128 + number, 128 + signal.SIGTERM), log.read_text()
    wait_until(lambda: all(map(has_ended, started)), 60, f"the end of {started}")
