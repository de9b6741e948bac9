"""strimzi proposal 203: a controller with a new disk is no voter, and its old directory id has to be removed."""

from pathlib import Path

import pytest
from mockraft import Quorum, SyncQuorum
from mockraft.kafka.processes import KafkaProcessError, KafkaTool


def directories(quorum: SyncQuorum) -> dict[int, str]:
    return {voter.node_id: voter.directory_id for voter in quorum.state.quorum().voters}


def test_controller_with_a_new_disk_is_added_once_its_old_directory_is_removed(tmp_path: Path) -> None:
    with Quorum.sync(3, data_dir=tmp_path) as quorum:
        bootstrap = ("--bootstrap-controller", quorum.bootstrap)
        lost = directories(quorum)[3002]
        port = quorum.node(3002).config.port

        def run(*command: str) -> str:
            return KafkaTool("kafka-metadata-quorum").run(*bootstrap, *command)

        quorum.faults.lose_disk(node_id=3002)
        quorum.wait_until(lambda: [each.node_id for each in quorum.state.quorum().observers] == [3002])
        assert directories(quorum)[3002] == lost, "one node is an observer and, by its old disk, a voter"

        disk = tmp_path / "controller-3002"
        newcomer = tmp_path / "newcomer.properties"
        newcomer.write_text(
            "process.roles=controller\nnode.id=3002\ncontroller.listener.names=CONTROLLER\n"
            f"listeners=CONTROLLER://127.0.0.1:{port}\nlog.dirs={disk}\n"
        )
        add = ("--command-config", str(newcomer), "add-controller")
        with pytest.raises(KafkaProcessError, match="DuplicateVoterException"):
            run(*add)

        run("remove-controller", "--controller-id", "3002", "--controller-directory-id", lost)
        assert "Added controller 3002" in run(*add)
        assert f"directory.id={directories(quorum)[3002]}" in (disk / "meta.properties").read_text()
