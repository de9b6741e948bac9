"""The output of Spark started by mockraft: mockraft's own messages and errors, nothing else."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark

COMMAND = (sys.executable, "-m", "mockraft", "spark", "decode", "--master", "local[1]", "--ports", "19093")
QUICK = "spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def test_log_settings_apply_only_without_user_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mockraft.spark_replay.spark.quiet_start import JAVA_OPTIONS, quiet_settings

    monkeypatch.delenv("SPARK_CONF_DIR", raising=False)
    assert "log4j2.configurationFile=file:///" in quiet_settings({})[JAVA_OPTIONS]
    assert quiet_settings({JAVA_OPTIONS: "-Xss4m"})[JAVA_OPTIONS].startswith("-Xss4m -Dlog4j2.configurationFile=")
    for own in ({"spark.log.level": "INFO"}, {JAVA_OPTIONS: "-Dlog4j2.configurationFile=mine.xml"}):
        assert quiet_settings(own) == own
    (tmp_path / "log4j2.properties").touch()
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    assert quiet_settings({}) == {}


@pytest.mark.xdist_group("spark_processes")
def test_ctrl_c_ends_a_command_and_its_java_in_one_line_and_spark_adds_none(
    controller_capture: str, tmp_path: Path
) -> None:
    command = (*COMMAND, "--captures", controller_capture, "--out", str(tmp_path / "tables"), "--conf", QUICK)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stderr is not None
        first = running.stderr.readline()
        running.send_signal(signal.SIGINT)
        # until the end of file, which comes when Java has ended, too
        rest, result = running.stderr.read(), running.stdout and running.stdout.read()
    assert first == "mockraft spark: writing frames (1 of 5)\n"
    assert rest == "mockraft spark: interrupted\n"
    assert (running.returncode, result) == (130, "")
