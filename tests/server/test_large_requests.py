"""Requests as large as Kafka's own pass with the default limits of a live process."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from mockraft.kafka.child_process import wait_until
from mockraft.kafka.mockraft_process import MockraftController
from mockraft.server.controller.log.snapshot import Snapshot, parse_file_name
from mockraft.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from mockraft.wire.messages.create_topics_request import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest
from mockraft.wire.records.partition_record import PartitionRecord

from tools.blocking_connection import BlockingConnection

from ..budgets import budget
from ..conftest import registration_request
from ..fetches import snapshot_request

BROKER_IDS = [1, 2, 3]
TOPICS, PARTITIONS_A_TOPIC = 100, 99
"""Of one request: 10,000 records, as many as Kafka writes for one (QuorumController.MAX_RECORDS_PER_USER_OP)."""
REQUESTS = budget(2, 11)
PARTITIONS = REQUESTS * TOPICS * PARTITIONS_A_TOPIC
"""19,800; in `make soak` 108,900."""
CLUSTER_ID = "AAAAAAAAAAAAAAAAAAAAAQ"


@pytest.fixture
def process(tmp_path: Path) -> Iterator[MockraftController]:
    """A controller that writes a snapshot after each large request; no broker is fenced while the machine is busy."""
    options = ["--metadata-log-max-record-bytes-between-snapshots", "500000", "--session-timeout-ms", "3600000"]
    process = MockraftController(tmp_path, CLUSTER_ID, options=options)
    process.start()
    process.wait_until_running()
    yield process
    process.kill()


def creation(number: int) -> CreateTopicsRequest:
    """The largest request that Kafka accepts, as a reassignment tool or an operator writes it: all replicas named."""
    partitions = range(PARTITIONS_A_TOPIC)
    assignments = [CreatableReplicaAssignment(partition_index=n, broker_ids=BROKER_IDS) for n in partitions]
    topics = [
        CreatableTopic(name=f"t{n}", num_partitions=-1, replication_factor=-1, assignments=assignments)
        for n in range(TOPICS * number, TOPICS * (number + 1))
    ]
    return CreateTopicsRequest(topics=topics, timeout_ms=60_000)


def test_topics_of_10_000_records_are_created_at_once_and_a_snapshot_of_all_is_fetched(
    process: MockraftController,
) -> None:
    connection = BlockingConnection((process.host, process.port), "large", 120)
    for broker_id in BROKER_IDS:
        epoch = connection.exchange(registration_request(CLUSTER_ID, broker_id), 4).broker_epoch
        beat = BrokerHeartbeatRequest(broker_id=broker_id, broker_epoch=epoch, current_metadata_offset=2**40)
        assert not connection.exchange(beat, 1).is_fenced
    for number in range(REQUESTS):
        created = connection.exchange(creation(number), 7).topics
        assert {(each.error_code, each.num_partitions) for each in created} == {(0, PARTITIONS_A_TOPIC)}

    def snapshot() -> Snapshot | None:
        assert process.data_dir is not None
        paths = sorted((process.data_dir / "__cluster_metadata-0").glob("*-*.checkpoint"))
        found = parse_file_name(paths[-1].name) if paths else None
        is_whole = found is not None and found.end_offset > PARTITIONS
        return Snapshot(found, paths[-1]) if found is not None and is_whole else None

    newest = wait_until(snapshot, 120, "a snapshot of all partitions")
    read, size = b"", 1
    while len(read) < size:
        answer = connection.exchange(snapshot_request(newest.id, position=len(read)), 1)
        (part,) = answer.topics[0].partitions
        assert (answer.error_code, part.error_code) == (0, 0)
        size = part.size
        read += bytes(part.unaligned_records)
    connection.close()
    assert read == newest.read(0, newest.size)
    assert sum(isinstance(at.record, PartitionRecord) for at in newest.records()) == PARTITIONS
