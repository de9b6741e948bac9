"""KAFKA-19850: a controller that was removed from the quorum joins it again at once."""

import re
from pathlib import Path

from mockraft import Controller, SyncController
from mockraft.kafka.processes import KafkaController, KafkaTool
from mockraft.wire.messages.add_raft_voter_request import AddRaftVoterRequest
from mockraft.wire.messages.remove_raft_voter_request import RemoveRaftVoterRequest


def voters(controller: SyncController) -> set[int]:
    return {voter.node_id for voter in controller.state.quorum().voters}


def test_removed_controller_with_auto_join_is_a_voter_again(tmp_path: Path) -> None:
    quorum = KafkaTool("kafka-metadata-quorum")
    with Controller.sync() as controller:
        newcomer = KafkaController(tmp_path, controller.cluster_id, node_id=4000)
        newcomer.properties["controller.quorum.bootstrap.servers"] = controller.bootstrap
        newcomer.properties["controller.quorum.auto.join.enable"] = "true"
        properties = newcomer.write_properties()
        format_it = ("format", "-t", controller.cluster_id, "-c", str(properties), "--no-initial-controllers")
        KafkaTool("kafka-storage").run(*format_it)
        try:
            newcomer.start()
            controller.wait_until(lambda: any(each.response for each in controller.requests(AddRaftVoterRequest)))
            assert voters(controller) == {3000, 4000}

            bootstrap = ("--bootstrap-controller", controller.bootstrap)
            (directory_id,) = re.findall(r"^4000\s+(\S+)", quorum.run(*bootstrap, "describe", "--replication"), re.M)
            voter = ("--controller-id", "4000", "--controller-directory-id", directory_id)
            assert "Removed KRaft controller 4000" in quorum.run(*bootstrap, "remove-controller", *voter)

            controller.wait_until(lambda: len(controller.requests(AddRaftVoterRequest)) == 2)
            controller.wait_until(lambda: voters(controller) == {3000, 4000})
            (removed,) = controller.requests(RemoveRaftVoterRequest)
            assert removed.response.error_code == 0, "the tool was told that it had worked, and it had"
        finally:
            newcomer.kill()
