"""Three controllers, three real brokers configured with all of them, and every kind of failover between them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient
from mockraft import Quorum
from mockraft.double.quorum import SyncQuorum
from mockraft.kafka.processes import KafkaBroker, KafkaTool, wait_until

from ...clients import consume, create_topic, keep_producing

pytestmark = pytest.mark.real_kafka

CreateTopic = Callable[..., None]
Consume = Callable[..., list[str]]
KeepProducing = Callable[..., AbstractContextManager[list[str]]]
StartBrokers = Callable[..., dict[int, KafkaBroker]]

TOPIC = "steady"


class World:
    """The quorum, its brokers, and what clients see of both."""

    def __init__(self, quorum: SyncQuorum, brokers: dict[int, KafkaBroker]) -> None:
        self.quorum = quorum
        self.brokers = brokers
        self.servers = ",".join(broker.bootstrap for broker in brokers.values())

    @property
    def topics(self) -> set[str]:
        return set(AdminClient({"bootstrap.servers": self.servers}).list_topics(timeout=10).topics)

    def topics_of(self, node_id: int) -> set[str]:
        """The topics in one controller's image."""
        return self.quorum.call(lambda: set(self.quorum.node(node_id).controller.image.topics.by_name))

    def registrations(self) -> list[int]:
        return [broker.whole_log.count("Successfully registered broker") for broker in self.brokers.values()]

    def described(self) -> dict[str, str]:
        """Output of kafka-metadata-quorum through the brokers."""
        told = KafkaTool("kafka-metadata-quorum").run("--bootstrap-server", self.servers, "describe", "--status")
        return dict(re.findall(r"^(\w+):\s+(.*?)\s*$", told, re.M))


@pytest.fixture(scope="module")
def world(start_brokers: StartBrokers) -> Iterator[World]:
    with Quorum.sync(3) as quorum:
        brokers = start_brokers(quorum.bootstrap, quorum.cluster_id, 3)
        world = World(quorum, brokers)
        create_topic(world.servers, TOPIC, partitions=3, replicas=3)
        yield world


@pytest.fixture
def serves(world: World) -> Callable[..., None]:
    """`serves(fault, name)`: through the fault and after it nothing is lost, and a topic can be created."""

    def check(fault: Callable[[], Any], name: str) -> None:
        registrations = world.registrations()
        with keep_producing(world.servers, TOPIC) as acknowledged:
            fault()
            create_topic(world.servers, name, partitions=2, replicas=3)
            so_far = len(acknowledged)
            wait_until(lambda: len(acknowledged) > so_far + 50, 20, "messages after the fault")
        assert set(acknowledged) <= set(consume(world.servers, TOPIC))
        assert world.registrations() == registrations, "a failover is nothing to register for"

    return check


def test_brokers_follow_an_election(world: World, serves: Callable[..., None]) -> None:
    serves(lambda: world.quorum.elect(3001), "after-election")
    assert world.quorum.active == 3001
    status = world.described()
    assert (status["LeaderId"], status["ClusterId"]) == ("3001", world.quorum.cluster_id)
    assert [int(found) for found in re.findall(r'"id": (\d+)', status["CurrentVoters"])] == [3000, 3001, 3002]
    assert {int(found) for found in re.findall(r'"id": (\d+)', status["CurrentObservers"])} == {1, 2, 3}


def test_brokers_follow_a_resignation(world: World, serves: Callable[..., None]) -> None:
    before = world.quorum.active

    def another_leads() -> bool:
        # On a busy machine who resigned may be the first to stand again.
        return world.quorum.resign() != before

    serves(lambda: wait_until(another_leads, 60, "another leader"), "after-resignation")
    assert world.quorum.active != before


def test_brokers_follow_when_the_active_one_is_killed_and_when_it_is_back(
    world: World, serves: Callable[..., None]
) -> None:
    killed = world.quorum.active
    assert killed is not None
    serves(lambda: world.quorum.kill(killed), "after-kill")
    world.quorum.restart(killed)
    wait_until(lambda: world.topics_of(killed) >= {"after-kill"}, 10, "the one that was killed to catch up")
    serves(lambda: world.quorum.elect(killed), "after-restart")
    assert world.topics >= {"after-kill", "after-restart"}


def test_brokers_leave_an_isolated_active_controller_and_its_uncommitted_records_vanish(
    world: World, serves: Callable[..., None]
) -> None:
    cut_off = world.quorum.active
    assert cut_off is not None
    epochs = world.quorum.call(lambda: world.quorum.node(cut_off).controller.epoch)

    def cut() -> None:
        world.quorum.partition(cut_off)
        wait_until(lambda: world.quorum.active not in (None, cut_off), 20, "another leader")

    serves(cut, "after-cut")
    world.quorum.heal()
    wait_until(lambda: world.topics_of(cut_off) >= {"after-cut"}, 10, "the one that was cut off to follow")
    leader = world.quorum.wait_for_leader()

    def logs() -> tuple[bytes, bytes]:
        one, other = (world.quorum.node(each).controller.log.read(0, 1 << 30) for each in (cut_off, leader))
        return one, other

    def same() -> bool:
        one, other = world.quorum.call(logs)
        return one == other

    wait_until(same, 10, "one history")
    truncated = [broker for broker in world.brokers.values() if "Truncated to offset" in broker.whole_log]
    assert truncated, "some broker had a record of the cut off one that no majority had"
    assert world.quorum.call(lambda: world.quorum.node(leader).controller.epoch) > epochs
    serves(lambda: world.quorum.elect(cut_off), "after-heal")
