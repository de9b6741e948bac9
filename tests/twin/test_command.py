"""`mockraft twin`: a running copy, and its changes."""

import json
import shutil
import signal
import sys
from pathlib import Path

import pytest

from ..commands.cli import invoke, one_line, started

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


def test_diff_covers_everything_by_default() -> None:
    result = invoke("twin", "diff", "--from", CAPTURE)
    assert "topic t1: created with 4 partitions, replication factor 2" in result.stdout
    assert "controller 3000: registered" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((), "say of what: --from DIR|CHECKPOINT|PCAP"),
        (("--from", "/nowhere"), "/nowhere: cannot be read: No such file or directory"),
        (("--from", CAPTURE, "--at", "9999"), "there is no state at 9999; it has the records 0 to 643"),
        (("--from", CAPTURE, "--at", "soon"), "'soon' is neither an offset nor a time"),
        (("--from", CAPTURE, "--at", "1"), "there is no metadata.version up to offset 1"),
        (("--from", CAPTURE, "--release", "2.8"), "2.8"),
        (("diff", "--from", CAPTURE, "--to", "9999"), "there is no state at 9999"),
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
