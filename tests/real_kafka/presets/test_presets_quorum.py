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
