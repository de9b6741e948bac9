"""Running real brokers under each preset of a misbehaving controller, and their recovery afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from mockraft.kafka.processes import wait_until
from mockraft.wire import error_codes

from ...clients import create_topic
from .conftest import FETCH, HEARTBEAT, REGISTRATION, Bench

pytestmark = pytest.mark.real_kafka


@pytest.fixture(scope="module")
def running(bench: Bench) -> Bench:
    """Two brokers that run; the first is the one that is treated badly."""
    brokers = [bench.add_broker(1), bench.add_broker(2)]
    for broker in brokers:
        broker.start()
    for broker in brokers:
        broker.wait_until_running()
    return bench


@pytest.fixture(autouse=True)
def well(running: Bench) -> Iterator[None]:
    """Afterwards broker 1 is as before, and has not registered again."""
    epoch = running.view(1).epoch
    yield
    running.wait_for_peace(1)
    assert running.brokers[1].running
    assert running.view(1).epoch == epoch
    assert len(running.asked(REGISTRATION, 1)) == 1


def new_lines(running: Bench) -> Callable[[str], bool]:
    """Return True if the first broker has logged a text since the last mark."""
    broker = running.brokers[1]
    seen = len(broker.log)
    return lambda text: text in broker.log[seen:]


def test_not_controller_makes_a_broker_connect_again_and_again(running: Bench) -> None:
    with running.switched_on("not_controller", broker_id=1) as since:
        refused = running.wait_for(HEARTBEAT, 1, 6, since)
    assert {each.error_code for each in refused[:6]} == {error_codes.NOT_CONTROLLER}
    assert len({each.connection_id for each in refused[:6]}) > 3


def test_a_broker_follows_a_controller_that_resigned_into_the_next_epoch(running: Bench) -> None:
    epoch = running.controller.call(lambda: running.controller.state.quorum().epoch)
    with running.switched_on("resign") as since:
        wait_until(
            lambda: any(
                each.request.topics[0].partitions[0].current_leader_epoch > epoch
                for each in running.asked(FETCH, 1, since)
            ),
            40,
            "fetches in a later epoch",
        )
    assert running.asked(REGISTRATION, 1, since) == []


def test_a_broker_outlives_a_restart_of_the_controller_without_registering_again(running: Bench) -> None:
    with running.switched_on("restart") as since:
        running.wait_for(FETCH, 1, 2, since)
    assert running.asked(REGISTRATION, 1, since) == []


def test_another_clusters_id_makes_a_broker_fetch_again_and_again(running: Bench) -> None:
    has_logged = new_lines(running)
    with running.switched_on("inconsistent_cluster_id", broker_id=1) as since:
        fetches = running.wait_for(FETCH, 1, 40, since)[:40]
        wait_until(lambda: has_logged("Unexpected error INCONSISTENT_CLUSTER_ID in FETCH response"), 60, "the log")
    assert fetches[-1].received_ms - fetches[0].received_ms < 8_000


def test_lost_heartbeats_fence_a_broker_until_one_is_answered(running: Bench) -> None:
    has_logged = new_lines(running)
    with running.switched_on("lost_heartbeats", broker_id=1) as since:
        wait_until(lambda: running.view(1).fenced, 40, "the end of its session")
        wait_until(lambda: has_logged("Disconnecting from node 3000 due to request timeout"), 60, "the log")
    wait_until(lambda: not running.view(1).fenced, 60, "an answered heartbeat")
    assert running.asked(REGISTRATION, 1, since) == []


def test_broker_with_a_stale_epoch_continues_without_registering_again(running: Bench) -> None:
    has_logged = new_lines(running)
    with running.switched_on("stale_broker_epoch", broker_id=1) as since:
        running.wait_for(HEARTBEAT, 1, 2, since)
        wait_until(lambda: has_logged("received error STALE_BROKER_EPOCH"), 60, "the log")
    assert running.asked(REGISTRATION, 1, since) == []


def test_an_expired_session_lasts_until_the_brokers_next_heartbeat(running: Bench) -> None:
    with running.switched_on("expire_session", broker_id=1) as since:
        assert running.view(1).fenced
        running.wait_for(HEARTBEAT, 1, 1, since)
    assert not running.view(1).fenced


def test_a_fenced_broker_stays_up_and_clients_do_not_see_it(running: Bench) -> None:
    with running.switched_on("fence", broker_id=1) as since:
        wait_until(lambda: running.brokers_seen_by(2) == {2}, 60, "a cluster without broker 1")
        running.wait_for(HEARTBEAT, 1, 2, since)
        assert running.view(1).fenced
    wait_until(lambda: running.brokers_seen_by(2) == {1, 2}, 60, "a cluster with broker 1 again")


def test_an_unfenced_broker_is_seen_by_clients_again(running: Bench) -> None:
    with running.switched_on("fence", broker_id=1):
        wait_until(lambda: running.brokers_seen_by(2) == {2}, 60, "a cluster without broker 1")
    with running.switched_on("unfence", broker_id=1):
        assert not running.view(1).fenced
        wait_until(lambda: running.brokers_seen_by(2) == {1, 2}, 60, "a cluster with broker 1 again")


def test_a_log_dir_that_fails_for_the_controller_alone_moves_its_leaders(running: Bench) -> None:
    state = running.controller.state
    create_topic(running.brokers[2].bootstrap, "moved", replicas=2)
    running.controller.call(lambda: state.elect("moved", 0, 1))
    known = {each.id for each in running.view(1).log_dirs}
    held = wait_until(
        lambda: known & set(running.controller.call(lambda: state.topic("moved").partitions[0].directories)),
        20,
        "its directory",
    )
    (lost,) = held
    with running.switched_on("fail_log_dir", broker_id=1, log_dir=lost):
        assert running.controller.call(lambda: state.topic("moved").partitions[0].leader) == 2
        assert {each.id: each.state for each in running.view(1).log_dirs}[lost] == "offline"
    assert {each.state for each in running.view(1).log_dirs} == {"online"}
    wait_until(
        lambda: running.controller.call(lambda: state.topic("moved").partitions[0].isr) in ((1, 2), (2, 1)),
        40,
        "both in sync",
    )


def test_a_throttled_broker_sends_its_heartbeats_later(running: Bench) -> None:
    with running.switched_on("throttle", broker_id=1, throttle_ms=1_500) as since:
        first, second, *_ = running.wait_for(HEARTBEAT, 1, 2, since)
    assert second.received_ms - first.answered_ms >= 1_500


def test_broker_with_stalled_fetches_serves_old_metadata(running: Bench) -> None:
    has_logged = new_lines(running)
    with running.switched_on("stall_metadata_fetch", broker_id=1) as since:
        create_topic(running.brokers[2].bootstrap, "after-the-stall")
        wait_until(lambda: has_logged("due to request timeout"), 60, "the log")
        running.wait_for(HEARTBEAT, 1, 1, since)
        assert "after-the-stall" not in running.topics_seen_by(1)
    wait_until(lambda: "after-the-stall" in running.topics_seen_by(1), 60, "the topic")


def test_frozen_metadata_log_hides_a_new_topic_until_released(running: Bench) -> None:
    with running.switched_on("freeze_metadata_log", broker_id=1) as since:
        create_topic(running.brokers[2].bootstrap, "after-the-frost")
        running.wait_for(HEARTBEAT, 1, 2, since)
        assert "after-the-frost" not in running.topics_seen_by(1)
        times = [each.received_ms for each in running.asked(FETCH, 1, since)]
    assert len(times) <= 2 + (times[-1] - times[0]) / 400, "no faster than from a log that stands still"
    wait_until(lambda: "after-the-frost" in running.topics_seen_by(1), 60, "the topic")
