"""Write the metadata of a large cluster as a controller has it on its disk: write_cluster.py DIR BROKERS PARTITIONS.

The brokers are in three racks, with two log directories each. Partitions have a replica in each rack, but those of
every tenth topic have theirs anywhere. min.insync.replicas is 2.
"""

import random
import sys
from collections.abc import Iterator
from pathlib import Path

from mockraft import Controller
from mockraft.releases import release
from mockraft.wire.message import Message
from mockraft.wire.records.config_record import ConfigRecord
from mockraft.wire.records.partition_record import PartitionRecord
from mockraft.wire.records.register_broker_record import BrokerEndpoint, BrokerFeature, RegisterBrokerRecord
from mockraft.wire.records.topic_record import TopicRecord

RACKS = "abc"
PARTITIONS_OF_TOPIC = 100
OLD_RELEASE = "4.3"
NODE_ID = 1_000_000
BATCH = 10_000


def records(brokers: int, partitions: int, rng: random.Random) -> Iterator[Message]:
    """Yield the records of brokers and topics."""
    ranges = release(OLD_RELEASE).feature_ranges()
    features = [
        BrokerFeature(name=name, min_supported_version=low, max_supported_version=high)
        for name, (low, high) in ranges.items()
    ]
    directories = {broker_id: [rng.randbytes(16), rng.randbytes(16)] for broker_id in range(1, brokers + 1)}
    for broker_id, log_dirs in directories.items():
        yield RegisterBrokerRecord(
            broker_id=broker_id,
            incarnation_id=rng.randbytes(16),
            broker_epoch=broker_id,
            end_points=[BrokerEndpoint(name="PLAINTEXT", host=f"b{broker_id}.example", port=9092)],
            features=features,
            rack=RACKS[broker_id % len(RACKS)],
            fenced=False,
            log_dirs=log_dirs,
        )
    yield ConfigRecord(resource_type=4, resource_name="", name="min.insync.replicas", value="2")
    of_rack = [[each for each in directories if each % len(RACKS) == rack] for rack in range(len(RACKS))]
    topic_id = b""
    for number in range(partitions):
        topic, partition_id = divmod(number, PARTITIONS_OF_TOPIC)
        if partition_id == 0:
            topic_id = rng.randbytes(16)
            yield TopicRecord(name=f"topic-{topic}", topic_id=topic_id)
        if topic % 10 == 9:
            replicas = rng.sample(range(1, brokers + 1), len(RACKS))
        else:
            replicas = [rng.choice(each) for each in rng.sample(of_rack, len(RACKS))]
        yield PartitionRecord(
            partition_id=partition_id,
            topic_id=topic_id,
            replicas=replicas,
            isr=replicas,
            leader=replicas[0],
            leader_epoch=1,
            partition_epoch=1,
            directories=[rng.choice(directories[each]) for each in replicas],
        )


def write_cluster(path: Path, brokers: int, partitions: int) -> Path:
    """Write the data directory of a controller that was upgraded, before its brokers; return its path."""
    found = list(records(brokers, partitions, random.Random(f"{brokers}/{partitions}")))
    with Controller.sync(
        data_dir=path, metadata_version=OLD_RELEASE, clock="virtual", seed=1, metadata_log_fsync=False, node_id=NODE_ID
    ) as real:
        for start in range(0, len(found), BATCH):
            real.state.append(found[start : start + BATCH])
    return path


if __name__ == "__main__":
    write_cluster(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
