"""The same fleet and the same bad minute on Kafka's own controller and on mockraft."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from mockraft.brokers.fleet import FleetRunner, steps_of
from mockraft.double.process import MockraftController
from mockraft.kafka.processes import KafkaController, random_uuid

from ...budgets import soak

pytestmark = pytest.mark.real_kafka

COUNT = 50
SESSION_MS = 3000
TROUBLE = steps_of(
    {
        "steps": [
            {"at_s": 6, "do": "kill", "percent": 10, "back_after_s": 6},
            {"at_s": 8, "do": "rolling-restart", "racks": ["b"], "at_once": 4, "every_s": 0.5},
            {"at_s": 9, "do": "freeze", "racks": ["c"], "count": 3, "back_after_s": 6},
            {"at_s": 10, "do": "disconnect", "over_s": 1},
            {"at_s": 11, "do": "fail-log-dir", "racks": ["a"], "count": 5},
        ]
    }
)

AnyController = KafkaController | MockraftController


@pytest.fixture(params=["kafka", pytest.param("mockraft", marks=soak)])
def controller(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[AnyController]:
    made: AnyController
    if request.param == "mockraft":
        made = MockraftController(tmp_path, random_uuid(), session_timeout_ms=SESSION_MS)
    else:
        made = KafkaController(tmp_path, random_uuid(), properties={"broker.session.timeout.ms": str(SESSION_MS)})
        made.format()
    try:
        made.start()
        made.wait_until_running()
        yield made
    finally:
        made.kill()


@pytest.mark.parametrize("shares_replication", [True, pytest.param(False, marks=soak)])
async def test_fifty_brokers_come_through_a_bad_minute(controller: AnyController, shares_replication: bool) -> None:
    fleet = FleetRunner.joining(
        f"{controller.host}:{controller.port}",
        controller.cluster_id,
        COUNT,
        racks=("a", "b", "c"),
        ramp_ms=2000,
        script=TROUBLE,
        shares_replication=shares_replication,
        log_dirs_per_broker=2,
        heartbeat_interval_ms=300,
        session_timeout_ms=SESSION_MS,
    )
    async with fleet:
        figures = await fleet.until(lambda figures: figures.unfenced == figures.running == COUNT, 90_000)
        assert (figures.mistakes, figures.died, figures.fenced) == ({}, {}, 0)
        assert set(figures.errors) <= {"DUPLICATE_BROKER_REGISTRATION", "NotSentError", "STALE_BROKER_EPOCH"}
        assert figures.answered > COUNT * 10
    left = fleet.figures()
    assert (left.started, left.mistakes, left.died) == (0, {}, {})
