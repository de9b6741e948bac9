"""`mockraft lab` as a person runs it, on the examples of the docs."""

import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from mockraft.kafka.child_process import wait_until
from mockraft.testing.lab import trial
from mockraft.testing.lab.trial import Subject
from mockraft.wire.json_form import Tree

from ...budgets import soak
from ...cli.cli import DEADLINE_S, invoke

LAB = Path(__file__).parents[3] / "examples" / "lab"
PROVISION = [sys.executable, str(LAB / "provision.py")]
PYTEST = [sys.executable, "-m", "pytest", "-q", "-p", "mockraft.pytest_plugin", "-c", os.devnull]


def test_finds_the_lost_answer_that_breaks_a_service(tmp_path: Path) -> None:
    out = tmp_path / "lab"
    ended = invoke("lab", "--brokers", "1", "--seed", "5", "--repeats", "1", "--out", str(out), "--", *PROVISION)
    assert ended.exit_code == 1, ended.stderr
    assert "undisturbed: passed" in ended.stdout
    assert "CreateTopics 1: it is handled, then the connection closes" in ended.stdout
    assert "RuntimeError: cannot create orders: error 36" in ended.stdout
    assert "1 of 1 times" in ended.stdout
    (stub,) = json.loads((out / "schedule.json").read_text())["stubs"]
    assert stub["match"] == {"api": "CreateTopics"}
    page = (out / "story.html").read_text()
    assert "CreateTopics 1: it is handled, then the connection closes" in page
    assert page.count('class="bar disturbed"') == 1

    repeat = shlex.split(ended.stdout.partition("repeat it:")[2].splitlines()[0])
    assert repeat[:5] == ["mockraft", "lab", "--brokers", "1", "--schedule"]
    again = invoke("lab", "--repeats", "1", "--out", out, *repeat[2:])
    assert (again.exit_code, "failed 1 of 1 times" in again.stdout) == (1, True)


def test_passes_when_nothing_breaks_it(tmp_path: Path) -> None:
    asks = "import os, socket; h, p = os.environ['MOCKRAFT_BOOTSTRAP'].split(':'); socket.create_connection((h, p))"
    ended = invoke("lab", "--brokers", "1", "--runs", "2", "--", sys.executable, "-c", asks)
    assert ended.exit_code == 0, ended.stderr
    assert "passed under 2 schedules, seeds 1 to 2" in ended.stdout


@pytest.mark.parametrize(
    ("command", "code", "why"),
    [
        ([sys.executable, "-c", "print('broken'); raise SystemExit(3)"], 1, "fails without any disturbance"),
        pytest.param([sys.executable, "-c", ""], 2, "no request reached the controller", marks=soak),
        (["/nowhere/test"], 2, "/nowhere/test: No such file or directory"),
        ([], 2, "what to run is missing"),
    ],
)
def test_refuses_a_command_that_it_cannot_judge(command: list[str], code: int, why: str) -> None:
    ended = invoke("lab", "--", *command)
    assert ended.exit_code == code
    assert why in ended.stderr.replace("\n", " ")
    assert "Traceback" not in ended.stderr


def test_fixtures_of_pytest_get_the_schedule(tmp_path: Path) -> None:
    command = [*PYTEST, str(LAB / "test_forgetful_broker.py")]
    lost_heartbeat: Tree = {
        "match": {"api": "BrokerHeartbeat", "brokerId": 1},
        "trigger": {"onCall": 6},
        "actions": [{"delayOn": {"ms": 2_000}}],
    }
    failed = trial.run(Subject(command), {"stubs": [lost_heartbeat]}, tmp_path / "disturbed")
    assert failed.failed
    assert "expected at least 12" in failed.output


@soak
def test_pytest_without_the_plugin_runs(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text("def test_it() -> None: pass")
    command = [sys.executable, "-m", "pytest", "-p", "no:mockraft.pytest_plugin", "-c", os.devnull, str(tmp_path)]
    outcome = trial.run(Subject(command), {"stubs": []}, tmp_path / "run")
    assert not outcome.failed, outcome.output


def test_command_that_does_not_end_is_killed_with_its_children(tmp_path: Path) -> None:
    command = ["sh", "-c", "sleep 60 & echo $!; wait"]
    outcome = trial.run(Subject(command, timeout_s=2), {"stubs": []}, tmp_path / "run")
    assert (outcome.exit_code, str(outcome).split(" after")[0]) == (None, "failed, did not end")
    wait_until(lambda: has_ended(int(outcome.output)), DEADLINE_S, "the end of the child")


def has_ended(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_stopped_lab_kills_the_command_and_deletes_its_files(tmp_path: Path) -> None:
    writes = f"import os, time; open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    command = [sys.executable, "-m", "mockraft", "lab", "--", sys.executable, "-c", writes]
    (tmp_path / "temporary").mkdir()
    with subprocess.Popen(command, env={**os.environ, "TMPDIR": str(tmp_path / "temporary")}) as lab:
        wait_until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text(), DEADLINE_S, "the command")
        lab.send_signal(signal.SIGTERM)
        assert lab.wait(DEADLINE_S) == 128 + signal.SIGTERM
    wait_until(lambda: has_ended(int((tmp_path / "pid").read_text())), DEADLINE_S, "the end of the command")
    assert list((tmp_path / "temporary").iterdir()) == []


def test_schedule_that_is_no_json_is_named(tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text("{")
    ended = invoke("lab", "--schedule", str(tmp_path / "bad.json"), "--", "true")
    assert (ended.exit_code, "bad.json, line 1: not JSON" in ended.stderr) == (2, True)


@soak
def test_stub_that_is_wrong_is_named_by_the_file_of_the_user(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.json"
    wrong.write_text('{"stubs": [{"match": {"api": "Heartbeats"}}]}')
    ended = invoke("lab", "--schedule", str(wrong), "--", "true")
    assert ended.exit_code == 2
    assert f"{wrong}: stubs[0].match.api" in ended.stderr


@soak
def test_only_the_end_of_a_long_output_is_kept(tmp_path: Path) -> None:
    writes = "print('x' * 1_000_000); print('the end')"
    outcome = trial.run(Subject([sys.executable, "-c", writes]), {"stubs": []}, tmp_path / "run")
    assert len(outcome.output) == trial.OUTPUT_BYTES_MAX
    assert outcome.output.endswith("the end\n")
