"""Output of `mockraft spark report` and `replay`, and messages about a failed Spark job."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from mockraft.cli.spark.options import is_interrupt, reason_of
from mockraft.cli.spark.replay import _show

from ..rows import each_row
from ..spark_replay.capture_bytes import pcap
from ..spark_replay.packetiser import Flow, conversation, exchanges, packets
from .cli import Result, invoke

CAPTURE = Path(__file__).parents[1] / "captures" / "brokers-4.3.1.pcap"


def run(*words: object) -> Result:
    return invoke("spark", "report", *words)


def test_capture_report_is_written_and_summarized(tmp_path: Path) -> None:
    ports = ("--ports", "19192,19292")
    found = run("--captures", CAPTURE, *ports, "--html", tmp_path / "r.html", "--json", tmp_path / "r.json", "--strict")
    assert found.exit_code == 0, found.output
    assert "931 of 931 frames" in found.stdout
    assert json.loads((tmp_path / "r.json").read_text())["total"]["frames"] == 931
    assert (tmp_path / "r.html").read_text().startswith("<!doctype html>")


@each_row(
    ("words", "expected"),
    [
        ((), "--tables, --captures or --replay is needed"),
        (("--tables", ".", "--captures", CAPTURE), "use either --tables or --captures"),
        (("--tables", "nowhere"), "--tables nowhere is not a folder"),
        (("--captures", CAPTURE, "--ports", "19192,kafka"), "'kafka' is not a port"),
        (("--captures", "nowhere/*.pcap"), "no capture file at nowhere/*.pcap"),
        (("--captures", __file__), "test_spark_report_commands.py"),
    ],
)
def test_unreportable_input_is_refused(tmp_path: Path, words: tuple[object, ...], expected: str) -> None:
    found = run(*words, "--html", tmp_path / "r.html")
    assert found.exit_code == 2
    assert expected in found.stderr
    assert not (tmp_path / "r.html").exists()


def test_report_does_not_replace_a_capture(tmp_path: Path) -> None:
    capture = tmp_path / "run.pcap"
    capture.write_bytes(CAPTURE.read_bytes())
    found = run("--captures", tmp_path, "--html", capture)
    assert (found.exit_code, f"--html {capture} is one of --captures" in found.stderr) == (2, True)
    assert capture.read_bytes() == CAPTURE.read_bytes()


def test_a_report_without_frames_is_written_and_fails(tmp_path: Path) -> None:
    found = run("--captures", CAPTURE, "--ports", "1,2", "--html", tmp_path / "r.html")
    assert found.exit_code == 2
    assert f"no Kafka frame on port 1,2 was found in {CAPTURE}\n  port 19192: 530 Kafka frames; try" in found.stderr
    assert (tmp_path / "r.html").exists()


def test_a_report_without_frames_lists_what_the_capture_has(tmp_path: Path) -> None:
    tls = [
        each._replace(payload=each.payload and b"\x16\x03\x01" + each.payload[3:])
        for each in conversation(exchanges(2), Flow(server_port=9443))
    ]
    other = [each._replace(payload=each.payload and b"GET / HTTP/1.1") for each in conversation(exchanges(2))]
    captures = tmp_path / "captures"
    captures.mkdir()
    (captures / "a.pcap").write_bytes(pcap(packets(tls + other)))
    (captures / "b.pcap").write_bytes(pcap(packets(other), 147))
    found = run("--captures", captures, "--html", tmp_path / "r.html")
    assert found.stderr.splitlines()[-4:] == [
        "mockraft spark report: no Kafka frame was found in 2 files",
        "  port 9443: TLS on 1 connection; try --key-log FILE (SSLKEYLOGFILE)",
        "  port 9093: 1 connection, not of Kafka; if only responses were captured, try --ports 9093",
        f"  {len(other)} packets of link type 147, which is not known; the source's option linktype=1 reads them as "
        "Ethernet",
    ]


def test_neither_pyspark_nor_the_server_is_needed() -> None:
    code = (
        "import sys; from mockraft.spark_replay.report import page, plots;"
        "print([name for name in sys.modules if name.startswith(('pyspark', 'mockraft.server'))])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_damaged_capture_is_reported_with_its_position(tmp_path: Path) -> None:
    damaged = tmp_path / "run.pcap"
    data = bytearray(CAPTURE.read_bytes())
    data[24:40] = b"\xff" * 16
    damaged.write_bytes(data)
    refused = run("--captures", damaged, "--html", tmp_path / "r.html")
    assert refused.exit_code == 2
    assert "run.pcap" in refused.stderr
    assert "(offset 24); --on-error skip continues" in refused.stderr
    found = run("--captures", damaged, "--html", tmp_path / "r.html", "--on-error", "skip")
    assert "no Kafka frame was found" in found.stderr
    assert "of the files could not be read" in (tmp_path / "r.html").read_text()
    assert run("--captures", damaged, "--html", tmp_path / "r.html", "--on-error", "pass").exit_code == 2


API = {"api": "Fetch", "sent": 1, "equal": 0, "rawEqual": 0, "failed": 0, "medianMs": 1, "capturedMedianMs": 2}
PLACE = {"frame": 3, "connection": "c:1 → h:2", "correlationId": 5, "time": "2026-11-20T09:13:12.778157Z"}
FINDING = {
    "api": "Fetch",
    "path": "responses[].errorCode",
    "kind": "changed",
    "count": 1,
    "expected": 74,
    "actual": 0,
    "first": {"session": "cluster", "exchange": 1, **PLACE},
}
PARTS = {"differences": [FINDING], "intended": [], "masked": [], "notes": [], "releases": []}
FOUND = {**PARTS, "apis": [API], "leftOut": [], "rules": [], "known": 0, "gone": 0}


def test_output_begins_with_what_changed_in_lines_that_are_not_cut(capsys: pytest.CaptureFixture[str]) -> None:
    _show({**FOUND, "same": 0, "sent": 1, "sessions": 1})
    result = capsys.readouterr().out
    assert result.startswith(
        "Changed (1)\n"
        "  Fetch responses[].errorCode: 74 FENCED_LEADER_EPOCH → 0 NONE  1x\n"
        "    first #1 of cluster: request 3 of c:1 → h:2, correlation id 5, 2026-11-20T09:13:12.778157Z\n\n"
    )
    assert "identical bytes  no response  median ms  captured ms\n" in result
    assert result.endswith("0 of 1 responses as captured, in 1 session\n")


def test_known_changes_and_masked_values_stand_apart(capsys: pytest.CaptureFixture[str]) -> None:
    known = {**FINDING, "path": "apiKeys[Vote]", "kind": "missing", "expected": {"minVersion": 0, "maxVersion": 2}}
    found = {**FOUND, "differences": [], "intended": [{**known, "why": "Vote: 0 to 2 → —"}], "notes": ["look"]}
    found |= {"masked": [{"class": "time", "why": "a point in time", "count": 2, "fields": []}]}
    _show({**found, "releases": [{"captured": "4.3", "live": "4.4"}], "same": 1, "sent": 1, "sessions": 1})
    result = capsys.readouterr().out
    assert result.startswith(
        "Changed (0)\n  Note: look\nKnown changes of Kafka 4.3 to 4.4 (1)\n"
        "  Fetch apiKeys[Vote]: 0 to 2 → absent  1x\n    Vote: 0 to 2 → —\n"
        "Masked (2 values)\n  2 time: a point in time\n"
    )
    assert result.endswith("1 of 1 responses as captured or as their releases are known to differ, in 1 session\n")


def test_summary_tells_what_excuses_differences(capsys: pytest.CaptureFixture[str]) -> None:
    rule = {"rule": "Fetch:responses[].errorCode", "class": "ignored", "override": True, "fired": 2}
    found = {**FOUND, "differences": [], "same": 8, "sent": 8, "sessions": 1}
    _show({**found, "known": 4, "gone": 1})
    assert capsys.readouterr().out.endswith(
        "of the fields that differ in the baseline 4 still differ and 1 no longer do\n\n"
        "8 of 8 responses as captured or as in the baseline, in 1 session\n"
    )
    _show({**found, "rules": [rule]})
    assert capsys.readouterr().out.endswith("8 of 8 responses as captured or as your rules permit, in 1 session\n")
    _show({**found, "gone": 4, "rules": [{**rule, "fired": 0}]})
    assert capsys.readouterr().out.endswith("8 of 8 responses as captured, in 1 session\n")


WORKER = """[PYTHON_EXCEPTION] An exception was thrown from the Python worker: Traceback (most recent call last):
  File "replaying.py", line 161, in _facts
    rows = [facts._asdict() for facts in connections_of(of_batches(batches))]
{raised}
 SQLSTATE: 38000
\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException(PythonRunner.scala:1097)
java.lang.RuntimeException: of another kind
"""


@each_row(
    ("text", "expected"),
    [
        (
            WORKER.format(raised="mockraft.spark_replay.formats.file_events.CaptureError: run.pcap: cut (offset 9)"),
            "run.pcap: cut (offset 9)",
        ),
        (WORKER.format(raised="TypeError: '<' not supported"), "TypeError: '<' not supported"),
        (
            "\n[PATH_NOT_FOUND] Path does not exist: file:/nowhere.\nmore",
            "[PATH_NOT_FOUND] Path does not exist: file:/nowhere.",
        ),
        ("", "the job failed"),
    ],
)
def test_failed_job_is_reported_by_the_tasks_exception(text: str, expected: str) -> None:
    assert reason_of(text) == expected


def obey_ctrl_c() -> None:
    try:
        raise KeyboardInterrupt
    except KeyboardInterrupt:
        raise RuntimeError("Gateway must be connected to send cancel cmd.")  # noqa: B904 - as py4j raises it


def test_failure_caused_by_ctrl_c_is_reported_as_ctrl_c() -> None:
    with pytest.raises(RuntimeError) as raised:
        obey_ctrl_c()
    assert is_interrupt(raised.value)
    assert is_interrupt(KeyboardInterrupt())
    assert not is_interrupt(RuntimeError("of another kind"))
