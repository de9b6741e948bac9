"""Several nodes on the machine's clock and sockets."""

from mockraft.server.config import ControllerConfig
from mockraft.server.raft.raft import Raft
from mockraft.server.running_quorum import RunningQuorum


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
