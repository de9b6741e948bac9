"""Children that print, end and refuse to end."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from mockraft.kafka.child_process import ChildProcess, KafkaProcessError, free_port, wait_until

Start = Callable[[str], ChildProcess]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Run a Python program as a child."""
    child = ChildProcess("the child", tmp_path / "logs" / "child.log")

    def launch(program: str) -> ChildProcess:
        child.launch([sys.executable, "-c", program])
        return child

    yield launch
    child.kill()


def test_waits_for_a_line_in_the_log(start: Start) -> None:
    child = start("import time; print('epoch 17', flush=True); time.sleep(60)")
    assert child.wait_for_log(r"epoch (\d+)")[1] == "17"
    assert child.running


def test_early_end_of_a_child_reports_its_output(start: Start) -> None:
    child = start("print('no disk'); raise SystemExit(3)")
    with pytest.raises(KafkaProcessError, match=r"(?s)the child ended with exit code 3 before its ready line.*no disk"):
        child.wait_for_log("ready", what="its ready line")


def test_timeout_reports_the_childs_output(start: Start) -> None:
    child = start("import time; print('thinking', flush=True); time.sleep(60)")
    child.wait_for_log("thinking")
    with pytest.raises(KafkaProcessError, match=r"(?s)no 'ready' in 0.1 s.*thinking"):
        child.wait_for_log("ready", timeout_s=0.1)


def test_stop_sends_sigterm_and_returns_the_exit_code(start: Start) -> None:
    child = start("import time; print('up', flush=True); time.sleep(60)")
    child.wait_for_log("up")
    assert child.stop() == -15
    assert not child.running


def test_a_child_that_ignores_sigterm_is_reported_and_can_be_killed(start: Start) -> None:
    child = start(
        "import signal, time; signal.signal(15, lambda *_: None); print('up', flush=True)\nwhile 1: time.sleep(1)"
    )
    child.wait_for_log("up")
    with pytest.raises(KafkaProcessError, match=r"the child still runs after 0.2 s"):
        child.stop(timeout_s=0.2)
    child.kill()
    assert child.exit_code == -9


def test_a_second_start_has_a_log_of_its_own(start: Start) -> None:
    start("print('one')").wait()
    child = start("print('two')")
    child.wait()
    assert (child.log, child.whole_log) == ("two\n", "one\ntwo\n")


RUNS = {
    "serve": """
from mockraft.kafka.mockraft_process import MockraftController

def test_child(tmp_path):
    child = MockraftController(tmp_path / "controller", "T0ta1ly_Mocked-Cluster")
    child.start()
    child.wait_until_running()
""",
    "java": """
def test_child(mockraft_real_broker):
    child = mockraft_real_broker()
""",
}


@pytest.mark.parametrize("child", ["serve", pytest.param("java", marks=pytest.mark.real_kafka)])
def test_children_end_with_a_test_run_that_is_killed(child: str, tmp_path: Path) -> None:
    started = (
        f"    print(child.pid, file=open({str(tmp_path / 'pid')!r}, 'w'), flush=True); __import__('time').sleep(600)\n"
    )
    (tmp_path / "test_run.py").write_text(RUNS[child] + started)
    options = ["-q", "-p", "mockraft.pytest_plugin", "-p", "no:cacheprovider", "test_run.py"]
    command = [sys.executable, "-m", "pytest", *options]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL) as run:
        try:
            found = wait_until(lambda: re.match(r"(\d+)\n", _text(tmp_path / "pid")), 120, "the child's start")
        finally:
            run.kill()
    assert wait_until(lambda: not psutil.pid_exists(int(found[1])), 60, "the child's end")


def _text(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def test_killing_a_child_that_never_started_is_ignored(tmp_path: Path) -> None:
    child = ChildProcess("idle", tmp_path / "log")
    child.kill()
    assert (child.running, child.exit_code, child.log) == (False, None, "")


def test_free_ports_can_be_listened_on_and_differ_between_processes() -> None:
    ports = {free_port() for _ in range(20)}
    assert len(ports) == 20
    for port in ports:
        with socket.socket() as other, pytest.raises(OSError, match="in use"):
            other.bind(("127.0.0.1", port))
        socket.create_server(("127.0.0.1", port)).close()  # as servers do, past connections that ended a minute ago


def test_wait_until_returns_the_conditions_value_or_reports_the_timeout() -> None:
    tries = iter([None, None, "here"])
    assert wait_until(lambda: next(tries), 5, "it") == "here"
    with pytest.raises(TimeoutError, match=r"a leader: not within 0\.05 s"):
        wait_until(lambda: False, 0.05, "a leader")
