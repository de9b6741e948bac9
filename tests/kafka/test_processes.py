"""Readiness of a real controller, by its log, and addresses of brokers."""

import sys
from pathlib import Path
from typing import Any

import pytest
from mockraft.kafka.processes import KafkaBroker, KafkaController, KafkaProcessError

from ..rows import each_row

STARTED = "INFO kafka.server.KafkaRaftServer - [KafkaRaftServer nodeId=3000] Kafka Server started"
LEADS = "[QuorumController id=3000] Becoming the active controller at epoch 1, next write offset 1."
FOLLOWS = "[QuorumController id=3000] In the new epoch 2, the leader is 4000."
NOBODY_LEADS = "[QuorumController id=3000] In the new epoch 2, the leader is (none)."


def controller_that_logs(directory: Path, *lines: str) -> KafkaController:
    controller = KafkaController(directory, "MkU3OEVBNTcwNTJENDM2Qg")
    controller.launch([sys.executable, "-c", f"print({chr(10).join(lines)!r})"])
    return controller


@each_row("lines", [(STARTED, LEADS), (LEADS, STARTED), (STARTED, FOLLOWS)])
def test_controller_is_ready_once_it_leads_or_has_a_leader(tmp_path: Path, lines: tuple[str, ...]) -> None:
    controller = controller_that_logs(tmp_path, *lines)
    assert controller.wait_until_running(20) >= 0
    controller.kill()


@each_row("lines", [(STARTED,), (LEADS,), (STARTED, NOBODY_LEADS)])
def test_a_controller_that_would_refuse_everything_is_not_ready(tmp_path: Path, lines: tuple[str, ...]) -> None:
    with pytest.raises(KafkaProcessError, match=r"ended with exit code 0 before (a leader|the end of its start)"):
        controller_that_logs(tmp_path, *lines).wait_until_running(20)


@each_row(
    ("options", "address"),
    [
        ({"port": 19092}, "127.0.0.1:19092"),
        ({"properties": {"listeners": "PLAINTEXT://127.0.0.1:19093"}}, "127.0.0.1:19093"),
        ({"properties": {"listeners": "CONTROLLER://:9093,INSIDE://0.0.0.0:19094"}, "port": 19094}, "127.0.0.1:19094"),
        ({"properties": {"listeners": "PLAINTEXT://127.0.0.1:0"}}, "clients would not find port 0"),
        ({"properties": {"listeners": "PLAINTEXT://127.0.0.1:19093"}, "port": 19092}, "port=19092 contradicts"),
        ({"properties": {"listeners": "127.0.0.1:19093"}}, "must be NAME://HOST:PORT"),
    ],
)
def test_a_brokers_address_is_where_it_will_listen(tmp_path: Path, options: dict[str, Any], address: str) -> None:
    if " " in address:
        with pytest.raises(ValueError, match=address):
            KafkaBroker(1, tmp_path, "MkU3OEVBNTcwNTJENDM2Qg", "127.0.0.1:9", **options)
        return
    broker = KafkaBroker(1, tmp_path, "MkU3OEVBNTcwNTJENDM2Qg", "127.0.0.1:9", **options)
    assert broker.bootstrap == address
    assert address.rpartition(":")[2] in broker.properties["listeners"]
