"""Metadata of clusters with many brokers, as a controller's data directory."""

import random
from collections.abc import Iterator
from pathlib import Path

from mockraft.releases import release
from mockraft.server.controller.log.snapshot import SnapshotId
from mockraft.server.controller.log.state_file import SavedState, write_saved
from mockraft.twin import read_history
from mockraft.twin.directory import write_directory
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.records.config_record import ConfigRecord
from mockraft.wire.records.feature_level_record import FeatureLevelRecord
from mockraft.wire.records.partition_record import PartitionRecord
from mockraft.wire.records.register_broker_record import BrokerEndpoint, BrokerFeature, RegisterBrokerRecord
from mockraft.wire.records.topic_record import TopicRecord

RACKS = "abc"
PARTITIONS_OF_TOPIC = 100
RELEASE = "4.4"


def write_cluster(path: Path, brokers: int, partitions: int) -> Path:
    """Write brokers in three racks, with two directories each, and partitions with a replica in each rack."""
    records = [RecordAt(FeatureLevelRecord(name="metadata.version", feature_level=30), 0)]
    records += _records(brokers, partitions, random.Random(f"{brokers}/{partitions}"))
    saved = path.with_suffix(".checkpoint")
    snapshot_id = SnapshotId(len(records) + brokers, 1)
    write_saved(saved, SavedState(snapshot_id, "d2FzIGEgcmVhbCBvbmUgIQ", records), 1_790_000_000_000)
    return write_directory(read_history(saved), path)


def _records(brokers: int, partitions: int, rng: random.Random) -> Iterator[RecordAt]:
    ranges = release(RELEASE).feature_ranges()
    features = [
        BrokerFeature(name=name, min_supported_version=low, max_supported_version=high)
        for name, (low, high) in ranges.items()
    ]
    directories = {broker_id: [rng.randbytes(16), rng.randbytes(16)] for broker_id in range(1, brokers + 1)}
    for broker_id, log_dirs in directories.items():
        broker = RegisterBrokerRecord(
            broker_id=broker_id,
            incarnation_id=rng.randbytes(16),
            broker_epoch=broker_id,
            end_points=[BrokerEndpoint(name="PLAINTEXT", host=f"b{broker_id}.example", port=9092)],
            features=features,
            rack=RACKS[broker_id % len(RACKS)],
            fenced=False,
            log_dirs=log_dirs,
        )
        yield RecordAt(broker, 3)
    yield RecordAt(ConfigRecord(resource_type=4, resource_name="", name="min.insync.replicas", value="2"), 0)
    of_rack = [[each for each in directories if each % len(RACKS) == rack] for rack in range(len(RACKS))]
    for number in range(partitions):
        partition_id = number % PARTITIONS_OF_TOPIC
        if partition_id == 0:
            topic_id = rng.randbytes(16)
            yield RecordAt(TopicRecord(name=f"topic-{number // PARTITIONS_OF_TOPIC}", topic_id=topic_id), 0)
        replicas = [rng.choice(each) for each in rng.sample(of_rack, len(RACKS))]
        partition = PartitionRecord(
            partition_id=partition_id,
            topic_id=topic_id,
            replicas=replicas,
            isr=replicas,
            leader=replicas[0],
            leader_epoch=1,
            partition_epoch=1,
            directories=[rng.choice(directories[each]) for each in replicas],
        )
        yield RecordAt(partition, 2)
