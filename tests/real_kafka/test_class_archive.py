"""Kafka's processes share the classes that were archived once."""

from __future__ import annotations

import subprocess

import pytest
from mockraft.kafka.tools import java_command

pytestmark = pytest.mark.real_kafka


@pytest.mark.parametrize("version", ["4.3.1", "4.1.1", "3.9.1"])
def test_a_tool_takes_kafkas_classes_from_the_archive(version: str) -> None:
    command = java_command(version, (), "kafka.tools.StorageTool", "random-uuid")
    command[command.index("-Xlog:disable")] = "-Xlog:class+load"
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    classes = [line for line in printed.splitlines() if "org.apache.kafka." in line]
    archived = [line for line in classes if "shared objects file" in line]
    assert len(archived) > 0.8 * len(classes) > 0
