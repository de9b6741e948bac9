"""Work on many replicas leaves the event loop to others."""

from __future__ import annotations

import asyncio
import random

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from mockraft import Controller
from mockraft.brokers import turns
from mockraft.brokers.broker import SimulatedBroker
from mockraft.brokers.config import draw_config
from mockraft.brokers.lifecycle import BrokerState, Stopped


@pytest.fixture
def broker() -> SimulatedBroker:
    return SimulatedBroker(draw_config(1, "cluster", (("127.0.0.1", 1),), random.Random(1)))


async def test_a_turn_has_one_piece_of_work_at_least(broker: SimulatedBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "TURN_MS", 0)
    turn = turns.Turn(broker)
    assert [turn.goes_on(), turn.goes_on()] == [True, False]
    monkeypatch.setattr(turns, "TURN_MS", 3_600_000)
    turn = turns.Turn(broker)
    assert [turn.goes_on(), turn.goes_on()] == [True, True]


async def test_what_is_left_comes_in_a_later_turn_while_the_broker_lives(broker: SimulatedBroker) -> None:
    came = asyncio.Event()
    turns.Turn(broker).ends("rest", came.set)
    assert not came.is_set()
    await came.wait()

    broker.happen(Stopped())
    came.clear()
    turns.Turn(broker).ends("rest", came.set)
    await broker.close()
    assert not came.is_set()


def test_replicas_that_come_one_a_turn_all_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "TURN_MS", 0)
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
