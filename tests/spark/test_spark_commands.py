"""`mockraft spark decode` and `replay`, on the session that the tests share."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from mockraft.kafka.processes import KafkaController, random_uuid

from ..cli.cli import Result

pytestmark = pytest.mark.spark

ONLY = ("--ports", 19093, "--apis", "BrokerRegistration")


def test_tables_are_written_and_progress_is_not_in_json(
    run: Callable[..., Result], controller_capture: str, tmp_path: Path
) -> None:
    words = ("decode", "--captures", controller_capture, *ONLY, "--out", tmp_path / "t")
    result = run(*words, "--tables", "frames,messages", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["rows"] == {"frames": 10, "messages": 10}
    assert result.stderr.splitlines() == [
        "mockraft spark: writing frames (1 of 2)",
        "mockraft spark: writing messages (2 of 2)",
        "mockraft spark: counting messages",
    ]
    shutil.rmtree(tmp_path / "t" / "frames")
    again = run(*words, "--tables", "frames,messages")
    assert again.exit_code == 2
    assert "has tables already: messages: --overwrite replaces them" in " ".join(again.stderr.split())
    assert not (tmp_path / "t" / "frames").exists(), "nothing is written before"
    named = run(*words, "--tables", "records", "--topics", "orders")
    assert (named.exit_code, "topic ids, not names" in named.stderr) == (0, True)


def test_reports_wrong_port(run: Callable[..., Result], controller_capture: str, tmp_path: Path) -> None:
    wrong = ("--captures", controller_capture, "--ports", 9)
    decoded = run("decode", *wrong, "--tables", "frames", "--out", tmp_path / "t")
    assert decoded.exit_code == 0
    assert "no Kafka frame on port 9" in decoded.stderr
    assert "Kafka frames; try --ports" in decoded.stderr


@pytest.mark.parametrize(
    ("out", "reason"),
    [
        ("none://out", "none://out: unknown scheme none://; a location is a path, or file://, s3://"),
        ("s3a://AKIA:hush@caps/out", "location with credentials"),
        ("s3:///out", "no bucket behind s3://"),
    ],
)
@pytest.mark.parametrize("command", ["decode", "replay"])
def test_refuses_an_unusable_output_location(
    run: Callable[..., Result],
    controller_capture: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: str,
    out: str,
    reason: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run(command, "--captures", controller_capture, "--out", out)
    assert result.exit_code == 2
    assert "--out" in result.stderr
    assert reason in result.stderr
    assert "hush" not in result.stderr
    assert [*tmp_path.iterdir()] == []


def test_typed_messages_take_the_place_of_json(
    run: Callable[..., Result], spark: Any, controller_capture: str, tmp_path: Path
) -> None:
    words = ("decode", "--captures", controller_capture, *ONLY, "--typed", "BrokerRegistration")
    result = run(*words, "--out", tmp_path, "--json")
    assert result.exit_code == 0, result.output
    rows = json.loads(result.stdout)["rows"]
    assert (rows["frames"], rows["messages_BrokerRegistration"], rows["exchanges"]) == (10, 10, 5)
    assert "messages" not in rows
    found = spark.read.parquet(str(tmp_path / "messages_BrokerRegistration"))
    assert {row.brokerId for row in found.where("not is_response").select("request.brokerId").collect()} == {1, 2}


def test_typed_messages_of_an_unknown_api_are_refused(
    run: Callable[..., Result], controller_capture: str, tmp_path: Path
) -> None:
    result = run("decode", "--captures", controller_capture, "--typed", "Fetched", "--out", tmp_path / "t")
    assert result.exit_code == 2
    assert "no API 'Fetched'" in result.stderr


def test_invalid_capture_is_reported_in_one_line(run: Callable[..., Result], tmp_path: Path) -> None:
    (tmp_path / "run.pcap").write_text("hello" * 10)
    result = run("decode", "--captures", tmp_path / "run.pcap", "--tables", "frames", "--out", tmp_path / "t")
    assert result.exit_code == 2
    step, line = result.stderr.splitlines()
    assert step == "mockraft spark: writing frames (1 of 1)"
    assert line.startswith("mockraft spark: ")
    assert "run.pcap" in line


@pytest.mark.real_kafka
def test_a_real_controllers_capture_is_replayed_to_a_real_controller(
    run: Callable[..., Result], controller_capture: str, tmp_path: Path
) -> None:
    controller = KafkaController(tmp_path / "controller", random_uuid(), version="4.3.1")
    controller.format()
    out, page = tmp_path / "replayed", tmp_path / "page.html"
    words = ("replay", "--captures", controller_capture, "--ports", 19093, "--target", controller.bootstrap)
    try:
        controller.start()
        controller.wait_until_running()
        result = run(*words, "--out", out, "--json", "-", "--html", page)
    finally:
        controller.kill()
    found = json.loads(result.stdout)
    assert result.exit_code == (found["same"] < 858), result.output
    assert (found["target"], found["sessions"]) == (controller.bootstrap, 1)
    assert found["sent"] == 858
    # 858, unless the machine is so busy that one of the capture's sessions of 9 s ends at another heartbeat.
    assert 820 <= found["same"] <= 858
    (election,) = (each for each in found["masked"] if each["class"] == "quorum error")
    assert (election["count"], election["fields"]) == (4, ["Fetch:responses[].partitions[].errorCode"])
    assert pq.read_table(out / "replay_results").num_rows == 866
    assert sum(each["fired"] for each in json.loads((out / "rules.json").read_text())) > 0
    assert f"{found['same']} of 858" in page.read_text()
    assert result.stderr.splitlines() == [
        f"mockraft spark: replaying to {controller.bootstrap}",
        "mockraft spark: comparing",
        f"mockraft spark: writing {page}",
    ]
    itself = run(*words, "--out", out, "--baseline", out)
    assert itself.exit_code == 2
    assert "is the baseline" in itself.stderr
