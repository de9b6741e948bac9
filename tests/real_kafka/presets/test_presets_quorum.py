"""A failover by name: the active controller is another one, and real brokers follow."""

from __future__ import annotations

import pytest
from mockraft.kafka.processes import wait_until

from .conftest import FETCH, HEARTBEAT, REGISTRATION, Bench

pytestmark = pytest.mark.real_kafka


def test_a_failover_moves_a_brokers_fetches_and_heartbeats_to_the_new_leader(quorum_bench: Bench) -> None:
    bench = quorum_bench
    broker = bench.add_broker(1)
    broker.start()
    broker.wait_until_running()
    before, epoch = bench.controller.active, bench.view(1).epoch
    other = next(node for node in bench.controller.node_ids if node != before)
    since = bench.mark()

    def leads() -> bool:
        # One whose log was a record behind as it stood is not elected.
        with bench.switched_on("elect", node_id=other):
            return bool(bench.controller.active == other)

    wait_until(leads, 40, "another leader")
    for api in (FETCH, HEARTBEAT):
        wait_until(
            lambda api=api: any(each.node_id == other for each in bench.asked(api, 1, since)),  # type: ignore[misc]
            40,
            "the broker at the new leader",
        )
    assert bench.view(1).epoch == epoch
    assert bench.asked(REGISTRATION, 1, since) == []


def test_a_broker_follows_a_quorum_whose_voters_are_others(quorum_bench: Bench) -> None:
    bench = quorum_bench
    quorum, broker = bench.controller, bench.add_broker(2)
    broker.start()
    broker.wait_until_running()
    epoch, leader, since = bench.view(2).epoch, quorum.wait_for_leader(), bench.mark()

    def is_ready() -> bool:
        """Return True if all is committed, and the node, a voter or not, has it."""
        view = quorum.state.quorum()
        ends = {each.node_id: each.log_end_offset for each in (*view.voters, *view.observers)}
        return bool(view.leader_id not in (None, leader) and view.high_watermark == ends.get(leader))

    def has_changed() -> bool:
        return bool(quorum.script.faults.all[-1].fired)

    with bench.switched_on("lose_disk", node_id=leader):
        wait_until(is_ready, 40, "the node as an observer of another leader")
    with bench.switched_on("remove_voter", node_id=leader):
        wait_until(has_changed, 40, "two voters")
    wait_until(is_ready, 40, "the node to have caught up")
    with bench.switched_on("add_voter", node_id=leader):
        wait_until(has_changed, 40, "the node as a voter with its new directory")
    bench.wait_for_peace(2)
    assert bench.view(2).epoch == epoch
    assert bench.asked(REGISTRATION, 2, since) == []
