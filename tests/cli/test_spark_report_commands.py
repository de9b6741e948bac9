import json
import subprocess
import sys
from pathlib import Path

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
