"""`mockraft twin`: a running copy, and its changes."""

import json
import re
import shutil
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from mockraft import Controller
from mockraft.twin import read_history

from ..cli.cli import invoke, one_line, started
from ..rows import each_row
from .directories import write_directory

CAPTURE = Path(__file__).parents[1] / "captures" / "controller-4.3.1.pcap"


def test_a_twin_runs_until_a_signal() -> None:
    ready = r"mockraft ready bootstrap=\S+ cluster_id=p66Y0sRpQNGVKjK4oTgauw node_id=3001 admin=off .*\n"
    arguments = ("twin", "--from", CAPTURE, "--at", 100, "--port", 0, "--session-timeout-ms", 60000)
    with started(*arguments, ready=ready + "?") as (process, found):
        assert "release=4.3 metadata_version=30" in found[0]
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=30)
        assert process.returncode == 0
    assert "up to offset 100 (2026-11-20T09:13:36.033Z): 2 brokers, 3 topics, 8 partitions" in errors


def test_diff_prints_lines() -> None:
    result = invoke("twin", "diff", "--from", CAPTURE, "--at", 19, "--to", "2026-11-20T09:13:14.026Z")
    assert (result.exit_code, result.stdout) == (0, "broker 1: state fenced → unfenced\n")
    assert "up to offset 19 " in result.stderr


def test_diff_prints_json() -> None:
    result = invoke("twin", "diff", "--from", CAPTURE, "--at", 42, "--to", 43, "--json")
    assert json.loads(result.stdout) == {"from": 42, "to": 43, "changes": []}
    result = invoke("twin", "diff", "--from", CAPTURE, "--at", 37, "--to", 42, "--json")
    changes = json.loads(result.stdout)["changes"]
    assert changes[0] == {"subject": "broker 2", "what": "registered", "before": None, "after": True}


def test_diff_prints_each_change_with_its_offset() -> None:
    result = invoke("twin", "diff", "--from", CAPTURE, "--at", 19, "--to", 42, "--each")
    lines = result.stdout.splitlines()
    assert lines[0] == "21–22  2026-11-20T09:13:14.026Z  broker 1: state fenced → unfenced"
    assert lines[-1] == "42  2026-11-20T09:13:22.816Z  broker 2: state fenced → unfenced"
    as_json = invoke("twin", "diff", "--from", CAPTURE, "--at", 19, "--to", 42, "--each", "--json")
    first = json.loads(as_json.stdout)["changes"][0]
    assert (first["offset"], first["time"], first["after"]) == (22, "2026-11-20T09:13:14.026Z", "unfenced")
    nothing = invoke("twin", "diff", "--from", CAPTURE, "--at", 42, "--to", 43, "--each")
    assert nothing.stdout == "nothing changed\n"


def test_a_point_inside_a_batch_is_no_state_of_a_broker(tmp_path: Path) -> None:
    directory = write_directory(tmp_path / "data")
    history = read_history(directory)
    batch = next(each.header for each in history.batches if each.header.last_offset > each.header.base_offset > 9)
    first, last = batch.base_offset, batch.last_offset
    inside = invoke("twin", "diff", "--from", directory, "--at", first, "--to", last, "--each")
    assert inside.stderr.count(f"offset {first} is inside the batch {first}–{last}, which brokers apply at once") == 1
    outside = invoke("twin", "diff", "--from", directory, "--at", first - 1, "--to", last, "--each")
    assert "is inside the batch" not in outside.stderr
    assert {line.split("  ")[0] for line in outside.stdout.splitlines()} == {f"{first}–{last}"}


def test_records_are_listed_by_offset() -> None:
    result = invoke("twin", "records", "--from", CAPTURE, "--at", 22, "--to", 22)
    assert result.stdout.startswith('22  2026-11-20T09:13:14.026Z  BrokerRegistrationChangeRecord  {"brokerId": 1, ')
    as_json = json.loads(invoke("twin", "records", "--from", CAPTURE, "--at", 20, "--to", 30, "--json").stdout)
    assert [each["offset"] for each in as_json["records"]][:: len(as_json["records"]) - 1] == [20, 30]
    assert {"epoch", "timestampMs", "type", "version", "record"} <= as_json["records"][0].keys()


def test_diff_covers_everything_by_default() -> None:
    result = invoke("twin", "diff", "--from", CAPTURE)
    assert "topic t1: created with 4 partitions, replication factor 2" in result.stdout
    assert "controller 3000: registered" in result.stdout
    assert "controller 3000: supported features metadata.version [7, " in result.stdout


@each_row(
    ("arguments", "error"),
    [
        ((), "say of what: --from DIR|CHECKPOINT|PCAP"),
        (("--from", "/nowhere"), "/nowhere: cannot be read: No such file or directory"),
        (("records", "--from", CAPTURE, "--at", "12", "--to", "10"), "10 is before 12, the point of --at"),
        (("--from", CAPTURE, "--at", "9999"), "there is no state at 9999; it has the records 0 to 643"),
        (("--from", CAPTURE, "--at", "soon"), "'soon' is neither an offset nor a time"),
        (("--from", CAPTURE, "--at", "1"), "there is no metadata.version up to offset 1"),
        (("--from", CAPTURE, "--release", "2.8"), "2.8"),
        (("diff", "--from", CAPTURE, "--to", "9999"), "there is no state at 9999"),
        (("diff", "--from", CAPTURE, "--at", 9, "--to", 8, "--each"), "it is a point after that of --at"),
    ],
)
def test_wrong_options_are_refused(arguments: tuple[object, ...], error: str) -> None:
    result = invoke("twin", *arguments)
    assert result.exit_code == 2
    assert error in one_line(result.output)


def test_a_capture_needs_an_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mockraft.twin.captured", None)
    result = invoke("twin", "diff", "--from", shutil.copy(CAPTURE, tmp_path))
    assert result.exit_code == 7
    assert "mockraft[captures]" in result.output


def test_a_plan_is_shown_and_becomes_a_test(tmp_path: Path) -> None:
    plan, written = tmp_path / "plan.yaml", tmp_path / "test_restart.py"
    plan.write_text("- upgrade: {metadata.version: 4.3}\n- restart: all\n")
    result = invoke("twin", "plan", "--from", CAPTURE, "--at", 100, plan, "--save-test", written)
    assert result.exit_code == 1
    assert "2  restart all " in result.stdout
    assert result.stdout.endswith("step 2 breaks: offline: t2-0, t2-1; under min ISR: t2-0, t2-1\n")
    assert len(written.read_text().splitlines()) <= 15
    about = f"{CAPTURE}, offset 100 (2026-11-20T09:13:36.033Z)"
    assert written.read_text().startswith(f'"""Written by `mockraft twin plan` from {about}."""\n\nfrom pathlib')
    assert "offset 100 (2026-11-20T09:13:36.033Z): 2 brokers, 2 of them simulated, 3 topics," in result.stderr
    assert "pytest collects" not in result.stderr

    saved: dict[str, Any] = {"__file__": str(written)}
    exec(written.read_text(), saved)
    with pytest.raises(AssertionError, match="step 2 breaks: offline: t2-0, t2-1"):
        saved["test_restart"]()
    assert written.stat().st_mode == written.with_suffix(".checkpoint").stat().st_mode
    saved["STEPS"][:] = [{"replication_factor": {"topic": "t2", "factor": 2}}, {"restart": "all"}]
    saved["test_restart"]()


def test_a_state_is_checked_without_a_plan(tmp_path: Path) -> None:
    written = tmp_path / "test_state.py"
    with Controller.sync(twin_of=CAPTURE, twin_at=100, clock="virtual", twin_brokers="live") as twin:
        twin.brokers[1].kill()
        twin.advance(15_000)
        broken = twin.state.save(tmp_path / "broken")
    check = ("twin", "plan", "--save-test", written, "--from")
    found = invoke(*check, broken)
    assert (found.exit_code, found.stdout) == (1, "at the end: offline: t2-0, t2-1; under min ISR: t2-0, t2-1\n")
    refused = invoke(*check, CAPTURE)
    assert (refused.exit_code, "replace it and its state with --overwrite" in one_line(refused.output)) == (2, True)
    saved: dict[str, Any] = {"__file__": str(written)}
    exec(written.read_text(), saved)
    with pytest.raises(AssertionError, match="at the end: offline: t2-0"):
        saved["test_state"]()
    assert invoke(*check, CAPTURE, "--at", 100, "--overwrite").exit_code == 0
    saved["test_state"]()


def test_a_saved_plan_has_all_options_and_any_text(tmp_path: Path) -> None:
    plan, written = tmp_path / "plan.yaml", tmp_path / "my plan.v2.py"
    plan.write_text('- lose_rack: it\'s "a"\n')
    options = ("--save-test", written, "--session-timeout-ms", 4000)
    result = invoke("twin", "plan", "--from", CAPTURE, "--at", 100, plan, *options)
    assert "pytest collects test_*.py, and not my plan.v2.py by itself" in result.stderr
    found: dict[str, Any] = {"__file__": str(written)}
    exec(written.read_text(), found)
    assert found["STEPS"] == [{"lose_rack": 'it\'s "a"'}]
    assert '"session_timeout_ms": 4000' in written.read_text()
    assert callable(found["test_my_plan_v2"])


def test_a_plan_becomes_a_junit_test(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    plan, written = tmp_path / "plan.yaml", tmp_path / "src" / "test" / "java" / "org" / "example" / "RackTest.java"
    plan.write_text('- lose_rack: \'\\u0041 """\'\n')
    options = ("--from", CAPTURE, "--at", 100, "--all", "--session-timeout-ms", 4000, plan)
    assert invoke("twin", "plan", *options, "--save-test", written).exit_code == 1
    text = written.read_text()
    assert text.startswith("package org.example;\n\nimport")
    assert '"RackTest.checkpoint"), "--all", "--session-timeout-ms", "4000").assertSafe(' in text
    assert r"""[{"lose_rack": "\\\\u0041 \\"\\"\\""}]""" in text
    assert read_history(tmp_path / "src/test/resources/org/example/RackTest.checkpoint").moment().image.topics.by_name
    beside = tmp_path / "RackTest.java"
    invoke("twin", "plan", *options, "--save-test", beside)
    assert (beside.read_text().startswith("import"), beside.with_suffix(".checkpoint").exists()) == (True, True)
    assert [each.message for each in caplog.records if each.levelname == "ERROR"] == []
    refused = invoke("twin", "plan", *options, "--save-test", tmp_path / "rack-test.java")
    assert (refused.exit_code, "rack-test is no name for a class" in refused.stderr) == (2, True)


def test_a_plan_needs_a_broker_that_ran(tmp_path: Path) -> None:
    directory, plan = write_directory(tmp_path / "data"), tmp_path / "plan.yaml"
    plan.write_text("- restart: all\n")
    with Controller.sync(twin_of=directory, clock="virtual") as controller:
        controller.state.fence(1)
        stopped = controller.state.save(tmp_path)
    refused = invoke("twin", "plan", "--from", stopped, plan)
    assert refused.exit_code == 2
    assert re.search(r"at offset \d+ no broker was unfenced, so none would run: choose", one_line(refused.output))
    assert "--all" in refused.output
    simulated = invoke("twin", "plan", "--from", stopped, "--all", plan)
    assert ": 2 brokers, 2 of them simulated, 2 topics, 4 partitions, 4 of them offline: orders-0, " in simulated.stderr
    assert "orders-1, orders-2 and 1 more\n" in simulated.stderr
    empty = invoke("twin", "plan", "--from", CAPTURE, "--at", 8, "--all", plan)
    assert (empty.exit_code, "at offset 8 no broker was registered" in one_line(empty.output)) == (2, True)


def test_a_safe_plan_as_json(tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"steps": [{"wait": 1}]}))
    result = invoke("twin", "plan", "--from", CAPTURE, "--at", 100, plan, "--json")
    assert result.exit_code == 0
    tree = json.loads(result.stdout)
    assert (tree["isSafe"], tree["steps"][0]["step"]) == (True, "wait 1")


@each_row(("text", "error"), [("- reboot: 1", "there is no step"), ("", "a plan is a list of steps")])
def test_a_plan_with_a_mistake_is_refused(tmp_path: Path, text: str, error: str) -> None:
    plan = tmp_path / "plan.yaml"
    plan.write_text(text)
    result = invoke("twin", "plan", "--from", CAPTURE, plan)
    assert result.exit_code == 2
    assert error in one_line(result.output)
