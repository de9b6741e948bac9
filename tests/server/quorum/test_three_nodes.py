"""Three nodes that lead, follow and fail."""

import random
from collections.abc import Callable
from typing import Any

import pytest
from mockraft.server.config import ControllerConfig
from mockraft.server.controller.controller import STANDBY
from mockraft.server.controller.log.limits import EPOCH_PEER_MAX
from mockraft.server.raft.raft import Raft
from mockraft.server.running_quorum import RunningQuorum
from mockraft.wire import error_codes
from mockraft.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from mockraft.wire.messages.controller_registration_request import ControllerRegistrationRequest
from mockraft.wire.messages.create_topics_request import CreateTopicsRequest
from mockraft.wire.messages.describe_cluster_request import DescribeClusterRequest
from mockraft.wire.messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from mockraft.wire.messages.incremental_alter_configs_request import IncrementalAlterConfigsRequest
from mockraft.wire.messages.unregister_controller_request import UnregisterControllerRequest

from ...budgets import budget
from ...configs import BROKER, SET, change_configs
from ...conftest import registration_request
from ...topics import topic

ALL = (3000, 3001, 3002)


def start_broker(world: Any, broker_id: int = 1) -> int:
    """Register and unfence a broker; gives its epoch."""
    response = world.answer(world.active, registration_request("a-cluster", broker_id))
    assert response.error_code == error_codes.NONE
    beat = heartbeat(response.broker_epoch, broker_id, offset=response.broker_epoch)
    assert world.answer(world.active, beat).is_fenced is False
    return int(response.broker_epoch)


def heartbeat(broker_epoch: int, broker_id: int = 1, *, offset: int = 1 << 40) -> BrokerHeartbeatRequest:
    return BrokerHeartbeatRequest(broker_id=broker_id, broker_epoch=broker_epoch, current_metadata_offset=offset)


def creation(name: str) -> CreateTopicsRequest:
    return CreateTopicsRequest(topics=[topic(name, 1, 1)], timeout_ms=1000)


def topics(world: Any, node_id: int) -> set[str]:
    return set(world.controller(node_id).image.topics.by_name)


def batches(world: Any, node_id: int) -> bytes:
    return bytes(world.controller(node_id).log.read(0, 1 << 30))


def test_every_node_has_the_same_log_and_the_same_image(world: Any) -> None:
    start_broker(world)
    assert world.answer(3000, creation("t")).topics[0].error_code == error_codes.NONE
    world.until(world.settled, "all to have it")
    for standby in (3001, 3002):
        assert batches(world, standby) == batches(world, 3000)
        assert topics(world, standby) == {"t"}
        assert world.controller(standby).image == world.controller(3000).image


def test_every_node_registers(world: Any) -> None:
    world.until(lambda: set(world.controller(3002).image.cluster.controllers) == set(ALL), "three registrations")
    result = world.answer(3001, DescribeClusterRequest(endpoint_type=2))
    assert result.controller_id == 3000
    assert {(node.broker_id, node.port) for node in result.brokers} == {(3000, 9093), (3001, 9094), (3002, 9095)}


def test_a_node_whose_place_was_taken_registers_again(world: Any) -> None:
    world.until(lambda: set(world.controller(3000).image.cluster.controllers) == set(ALL), "three registrations")
    world.until(world.settled, "all to have it")
    for node_id in (3000, 3001, 3001):
        registered = world.controller(3000).image.cluster.controllers[node_id]
        taken = ControllerRegistrationRequest(controller_id=node_id, incarnation_id=bytes(15) + b"\xff")
        assert world.answer(3000, taken).error_code == error_codes.NONE
        known = world.controller(3000).image.cluster.controllers
        world.until(lambda: known[node_id] == registered, "the node's own registration")  # noqa: B023


def test_unregistered_node_that_runs_registers_again(world: Any) -> None:
    known = world.controller(3000).image.cluster.controllers
    for _ in range(2):
        world.until(lambda: set(known) == set(ALL) and world.settled(), "three registrations")
        assert world.answer(3000, UnregisterControllerRequest(controller_id=3001)).error_code == error_codes.NONE
        assert 3001 not in known
    world.until(lambda: 3001 in known, "the registration of the node that was unregistered")


def test_below_3_7_no_node_registers(new_world: Callable[..., Any]) -> None:
    world = new_world(metadata_version=14)
    world.elect(3000)
    world.pass_time(2_000)
    assert all(not world.controller(node_id).image.cluster.controllers for node_id in ALL)


def test_an_answer_waits_for_a_majority(world: Any) -> None:
    start_broker(world)
    world.kill(3001)
    assert world.answer(3000, creation("two-of-three")).topics[0].error_code == error_codes.NONE
    world.kill(3002)
    number = world.ask(3000, creation("one-of-three"))
    world.pass_time(500)
    assert number not in world.responses
    world.start(3002)
    world.until(lambda: number in world.responses, "the answer")
    assert world.responses[number].topics[0].error_code == error_codes.NONE
    assert world.active == 3000


@pytest.mark.parametrize("is_committed", [True, False])
def test_a_read_never_sees_what_a_failover_takes_back(world: Any, is_committed: bool) -> None:
    world.until(world.settled, "all to have it")
    world.apart = {3000}
    change = world.ask(3000, change_configs((BROKER, "", (SET, "message.max.bytes", "9"))))
    described = DescribeConfigsRequest(resources=[DescribeConfigsResource(resource_type=BROKER)])
    read = world.ask(3000, described)
    world.pass_time(500)
    assert world.responses == {}
    if is_committed:
        world.apart = set()
    world.until(lambda: len(world.responses) == 2, "the responses")
    (changed,), (result,) = world.responses[change].responses, world.responses[read].results
    assert changed.error_code == (error_codes.NONE if is_committed else error_codes.NOT_CONTROLLER)
    assert result.error_code == error_codes.NONE
    assert ("message.max.bytes" in {each.name for each in result.configs}) == is_committed


def test_a_standby_names_the_active_controller(world: Any) -> None:
    response = world.answer(3001, creation("t"))
    (topic,) = response.topics
    assert topic.error_code == error_codes.NOT_CONTROLLER
    assert topic.error_message == "The active controller appears to be node 3000."
    assert world.answer(3002, heartbeat(1)).error_code == error_codes.NOT_CONTROLLER


def test_failover_keeps_acknowledged_records(world: Any) -> None:
    epoch = start_broker(world)
    assert world.answer(3000, creation("kept")).topics[0].error_code == error_codes.NONE
    world.kill(3000)
    world.until(lambda: world.active is not None, "a new leader")
    new = world.active
    assert new in (3001, 3002)
    assert topics(world, new) == {"kept"}
    assert world.answer(new, heartbeat(epoch)).error_code == error_codes.NONE
    assert world.answer(new, creation("more")).topics[0].error_code == error_codes.NONE
    world.start(3000)
    world.until(lambda: topics(world, 3000) == {"kept", "more"}, "the old one to catch up")
    assert world.active == new


def test_brokers_get_a_fresh_session_from_the_next_leader(world: Any) -> None:
    start_broker(world)
    world.pass_time(8_000)
    world.elect(3001)
    world.pass_time(8_000)
    assert not world.controller(3001).image.cluster.brokers[1].fenced
    world.until(lambda: world.controller(3001).image.cluster.brokers[1].fenced, "the session to end", 3_000)


@pytest.mark.parametrize(
    ("heal_first", "options"),
    [
        (True, {}),
        (False, {}),
        (True, {"metadata_log_max_record_bytes_between_snapshots": 500, "metadata_max_retention_bytes": 500}),
    ],
    ids=["heal first", "heal later", "a snapshot replaces the log"],
)
def test_records_of_an_isolated_leader_vanish(
    new_world: Callable[..., Any], heal_first: bool, options: dict[str, int]
) -> None:
    world = new_world(**options)
    world.elect(3000)
    start_broker(world)
    world.until(world.settled, "all to have it")
    world.apart = {3000}
    number = world.ask(3000, creation("lost"))
    assert topics(world, 3000) == {"lost"}
    if heal_first:
        world.until(lambda: world.active != 3000, "another leader")
    else:
        world.until(lambda: number in world.responses, "the old leader to notice")
        assert world.responses[number].topics[0].error_code == error_codes.NOT_CONTROLLER
        assert topics(world, 3000) == set()
        world.until(lambda: world.active is not None, "another leader")
    assert world.active in (3001, 3002)
    kept = [f"kept-{number}" for number in range(20 if options else 1)]
    for name in kept:
        assert world.answer(world.active, creation(name)).topics[0].error_code == error_codes.NONE
    world.pass_time(1_000)
    assert (world.controller(world.active).log.start_offset > 0) is bool(options)
    world.apart = set()
    world.until(lambda: topics(world, 3000) == set(kept), "the old leader to follow")
    world.until(world.settled, "all to have it")
    if not options:
        assert batches(world, 3000) == batches(world, world.active)
    assert world.responses[number].topics[0].error_code == error_codes.NOT_CONTROLLER
    events = [each for node in world.nodes.values() for each in node.controller.events.find(None, 100)]
    assert [each.name for each in events if each.subject == "topic"] == kept


def test_an_active_one_that_resigns_is_followed_by_another(world: Any) -> None:
    start_broker(world)
    world.controller(3000).raft.resign(world.now_ms)
    world.tick(3000)
    world.until(lambda: world.active not in (None, 3000), "another leader", 3_000)
    assert world.controller(3000).epoch < world.controller(world.active).epoch


def test_all_of_them_killed_come_back_with_everything_acknowledged(world: Any) -> None:
    start_broker(world)
    assert world.answer(3000, creation("kept")).topics[0].error_code == error_codes.NONE
    for node_id in ALL:
        world.kill(node_id)
    for node_id in ALL:
        world.start(node_id)
    world.until(lambda: world.active is not None, "a leader")
    assert topics(world, world.active) == {"kept"}
    assert world.answer(world.active, creation("more")).topics[0].error_code == error_codes.NONE


def test_a_node_that_was_away_fetches_a_snapshot(new_world: Callable[..., Any]) -> None:
    small = {"metadata_log_max_record_bytes_between_snapshots": 500, "metadata_max_retention_bytes": 500}
    world = new_world(**small)
    world.elect(3000)
    start_broker(world)
    world.kill(3002)
    for number in range(20):
        assert world.answer(3000, creation(f"t{number}")).topics[0].error_code == error_codes.NONE
    world.pass_time(1_000)
    assert world.controller(3000).log.start_offset > 0
    world.start(3002)
    world.until(lambda: len(topics(world, 3002)) == 20, "the one that was away to have all")
    assert world.controller(3002).image.topics == world.controller(3000).image.topics


SEEDS = range(budget(8, 60))
STEPS = 60


def setting(number: int) -> IncrementalAlterConfigsRequest:
    """A change of a cluster-wide default that needs no broker: each number sets a config of its own name."""
    return change_configs((BROKER, "", (SET, f"key.{number}", str(number))))


class Chaos:
    """A world in which faults are drawn from a seed, and a client that writes to whom it takes for the leader."""

    def __init__(self, world: Any, seed: int) -> None:
        self.world = world
        self.rng = random.Random(seed)
        self.written = 0
        self.asked: dict[int, int] = {}
        self.leaders: dict[int, int] = {}
        self.high_watermarks = dict.fromkeys(ALL, 0)
        self.events: list[tuple[int, Callable[[], None]]] = [
            (10, self.write),
            (8, self.let_time_pass),
            (2, self.kill),
            (4, self.start),
            (2, self.cut),
            (3, self.heal),
            (2, self.elect),
            (1, self.resign),
        ]

    def step(self) -> None:
        (event,) = self.rng.choices([event for _, event in self.events], [weight for weight, _ in self.events])
        event()
        self.check()

    def check(self) -> None:
        for node_id, node in self.world.nodes.items():
            controller = node.controller
            assert not node.journal.failures, [entry for entry in node.journal.entries if entry.failure]
            if controller.epoch != STANDBY:
                assert self.leaders.setdefault(controller.epoch, node_id) == node_id, "two leaders in one epoch"
            assert controller.log.high_watermark <= controller.log.end_offset
            self.high_watermarks[node_id] = max(self.high_watermarks[node_id], controller.log.high_watermark)
            assert controller.log.end_offset >= self.high_watermarks[node_id], "committed records were truncated"

    def acknowledged(self) -> set[str]:
        return {
            f"key.{number}"
            for connection, number in self.asked.items()
            if (response := self.world.responses.get(connection)) is not None
            and response.responses[0].error_code == error_codes.NONE
        }

    def write(self) -> None:
        leaders = [node_id for node_id, node in self.world.nodes.items() if node.controller.epoch != STANDBY]
        if leaders:
            self.written += 1
            self.asked[self.world.ask(self.rng.choice(leaders), setting(self.written))] = self.written
        self.world.pass_time(self.rng.choice((0, 1, 3, 20)))

    def let_time_pass(self) -> None:
        self.world.pass_time(self.rng.choice((5, 100, 700, 2500, 5000)))

    def kill(self) -> None:
        if self.world.nodes:
            self.world.kill(self.rng.choice(list(self.world.nodes)))

    def start(self) -> None:
        if dead := [node_id for node_id in ALL if node_id not in self.world.nodes]:
            node_id = self.rng.choice(dead)
            self.world.start(node_id)
            self.high_watermarks[node_id] = 0

    def cut(self) -> None:
        self.world.apart = set(self.rng.sample(ALL, self.rng.choice((1, 2))))

    def heal(self) -> None:
        self.world.apart = set()

    def elect(self) -> None:
        if self.world.nodes:
            node_id = self.rng.choice(list(self.world.nodes))
            self.world.controller(node_id).raft.elect(self.world.now_ms)
            self.world.tick(node_id)

    def resign(self) -> None:
        node_id = self.world.active if self.world.nodes else None
        if node_id is not None and self.world.controller(node_id).raft.is_leader:
            self.world.controller(node_id).raft.resign(self.world.now_ms)
            self.world.tick(node_id)

    def end(self) -> None:
        """All faults are over; the world settles."""
        self.heal()
        while len(self.world.nodes) < len(ALL):
            self.start()
        self.world.until(lambda: self.world.active is not None and self.world.settled(), "peace", 60_000)


@pytest.mark.one_python
@pytest.mark.parametrize("seed", SEEDS)
def test_acknowledged_records_are_never_lost(new_world: Callable[..., Any], seed: int) -> None:
    small = {"metadata_log_max_record_bytes_between_snapshots": 3_000, "metadata_max_retention_bytes": 6_000}
    world = new_world(seed=seed, **(small if seed % 2 else {}))
    chaos = Chaos(world, seed)
    for _ in range(STEPS):
        chaos.step()
    chaos.end()
    images = {node_id: world.controller(node_id).image for node_id in ALL}
    assert chaos.acknowledged() <= set(images[world.active].configs[BROKER, ""])
    leader = world.controller(world.active).log
    for node_id in ALL:
        log = world.controller(node_id).log
        start = max(log.start_offset, leader.start_offset)
        assert log.read(start, 1 << 30) == leader.read(start, 1 << 30)
        assert images[node_id].configs == images[world.active].configs
        assert images[node_id].features == images[world.active].features


def test_a_quorum_in_its_last_epoch_keeps_its_leader_and_is_down_without_it(world: Any) -> None:
    for node in world.nodes.values():
        node.controller.raft.to_unattached(EPOCH_PEER_MAX - 1, world.now_ms)
    world.until(lambda: world.active is not None and world.settled(), "the last election")
    leader = world.active
    others = [node_id for node_id in ALL if node_id != leader]
    assert world.controller(leader).raft.epoch == EPOCH_PEER_MAX
    start_broker(world)
    world.until(world.settled, "all to have it")
    world.kill(others[0])
    world.start(others[0])
    world.until(lambda: world.controller(others[0]).raft.leader_id == leader, "the restarted node to find the leader")
    assert [world.controller(node_id).failure for node_id in ALL] == [None, None, None]
    world.kill(leader)
    world.until(lambda: all(world.controller(each).failure for each in others), "both to report the last epoch")
    world.start(leader)
    world.until(lambda: world.controller(leader).failure, "the leader of before, too")
    for node_id in ALL:
        assert "no leader can be elected after epoch 2147418111" in str(world.controller(node_id).failure)
        assert world.controller(node_id).raft.epoch == EPOCH_PEER_MAX


async def test_is_ready_only_with_a_leader_that_commits_even_if_the_first_one_is_lost() -> None:
    quorum = await RunningQuorum.start(ControllerConfig(port=0), 3)
    try:
        first = await quorum.wait_for_leader()
        quorum.nodes[first].script(Raft.resign)
        assert quorum.active is None
        await quorum.wait_to_commit()
        assert quorum.active is not None
        assert quorum.nodes[quorum.active].controller.pending_offset == 0
    finally:
        await quorum.stop()
