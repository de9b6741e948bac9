"""Start of real brokers under presets of a misbehaving controller."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest
from mockraft.kafka.processes import KafkaBroker
from mockraft.wire import error_codes

from .conftest import FETCH_SNAPSHOT, HEARTBEAT, REGISTRATION, Bench

pytestmark = pytest.mark.real_kafka


@pytest.fixture
def broker(bench: Bench) -> Iterator[KafkaBroker]:
    """A broker that has never read the metadata log, not started yet."""
    broker = bench.brokers.get(1) or bench.add_broker(1)
    if broker.metadata_log_dir.exists():
        shutil.rmtree(broker.metadata_log_dir)
        broker.format("--ignore-formatted")
    yield broker
    broker.kill()
    bench.controller.call(lambda: bench.controller.reset())
    bench.controller.call(lambda: _forget(bench))


def _forget(bench: Bench) -> None:
    state = bench.controller.state
    for known in state.brokers():
        state.unregister(known.broker_id)


def test_a_broker_that_is_a_duplicate_for_a_while_starts_afterwards(bench: Bench, broker: KafkaBroker) -> None:
    with bench.switched_on("duplicate_registration", broker_id=1) as since:
        broker.start()
        first, second, *_ = bench.wait_for(REGISTRATION, 1, 2, since)
        assert first.error_code == second.error_code == error_codes.DUPLICATE_BROKER_REGISTRATION
        assert second.received_ms - first.received_ms > 1_000
    broker.wait_until_running()


def test_a_starting_broker_storms_with_heartbeats_while_it_is_not_caught_up(bench: Bench, broker: KafkaBroker) -> None:
    with bench.switched_on("heartbeat_storm", broker_id=1) as since:
        broker.start()
        storm = bench.wait_for(HEARTBEAT, 1, 100, since)[:100]
        assert storm[-1].received_ms - storm[0].received_ms < 10_000
        assert not any(each.response.is_caught_up for each in storm)
    broker.wait_until_running()


def test_a_broker_that_never_catches_up_stays_fenced(bench: Bench, broker: KafkaBroker) -> None:
    with bench.switched_on("never_caught_up", broker_id=1) as since:
        broker.start()
        bench.wait_for(HEARTBEAT, 1, 100, since)
        assert bench.view(1).fenced
        assert "The broker has caught up" not in broker.log
    broker.wait_until_running()


def test_a_new_broker_does_not_start_without_the_snapshot(bench: Bench, broker: KafkaBroker) -> None:
    with bench.switched_on("snapshot_not_found", broker_id=1) as since:
        broker.start()
        bench.wait_for(FETCH_SNAPSHOT, 1, 3, since)
        assert bench.asked(REGISTRATION, 1, since) == []
    broker.wait_until_running()


def test_broker_whose_registration_never_succeeds_exits(bench: Bench, broker: KafkaBroker) -> None:
    broker.properties["initial.broker.registration.timeout.ms"] = "3000"
    with bench.switched_on("registration_never_succeeds", broker_id=1):
        broker.start()
        assert broker.wait() == 1
    assert "Shutting down because we were unable to register with the controller quorum" in broker.log
