"""Ctrl-C during a command that runs Spark."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark

COMMAND = (sys.executable, "-m", "mockraft", "spark", "decode", "--master", "local[1]", "--ports", "19093")


@pytest.mark.xdist_group("spark_processes")
def test_ctrl_c_ends_a_command_and_its_java_in_one_line_and_spark_adds_none(
    controller_capture: str, tmp_path: Path
) -> None:
    command = (*COMMAND, "--captures", controller_capture, "--out", str(tmp_path / "tables"))
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stderr is not None
        starting = ""
        while "writing frames" not in (line := running.stderr.readline()):
            assert line
            starting += line
        running.send_signal(signal.SIGINT)
        # until the end of file, which comes when Java has ended, too
        rest, result = running.stderr.read(), running.stdout and running.stdout.read()
    assert all(each.startswith("WARNING: Using incubator modules") for each in starting.splitlines())
    assert rest == "mockraft spark: interrupted\n"
    assert (running.returncode, result) == (130, "")
