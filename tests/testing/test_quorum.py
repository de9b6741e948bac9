"""Several controllers in a test's own process, over real sockets."""

from collections.abc import Callable
from pathlib import Path

import pytest
from mockraft import BrokerState, Controller, Quorum, SimulatedBroker, SyncQuorum, SyncSimulatedBroker
from mockraft.brokers.lifecycle import End
from mockraft.kafka.child_process import free_port
from mockraft.server.controller.log.data_dir import DataDirError
from mockraft.server.running_quorum import QuorumError, directory_id
from mockraft.server.stubs.errors import StubError
from mockraft.testing.options import ControllerOptions
from mockraft.wire import api_keys, client, error_codes
from mockraft.wire.messages.create_topics_request import CreateTopicsRequest

from ..topics import ask, described_quorum, topic
from ..waiting import until

ALL = [3000, 3001, 3002]
WAIT_S = 20


async def create(quorum: Quorum, name: str, node_id: int | None = None) -> int:
    """Create a topic at a node, or at the active one, as clients look for it; gives the error code."""
    request = CreateTopicsRequest(topics=[topic(name, 1, 1)], timeout_ms=5000)
    while True:
        await until(lambda: node_id is not None or quorum.active is not None)
        asked = quorum.active if node_id is None else node_id
        assert asked is not None
        error_code = (await ask(address(quorum, asked), request)).topics[0].error_code
        if node_id is not None or error_code != error_codes.NOT_CONTROLLER:
            return error_code


def address(quorum: Quorum, node_id: int) -> str:
    config = quorum.node(node_id).config
    return f"{config.voter_host}:{config.voter_port}"


def topics(quorum: Quorum, node_id: int) -> set[str]:
    return set(quorum.node(node_id).controller.image.topics.by_name)


async def test_three_nodes_one_leader_and_one_history() -> None:
    async with Quorum(3) as quorum:
        assert quorum.node_ids == ALL
        assert len(set(quorum.bootstrap.split(","))) == 3
        assert quorum.active == 3000
        async with SimulatedBroker.joining(quorum.bootstrap, quorum.cluster_id, 1) as broker:
            await broker.wait_until(BrokerState.RUNNING)
            assert await create(quorum, "t") == error_codes.NONE
            assert await create(quorum, "t", 3001) == error_codes.NOT_CONTROLLER
            await until(lambda: all(topics(quorum, node_id) == {"t"} for node_id in ALL))
    with pytest.raises(RuntimeError, match="the quorum does not run"):
        _ = quorum.bootstrap


async def test_a_stub_for_an_unknown_listener_is_refused_while_all_nodes_are_killed() -> None:
    async with Quorum(3, assert_all_used=False) as quorum:
        for node_id in ALL:
            await quorum.kill(node_id)
        quorum.stub("Vote", listener="CONTROLLER").drop()
        with pytest.raises(StubError, match="no listener CONTROLER: did you mean CONTROLLER"):
            quorum.stub("Vote", listener="CONTROLER").drop()


async def test_a_simulated_broker_follows_every_kind_of_failover() -> None:
    options: ControllerOptions = {
        "controller_quorum_fetch_timeout_ms": 1_500,
        "controller_quorum_election_timeout_ms": 500,
    }
    async with (
        Quorum(3, **options) as quorum,
        SimulatedBroker.joining(quorum.bootstrap, quorum.cluster_id, 1, session_timeout_ms=9000) as broker,
    ):
        await broker.wait_until(BrokerState.RUNNING)
        await quorum.elect(3001)
        assert await create(quorum, "elected") == error_codes.NONE
        assert await quorum.resign() != 3001
        assert await create(quorum, "resigned") == error_codes.NONE
        killed = quorum.active
        assert killed is not None
        await quorum.kill(killed)
        await quorum.wait_for_leader()
        assert await create(quorum, "killed") == error_codes.NONE
        await quorum.restart(killed)
        cut_off = quorum.active
        assert cut_off is not None
        await quorum.partition(cut_off)
        await until(lambda: quorum.active not in (None, cut_off))
        assert await create(quorum, "cut off") != error_codes.NONE, "a name with a space"
        assert await create(quorum, "cut-off") == error_codes.NONE
        await quorum.heal()
        every = {"elected", "resigned", "killed", "cut-off"}
        await until(lambda: all(topics(quorum, node_id) == every for node_id in ALL))
        assert broker.state is BrokerState.RUNNING
        assert broker.fault is None


async def test_a_node_that_is_cut_off_from_brokers_too_takes_no_connection() -> None:
    async with Quorum(3) as quorum:
        config = quorum.node(3002).config
        await quorum.partition(3002, brokers=True)
        with pytest.raises(client.DisconnectedError):
            await client.connect(config.voter_host, config.voter_port)
        await quorum.heal()
        await (await client.connect(config.voter_host, config.voter_port)).close()


async def test_leader_resigns_on_orderly_stop() -> None:
    async with Quorum(3) as quorum:
        await quorum.running.nodes.pop(3000).stop()
        assert await quorum.wait_for_leader() != 3000
        result = [quorum.node(node_id).node.journal.exchanges(api_keys.END_QUORUM_EPOCH) for node_id in (3001, 3002)]
        assert all(result)


async def test_describe_quorum_names_the_leader_and_every_voter() -> None:
    async with Quorum(3) as quorum:
        partition = await described_quorum(address(quorum, 3000))
        assert partition.leader_id == 3000
        assert [voter.replica_id for voter in partition.current_voters] == ALL
        assert [voter.replica_directory_id for voter in partition.current_voters] == [
            directory_id(quorum.cluster_id, node_id) for node_id in ALL
        ]


@pytest.mark.parametrize("kraft_version", [0, 1])
async def test_a_data_dir_keeps_the_history_of_a_whole_quorum(tmp_path: Path, kraft_version: int) -> None:
    options: ControllerOptions = {"data_dir": tmp_path, "port": free_port(in_a_row=3), "kraft_version": kraft_version}
    async with Quorum(3, **options) as quorum:
        cluster_id = quorum.cluster_id
        async with SimulatedBroker.joining(quorum.bootstrap, cluster_id, 1) as broker:
            await broker.wait_until(BrokerState.RUNNING)
            assert await create(quorum, "kept") == error_codes.NONE
    async with Quorum(3, **options) as quorum:
        assert quorum.cluster_id == cluster_id
        assert topics(quorum, quorum.active or 0) == {"kept"}


async def test_a_data_dir_is_not_used_with_other_ports(tmp_path: Path) -> None:
    async with Quorum(2, data_dir=tmp_path):
        pass
    with pytest.raises(DataDirError, match="its quorum has fixed ports"):
        async with Quorum(2, data_dir=tmp_path):
            pass


async def test_invalid_action_is_refused_with_the_state() -> None:
    async with Quorum(3, assert_all_used=False) as quorum:
        await quorum.kill(3002)
        with pytest.raises(QuorumError, match="node 3002 does not run; 3000 active in epoch 1, log end"):
            await quorum.elect(3002)
        with pytest.raises(QuorumError, match="there is no node 7"):
            await quorum.partition(7)
        with pytest.raises(QuorumError, match="there is no node 7"):
            await quorum.restart(7)
        await quorum.kill(3001)
        with pytest.raises(TimeoutError, match=r"waited .* s for .*3001 is not running"):
            await quorum.elect(3000, 0.2) if quorum.active != 3000 else await quorum.resign(0.2)
        await quorum.kill(3000)
        assert quorum.stub("BrokerHeartbeat", listener="CONTROLLER").call_count == 0, "it may run again"


async def test_single_controller_actions_are_refused_with_the_reason() -> None:
    async with Quorum(2) as quorum:
        await quorum.kill(3001)
        with pytest.raises(ValueError, match=r"^this is a quorum \(nodes \[3000, 3001\]\): .* with `Quorum.restart`"):
            quorum.restart_in_place()
        with pytest.raises(ValueError, match="no state can be loaded into it while it runs"):
            quorum.load("state.checkpoint")
        with pytest.raises(ValueError, match="reset it without its state"):
            quorum.reset(state=True)


def test_without_asyncio() -> None:
    with Quorum.sync(3) as quorum:
        assert quorum.node_ids == ALL
        quorum.elect(3002)
        assert quorum.active == 3002
        assert quorum.resign() in ALL
        quorum.kill(3001)
        quorum.restart(3001)
        quorum.partition(3001)
        quorum.heal()
        leader = quorum.wait_for_leader()
        assert quorum.call(lambda: quorum.node(leader).controller.epoch) > 0


@pytest.mark.mockraft(brokers=3, controllers=3)
def test_a_quorum_has_brokers_as_a_controller_has(
    mockraft_quorum: SyncQuorum, mockraft_broker: Callable[..., SyncSimulatedBroker]
) -> None:
    assert mockraft_quorum.node_ids == ALL
    assert {n: each.state for n, each in mockraft_quorum.brokers.items()} == dict.fromkeys(
        (1, 2, 3), BrokerState.RUNNING
    )
    mockraft_quorum.elect(3001)
    fourth = mockraft_quorum.start_broker(4, rack="r4")
    assert fourth.bootstrap_servers in mockraft_quorum.bootstrap_servers.split(",")
    fourth.kill()
    assert len(mockraft_quorum.bootstrap_servers.split(",")) == 3
    assert mockraft_broker(5).state is BrokerState.RUNNING
    assert sorted(mockraft_quorum.brokers) == [1, 2, 3, 4, 5]


async def test_brokers_leave_a_quorum_that_has_a_majority_and_are_killed_otherwise(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    async with Quorum(3, brokers=2, session_timeout_ms=600_000, data_dir=one, assert_all_used=False) as quorum:
        granted = list(quorum.brokers.values())
        await quorum.partition(3000)
        quorum.stub("BrokerHeartbeat").drop()
    async with Quorum(3, brokers=1, session_timeout_ms=600_000, data_dir=two) as quorum:
        killed = quorum.brokers[1]
        await quorum.kill(3000)
        await quorum.kill(3001)
    assert [each.end for each in (*granted, killed)] == [End.GRANTED, End.GRANTED, End.STOPPED]


async def test_one_controller_is_a_quorum_too() -> None:
    async with Quorum(1) as quorum:
        assert quorum.active == 3000
    with pytest.raises(ValueError, match="controllers=0: it must be at least 1"):
        Quorum(0)
    with pytest.raises(ValueError, match="the nodes of a quorum need the machine's clock"):
        Quorum(3, clock="virtual")


async def test_single_controller_opens_no_quorum_connections() -> None:
    async with Controller() as controller:
        assert controller.running.listener._quorum_connections is None
