"""Work on many replicas leaves the event loop to others."""

from __future__ import annotations

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from mockraft import Controller
from mockraft.brokers import time_slice
from mockraft.brokers.lifecycle import BrokerState


def test_places_all_replicas_with_one_per_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_slice, "PIECES", 1)
    with Controller.sync(brokers=3) as controller:
        admin = AdminClient({"bootstrap.servers": controller.bootstrap_servers})
        for _ in range(2):
            admin.create_topics([NewTopic("t", 20, 3)])["t"].result(30)

            def placed() -> list[int]:
                return [
                    sum(len(view.replicas) for view in broker.log_dirs.values())
                    for broker in controller.brokers.values()
                ]

            def followed() -> bool:
                return all(
                    len(partition.isrs) == 3 for partition in admin.list_topics("t").topics["t"].partitions.values()
                )

            while placed() != [20, 20, 20] or not followed():
                assert all(broker.state is BrokerState.RUNNING for broker in controller.brokers.values())
            admin.delete_topics(["t"])["t"].result(30)
            while placed() != [0, 0, 0]:
                assert all(broker.state is BrokerState.RUNNING for broker in controller.brokers.values())
