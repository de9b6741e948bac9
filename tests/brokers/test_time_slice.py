"""Work on many replicas leaves the event loop to others."""

from __future__ import annotations

import asyncio
import random

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from mockraft import Controller
from mockraft.brokers import time_slice
from mockraft.brokers.broker import SimulatedBroker
from mockraft.brokers.config import draw_config
from mockraft.brokers.lifecycle import BrokerState, Stopped


@pytest.fixture
def broker() -> SimulatedBroker:
    return SimulatedBroker(draw_config(1, "cluster", (("127.0.0.1", 1),), random.Random(1)))


async def test_allows_at_least_one_piece_of_work(broker: SimulatedBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_slice, "SLICE_MS", 0)
    current = time_slice.TimeSlice(broker)
    assert [current.has_time(), current.has_time()] == [True, False]
    monkeypatch.setattr(time_slice, "SLICE_MS", 3_600_000)
    current = time_slice.TimeSlice(broker)
    assert [current.has_time(), current.has_time()] == [True, True]


async def test_continues_in_a_later_slice_while_the_broker_runs(broker: SimulatedBroker) -> None:
    came = asyncio.Event()
    time_slice.TimeSlice(broker).continue_later("rest", came.set)
    assert not came.is_set()
    await came.wait()

    broker.happen(Stopped())
    came.clear()
    time_slice.TimeSlice(broker).continue_later("rest", came.set)
    await broker.close()
    assert not came.is_set()


def test_places_all_replicas_with_one_per_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_slice, "SLICE_MS", 0)
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
