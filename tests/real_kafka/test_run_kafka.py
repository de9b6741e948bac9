"""`mockraft run-kafka` from outside: its output, processes and files."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from mockraft.kafka.processes import ChildProcess

from ..clients import create_topic, produce

pytestmark = pytest.mark.real_kafka

_COMMAND = (sys.executable, "-m", "mockraft", "run-kafka")


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ChildProcess]:
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    process = ChildProcess("run-kafka", tmp_path / "output")
    yield process
    process.terminate()
    process.wait()


def _brokers(output: str) -> list[int]:
    return [int(pid) for pid in re.findall(r"Kafka \S+, process (\d+)", output)]


def test_reports_start_up_and_keeps_a_usable_cluster_until_ctrl_c(command: ChildProcess, tmp_path: Path) -> None:
    command.launch(_COMMAND)
    servers = command.wait_for_log(r"bootstrap\.servers=(\S+)", 60)[1]
    states = re.findall(r"broker 1 +([A-Z]+) ", command.log)
    assert states == ["STARTING", "STARTING", "RECOVERY", "RUNNING", "RUNNING"]
    create_topic(servers, "hello")
    assert produce(servers, "hello", ["hello, KRaft"]) == ["hello, KRaft"]
    command.wait_for_log("Ctrl-C stops everything")
    (broker,) = _brokers(command.log)
    subprocess.run(["kill", f"-{signal.SIGINT.value}", str(command.pid)], check=True)
    assert command.wait() == 0
    assert not Path(f"/proc/{broker}").exists()
    assert list((tmp_path / "temporary").glob("mockraft-*")) == []
    assert "\x1b[" not in command.log


def test_ends_with_a_message_when_a_broker_dies(command: ChildProcess) -> None:
    command.launch(_COMMAND)
    command.wait_for_log("Ctrl-C stops everything", 60)
    (broker,) = _brokers(command.log)
    subprocess.run(["kill", "-9", str(broker)], check=True)
    assert command.wait() == 1
    assert "broker 1 ended with exit code -9" in command.log
