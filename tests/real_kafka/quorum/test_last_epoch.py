"""Behaviour of Kafka's controller at the last leader epoch, from which mockraft differs on purpose: last-epoch."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mockraft.kafka.child_process import KafkaProcessError
from mockraft.kafka.processes import KafkaController, random_uuid
from mockraft.wire.messages import vote_request as vote

from ...budgets import soak
from ...live_client import LiveClient

pytestmark = [pytest.mark.real_kafka, soak]

LAST_EPOCH = 2**31 - 1


def voted(controller: KafkaController, epoch: int) -> Any:
    """The answer to a Vote for an epoch."""
    partition = vote.PartitionData(partition_index=0, replica_epoch=epoch, replica_id=7, last_offset=0)
    topics = [vote.TopicData(topic_name="__cluster_metadata", partitions=[partition])]
    request = vote.VoteRequest(cluster_id=controller.cluster_id, topics=topics)
    client = LiveClient(int(controller.bootstrap.rsplit(":", 1)[1]))
    try:
        return client.send(request, 0).topics[0].partitions[0]
    finally:
        client.close()


def quorum_state(directory: Path) -> Path:
    return next(directory.rglob("quorum-state"))


@pytest.fixture
def controller(tmp_path: Path) -> Iterator[KafkaController]:
    """A running controller of Kafka's."""
    kafka = KafkaController(tmp_path, random_uuid())
    kafka.format()
    try:
        kafka.start()
        kafka.wait_until_running()
        yield kafka
    finally:
        kafka.kill()


def test_kafka_exits_after_the_last_epoch_and_continues_at_the_logs_epoch(
    controller: KafkaController, tmp_path: Path
) -> None:
    answer = voted(controller, LAST_EPOCH)
    assert (answer.error_code, answer.leader_epoch) == (0, LAST_EPOCH)
    assert controller.wait(60) == 1
    assert json.loads(quorum_state(tmp_path).read_text())["leaderEpoch"] == -(2**31)
    controller.start()
    controller.wait_until_running()
    assert json.loads(quorum_state(tmp_path).read_text())["leaderEpoch"] == 2


def test_kafka_does_not_start_in_the_last_epoch(controller: KafkaController, tmp_path: Path) -> None:
    controller.kill()
    path = quorum_state(tmp_path)
    path.write_text(json.dumps(json.loads(path.read_text()) | {"leaderEpoch": LAST_EPOCH, "leaderId": -1}))
    controller.start()
    with pytest.raises(KafkaProcessError, match="ended with exit code 1"):
        controller.wait_until_running()
