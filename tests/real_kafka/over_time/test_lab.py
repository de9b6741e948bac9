"""The lab's example of a real broker: one slow heartbeat, and a running broker is fenced (KAFKA-14392)."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from mockraft.testing.lab.schedule import Disturbance, Sender, stub_file
from mockraft.testing.lab.trial import Subject, run

from ...budgets import soak

pytestmark = pytest.mark.real_kafka

EXAMPLE = Path(__file__).parents[3] / "examples" / "lab" / "test_kafka_broker.py"
PYTEST = (sys.executable, "-m", "pytest", "-p", "mockraft.pytest_plugin", "-c", os.devnull, str(EXAMPLE))


@pytest.mark.parametrize("version", [pytest.param("3.9.2", marks=soak), "4.4.0"])
def test_slow_heartbeat_fences_a_running_broker(version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_VERSION", version)
    slow = Disturbance("late request", Sender("BrokerHeartbeat", 1), 8, 2_000)
    outcome = run(Subject([*PYTEST, "-k", "session"]), stub_file((slow,)), tmp_path / "run")
    assert "test_running_broker_keeps_its_session - assert not True" in outcome.output
