"""Offline replicas of partitions from the point of view of one listener's clients (KRaftMetadataCache)."""

from __future__ import annotations

from mockraft.brokers.image import ClusterImage, Partition


class ReplicaStates:
    """The reachability of the brokers of an image, computed once for a response about many partitions.

    `listening` are the brokers with a listener of this name; `reachable` those of them that are not fenced.
    """

    def __init__(self, image: ClusterImage, listener_name: str) -> None:
        self.brokers = image.brokers
        self.listening = {each.broker_id for each in self.brokers.values() if listener_name in each.endpoints}
        self.reachable = {broker_id for broker_id in self.listening if not self.brokers[broker_id].fenced}

    def offline(self, partition: Partition) -> list[int]:
        """Return the replicas whose broker is unreachable or whose directory is offline."""
        return [
            broker_id
            for broker_id, directory in zip(partition.replicas, partition.directories, strict=True)
            if broker_id not in self.reachable or not self.brokers[broker_id].has_online_dir(directory)
        ]
